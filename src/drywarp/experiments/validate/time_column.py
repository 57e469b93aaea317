"""Which column of a table holds the times, and in which unit."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ...errors import InputFileError, UsageError

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
"""Seconds in each unit that a table may use."""
_SPELT = {
    **dict.fromkeys(("sec", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "millisecond", "milliseconds", "miliseconds"), "ms"),
    **dict.fromkeys(("usec", "microsecond", "microseconds", "μs"), "us"),
    **dict.fromkeys(("nsec", "nanosecond", "nanoseconds"), "ns"),
}
_ENDING = re.compile(r"^(?P<stem>.*?)[ _]*[_(\[ ](?P<unit>[A-Za-zµμ]+)[)\]]?$")
_STEMS = (
    *("median", "median_time", "time_median", "time", "duration", "computation_duration", "kernel_time", "runtime"),
    *("gpu_time", "elapsed", "elapsed_time", "mean", "mean_time", "time_mean", "avg", "average", "min", "time_min"),
)
"""Stems of usual names, in order of preference."""


def unit_of(text: str) -> str | None:
    """The unit as spelled in `UNITS`; None if it is not a unit of time."""
    plain = text.strip().lower()
    plain = _SPELT.get(plain, plain)
    return plain if plain in UNITS else None


def split_name(column: str) -> tuple[str, str | None]:
    """A column's stem and unit: ``median_ms`` is ("median", "ms"); the unit is None if the name has none."""
    match = _ENDING.match(column.strip())
    unit = unit_of(match["unit"]) if match else None
    stem = match["stem"] if match and unit else column
    return re.sub(r"[ _]+", "_", stem.strip().lower()), unit


def choose(columns: Sequence[str], wanted: str | None, origin: str) -> tuple[str, float]:
    """The time column and the seconds per unit.

    `wanted` is ``COLUMN`` or ``COLUMN:UNIT``; None looks for a usual name that ends in its unit. Raises UsageError if
    that is ambiguous.
    """
    if wanted is not None:
        return _told(columns, wanted, origin)
    found = {stem: (name, unit) for name in columns for stem, unit in [split_name(name)] if unit}
    for stem in _STEMS:
        if stem in found:
            name, unit = found[stem]
            return name, UNITS[unit]
    raise UsageError(
        f"{origin}: no column of times found (expected one such as median_ms or duration_us, or --time COLUMN:UNIT); "
        f"it has: {', '.join(columns)}"
    )


def _told(columns: Sequence[str], wanted: str, origin: str) -> tuple[str, float]:
    name, told = wanted, ""
    if wanted not in columns and ":" in wanted:
        name, _, told = wanted.rpartition(":")
    if name not in columns:
        raise UsageError(f"{origin}: no column {name!r} (--time); it has: {', '.join(columns)}")
    unit = unit_of(told) if told else split_name(name)[1]
    if unit is None:
        raise UsageError(f"--time {wanted}: expected a unit, as in {name}:ms (one of {', '.join(UNITS)})")
    return name, UNITS[unit]


def seconds(text: str, unit: float, place: str, column: str) -> float:
    """A cell in seconds. Raises InputFileError with place and column if it is not a positive number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputFileError(f"{place}: {column} is {text.strip()!r}, expected a positive number")
    return value * unit
