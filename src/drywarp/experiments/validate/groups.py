"""The papers' tables (MAPE and MAPE_shape of performance over occupancy by kernel and model), and groups of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from ..rows import BAND_HIGH, BAND_LEVEL, BAND_LOW, CLOCK_HIGH, CLOCK_LOW
from ..rows.recipe import as_value
from . import statistics
from .read_csv import KERNEL_NAME, VARIANT
from .row import RowResult

FEWEST_FOR_SHAPE = 3
"""Fewest occupancies of a curve for a shape error: any two points lie on a line."""


@dataclass(frozen=True)
class Figures:
    """One model on one kernel, as fractions; None without predictions, or if no curve is long enough for a shape."""

    mape: float | None
    mape_shape: float | None


@dataclass(frozen=True)
class KernelAccuracy:
    """One kernel: its predicted rows, its curves (block sizes) over occupancy, and each model's figures."""

    kernel: str
    rows: int
    curves: int
    models: Mapping[str, Figures]


def kernels_of(rows: Sequence[RowResult], models: Sequence[str]) -> tuple[KernelAccuracy, ...]:
    """Each kernel of a table whose rows name them, in the table's order; otherwise none.

    MAPE is that of the performance 1 / time as in the analysis paper's §6.3, Σ|m/p − 1| / n over a curve's
    occupancies; a kernel's MAPE and MAPE_shape are the means over its curves.
    """
    found: dict[str, dict[str, list[RowResult]]] = {}
    for row in rows:
        if row.ok and KERNEL_NAME in row.parameters:
            curve = row.parameters.get(VARIANT, "")
            found.setdefault(row.parameters[KERNEL_NAME], {}).setdefault(curve, []).append(row)
    return tuple(
        KernelAccuracy(
            kernel=name,
            rows=sum(map(len, curves.values())),
            curves=len(curves),
            models={model: _figures(list(curves.values()), model) for model in models},
        )
        for name, curves in found.items()
    )


def average(kernels: Sequence[KernelAccuracy], model: str) -> Figures:
    """The mean of a model's figures over the kernels that have them."""
    figures = [kernel.models[model] for kernel in kernels]
    mapes = [f.mape for f in figures if f.mape is not None]
    shapes = [f.mape_shape for f in figures if f.mape_shape is not None]
    return Figures(fmean(mapes) if mapes else None, fmean(shapes) if shapes else None)


def _figures(curves: Sequence[Sequence[RowResult]], model: str) -> Figures:
    mapes, shapes = [], []
    for curve in curves:
        said = [row for row in curve if 0 < row.times.get(model, 0.0) < float("inf")]
        if not said:
            continue
        predicted = np.array([row.times[model] for row in said])
        measured = np.array([row.measured_s for row in said])
        occupancy = np.array([float(row.facts.get("warps_per_sm", 0)) for row in said])
        mapes.append(statistics.mape(1 / predicted, 1 / measured))
        if len(set(occupancy.tolist())) >= FEWEST_FOR_SHAPE:
            shapes.append(statistics.mape_shape(predicted, measured, occupancy))
    return Figures(fmean(mapes) if mapes else None, fmean(shapes) if shapes else None)


# Rows grouped by one column, and the errors of each group.

MOST_VALUES, ROWS_OF_A_VALUE = 12, 3
"""Most distinct values for one group per value, and fewest rows per value on average for that."""
BINS, ROWS_OF_A_BIN = 6, 5
"""Most equal-count ranges for a numeric column with more values, and fewest rows per range."""
OTHERS = "others"


@dataclass(frozen=True)
class Group:
    """The errors of the rows that share a value or a range of values."""

    value: str
    rows: int
    mape: float
    median_error: float
    median_ratio: float


