"""How much of what only repeats is run: a fixed part by default, all of it under `pytest -m exhaustive`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

VARIABLE = "DRYWARP_TESTS"
"""Set by `conftest.py` to `exhaustive` where such tests were asked for."""


def exhaustive() -> bool:
    """Whether this run was asked for all that repeats."""
    return os.environ.get(VARIABLE) == "exhaustive"


def examples(full: int, share: int = 10) -> int:
    """How many examples of a law are tried: `full` of them when exhaustive, else one in `share`."""
    return full if exhaustive() else max(5, full // share)


def first(values: Iterable[Any], keep: int = 1) -> list[Any]:
    """Values for `parametrize` of which the first `keep` are tried by default."""
    return _part((value, number < keep) for number, value in enumerate(values))


def some(values: Iterable[Any], share: int) -> list[Any]:
    """Values for `parametrize` of which one in `share` is tried by default."""
    return _part((value, number % share == 0) for number, value in enumerate(values))


def only(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Values for `parametrize` of which only those of `kept`, one of each kind, are tried by default."""
    return _part((value, value in kept) for value in values)


def _part(values: Iterable[tuple[Any, bool]]) -> list[Any]:
    """The values tried by default; when exhaustive the others too, marked. Unmade tests take no time to collect."""
    return [value if kept else _repeats(value) for value, kept in values if kept or exhaustive()]


def _repeats(value: Any) -> Any:
    """The value (a tuple for several names) as one for an exhaustive run, whatever marks it has already."""
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, marks=[*value.marks, pytest.mark.exhaustive], id=value.id)
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.exhaustive)


def in_turn(rows: Sequence[Any], columns: Sequence[Any], name: Any = str, share: int = 1) -> list[Any]:
    """All pairs for `parametrize`: by default one row in `share` with one column, the next with the next column."""
    kept = {(number, number // share % len(columns)) for number in range(0, len(rows), share)}
    return [
        pytest.param(
            row, column, id=f"{name(row)}-{column}", marks=() if (number, place) in kept else pytest.mark.exhaustive
        )
        for number, row in enumerate(rows)
        for place, column in enumerate(columns)
        if exhaustive() or (number, place) in kept
    ]
