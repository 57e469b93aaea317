"""The result of a calibration: figures with their spread, the curves behind them, and what was not measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..._version import __version__
from .device import Attributes

# A number with its spread, propagated through sums and quotients of independent numbers.

MEDIAN_OVER_MEAN = 1.2533
"""Ratio of the spreads of the median and the mean under normal noise: √(π/2)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its standard deviation, in the same unit."""

    value: float
    spread: float = 0.0

    @classmethod
    def of(cls, samples: Sequence[float]) -> Estimate:
        """The median of repeated measurements, which is robust against single slow ones."""
        middle = statistics.median(samples)
        if len(samples) < 2:
            return cls(middle, 0.0)
        # The median distance from the median, as a normal distribution's deviation.
        deviation = 1.4826 * statistics.median(abs(s - middle) for s in samples)
        return cls(middle, MEDIAN_OVER_MEAN * deviation / math.sqrt(len(samples)))

    def __add__(self, other: Estimate | float) -> Estimate:
        if isinstance(other, Estimate):
            return Estimate(self.value + other.value, math.hypot(self.spread, other.spread))
        return Estimate(self.value + other, self.spread)

    def __sub__(self, other: Estimate | float) -> Estimate:
        return self + (other * -1.0)

    def __mul__(self, factor: float) -> Estimate:
        return Estimate(self.value * factor, abs(self.spread * factor))

    def __truediv__(self, factor: float) -> Estimate:
        return self * (1 / factor)

    def into(self, numerator: float) -> Estimate:
        """`numerator` divided by this."""
        value = numerator / self.value
        return Estimate(value, abs(value * self.spread / self.value))


def mean(parts: Sequence[Estimate]) -> Estimate:
    """The mean of estimates; its spread is the larger of their stated spreads and their scatter."""
    count = len(parts)
    value = sum(part.value for part in parts) / count
    stated = math.sqrt(sum(part.spread**2 for part in parts)) / count
    apart = statistics.stdev([part.value for part in parts]) / math.sqrt(count) if count > 1 else 0.0
    return Estimate(value, max(stated, apart))


@dataclass(frozen=True)
class Figure:
    """A measured constant.

    `key` is its place in a GPU file (``classes.sfu.lambda``) or, if `in_file` is false, a name used in the report only.
    `spread` is one standard deviation, in `unit`. `ns` is the value in nanoseconds if the unit is cycles. `how`
    describes briefly what was measured.
    """

    key: str
    value: float
    spread: float
    unit: str
    how: str
    ns: float | None = None
    in_file: bool = True


@dataclass(frozen=True)
class Curve:
    """Measured points and a fit: `fit` is the fitted y at each x, empty without a fit."""

    name: str
    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...]
    fit: tuple[float, ...] = ()
    formula: str = ""


@dataclass
class Findings:
    """The experiments' findings so far; later experiments may use earlier figures.

    `scopes` maps an instruction class to whether its pipe exists once per ``partition`` or once per ``sm``. `silent`
    maps what the measurements do not show to the reason.
    """

    figures: dict[str, Figure] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)
    scopes: dict[str, str] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    distances: set[str] = field(default_factory=set)
    """Classes whose Λ is the distance that the compiler schedules, without waiting for a scoreboard."""
    clock_mhz: float = 0.0

    def add(
        self, key: str, estimate: Estimate, unit: str, how: str, *, in_file: bool = True, ns: float | None = None
    ) -> None:
        """Record a figure; one in cycles gets its nanoseconds from the clock of the runs."""
        if ns is None and unit == "cycles" and self.clock_mhz:
            ns = estimate.value * 1000 / self.clock_mhz
        self.figures[key] = Figure(key, estimate.value, estimate.spread, unit, how, ns, in_file)

    def plot(
        self, name: str, title: str, labels: tuple[str, str], x: Sequence[float], points: Sequence[Estimate],
        fit: Sequence[float] = (), formula: str = "",
    ) -> None:  # fmt: skip
        """Record a curve of estimates; `labels` are those of x and y."""
        y, spread = tuple(point.value for point in points), tuple(point.spread for point in points)
        self.curves.append(Curve(name, title, *labels, tuple(map(float, x)), y, spread, tuple(fit), formula))

    def value(self, key: str, otherwise: float) -> float:
        """An earlier figure, or the default `otherwise`."""
        found = self.figures.get(key)
        return found.value if found else otherwise


@dataclass(frozen=True)
class Calibration:
    """A finished calibration. `date` is that of the run, `gpu_file` the text of the GPU file."""

    device: Attributes
    date: str
    clock_mhz: float
    clock_range_mhz: tuple[float, float]
    figures: tuple[Figure, ...]
    curves: tuple[Curve, ...]
    silent: dict[str, str]
    inherited: tuple[str, ...]
    gpu_file: str
    experiments: tuple[str, ...]
    launches: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Everything except the GPU file's text, as plain data for JSON."""
        data = asdict(self)
        del data["gpu_file"]
        return {"schema_version": 1, "versions": {"drywarp": __version__}, **data}