def labels_of(column: Sequence[str]) -> tuple[list[str], list[str]]:
    """Each row's group, and the groups in order: numbers ascending, texts by frequency.

    Up to `MOST_VALUES` distinct values (fewer if there are few rows) form one group each. More numbers are split into
    ranges with about equal numbers of rows; of more texts, the rarer ones share a group.
    """
    values = [as_value(text) for text in column]
    numbers = [value for value in values if not isinstance(value, str)]
    counts = Counter(f"{value:g}" if not isinstance(value, str) else value for value in values)
    shown = [f"{value:g}" if not isinstance(value, str) else value for value in values]
    most = max(1, min(MOST_VALUES, len(column) // ROWS_OF_A_VALUE))
    if len(counts) <= most:
        return shown, sorted(counts, key=lambda text: _order(text, counts))
    if len(numbers) == len(values):
        return _ranges([float(number) for number in numbers])
    frequent = [text for text, _ in counts.most_common(most - 1)]
    return [text if text in frequent else OTHERS for text in shown], [*frequent, OTHERS]


def _order(text: str, counts: Counter[str]) -> tuple[int, float]:
    value = as_value(text)
    return (0, float(value)) if not isinstance(value, str) else (1, -counts[text])


def _ranges(numbers: list[float]) -> tuple[list[str], list[str]]:
    values = np.array(numbers)
    bins = max(1, min(BINS, len(numbers) // ROWS_OF_A_BIN))
    edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1), method="nearest"))
    # A number equal to an edge belongs to the range that starts there; the last range includes its end.
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, max(0, len(edges) - 2))
    names = {}
    for at in sorted(set(place.tolist())):
        inside = values[place == at]
        low, high = f"{inside.min():.4g}", f"{inside.max():.4g}"
        names[at] = low if low == high else f"{low} to {high}"
    return [names[at] for at in place.tolist()], list(dict.fromkeys(names.values()))


def groups_of(
    labels: Sequence[str], order: Sequence[str], predicted: statistics.Array, measured: statistics.Array
) -> tuple[Group, ...]:
    """The errors of each group, in `order`."""
    found = []
    names = np.array(labels)
    for value in order:
        inside = names == value
        p, m = predicted[inside], measured[inside]
        found.append(
            Group(
                value=value,
                rows=int(inside.sum()),
                mape=statistics.mape(p, m),
                median_error=statistics.quantile_error(p, m, 0.5),
                median_ratio=statistics.median_ratio(p, m),
            )
        )
    return tuple(found)


# How often the measured time lies within the prediction's confidence band, and how wide the bands are.


@dataclass(frozen=True)
class Coverage:
    """For the rows with a band: the share whose measured time is inside, and the median ratio of the band's ends.

    `level` is the share that the bands claim. `held` and `width` are those of the whole band, over all clocks of the
    GPU; the two with `at_clock` are those of the band at the assumed clock. `below` and `above` count rows whose
    measured time lies outside the whole band on that side.
    """

    level: float
    rows: int
    held: float
    width: float
    held_at_clock: float
    width_at_clock: float
    below: int
    above: int


def coverage_of(rows: Sequence[RowResult]) -> Coverage | None:
    """The coverage over the rows with a band; None if there are none."""
    banded = [row for row in rows if row.ok and BAND_LOW in row.facts]
    if not banded:
        return None
    measured = np.array([row.measured_s for row in banded])
    ends = {
        name: np.array([float(row.facts[name]) for row in banded])
        for name in (BAND_LEVEL, BAND_LOW, BAND_HIGH, CLOCK_LOW, CLOCK_HIGH)
    }
    below, above = measured < ends[BAND_LOW], measured > ends[BAND_HIGH]
    at_clock = (measured >= ends[CLOCK_LOW]) & (measured <= ends[CLOCK_HIGH])
    return Coverage(
        level=float(np.median(ends[BAND_LEVEL])),
        rows=len(banded),
        held=float((~below & ~above).mean()),
        width=float(np.median(ends[BAND_HIGH] / ends[BAND_LOW])),
        held_at_clock=float(at_clock.mean()),
        width_at_clock=float(np.median(ends[CLOCK_HIGH] / ends[CLOCK_LOW])),
        below=int(below.sum()),
        above=int(above.sum()),
    )
