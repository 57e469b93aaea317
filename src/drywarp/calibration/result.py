"""What a calibration holds: figures with their spread, the curves behind them, and what was not measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from .. import __version__
from .device import Attributes
from .estimate import Estimate


@dataclass(frozen=True)
class Figure:
    """A constant that was measured.

    `key` is its place in a GPU file (``classes.sfu.lambda``) or, where `in_file` is false, a name in the report
    alone. `spread` is one standard deviation, in `unit`. `ns` is the value in nanoseconds where the unit is cycles.
    `how` says in a few words what was measured.
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
    """Points that were measured, and a fit over them: `fit` is the fitted y at each x, empty where there is none."""

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
    """What the experiments have found so far; later ones may build on earlier figures.

    `scopes` says for an instruction class whether its pipe is one of each ``partition`` or one of the ``sm``.
    `silent` are things that the measurements do not show here, with why.
    """

    figures: dict[str, Figure] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)
    scopes: dict[str, str] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    distances: set[str] = field(default_factory=set)
    """Classes whose Λ is the distance that the compiler leaves: no scoreboard is waited for."""
    clock_mhz: float = 0.0

    def add(
        self, key: str, estimate: Estimate, unit: str, how: str, *, in_file: bool = True, ns: float | None = None
    ) -> None:
        """Note a figure; one in cycles gets its nanoseconds from the clock of the runs."""
        if ns is None and unit == "cycles" and self.clock_mhz:
            ns = estimate.value * 1000 / self.clock_mhz
        self.figures[key] = Figure(key, estimate.value, estimate.spread, unit, how, ns, in_file)

    def value(self, key: str, otherwise: float) -> float:
        """A figure that was found earlier, or something else."""
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
        """Everything but the GPU file's text as plain data for JSON."""
        data = asdict(self)
        del data["gpu_file"]
        return {"schema_version": 1, "versions": {"drywarp": __version__}, **data}
