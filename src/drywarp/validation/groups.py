"""Rows put into groups by one column, and the errors of each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rows.cells import as_value
from . import statistics

MOST_VALUES, ROWS_OF_A_VALUE = 12, 3
"""Different values up to which each is a group of its own, if each has so many rows in the mean."""
BINS, ROWS_OF_A_BIN = 6, 5
"""Ranges of about as many rows each that a column with more numbers is cut into, and rows that each has at least."""
OTHERS = "others"


@dataclass(frozen=True)
class Group:
    """The errors of the rows that share a value or a range of values."""

    value: str
    rows: int
    mape: float
    median_error: float
    median_ratio: float

    def to_dict(self) -> dict[str, Any]:
        """The group in the documented JSON object."""
        return {
            "value": self.value,
            "rows": self.rows,
            "mape": self.mape,
            "median_error": self.median_error,
            "median_ratio": self.median_ratio,
        }


def labels_of(column: Sequence[str]) -> tuple[list[str], list[str]]:
    """Each row's group, and the groups in order: numbers ascending, texts by how frequent they are.

    Up to `MOST_VALUES` different values are groups of their own, of few rows fewer. More numbers are cut into ranges
    that hold about as many rows each; of more texts the rarer ones are put together.
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
    # A number that equals an edge belongs to the range that begins there; the last range holds its end.
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
