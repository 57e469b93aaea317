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
    return [value if number < keep else _repeats(value) for number, value in enumerate(values)]


def some(values: Iterable[Any], share: int) -> list[Any]:
    """Values for `parametrize` of which one in `share` is tried by default."""
    return [value if number % share == 0 else _repeats(value) for number, value in enumerate(values)]


def _repeats(value: Any) -> Any:
    """The value (a tuple for several names) as one for an exhaustive run, whatever marks it has already."""
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, marks=[*value.marks, pytest.mark.exhaustive], id=value.id)
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.exhaustive)


def in_turn(rows: Sequence[Any], columns: Sequence[Any], name: Any = str) -> list[Any]:
    """All pairs for `parametrize`: by default each row with one column, the next row with the next one."""
    return [
        pytest.param(
            row, column, id=f"{name(row)}-{column}",
            marks=() if number % len(columns) == place else pytest.mark.exhaustive,
        )
        for number, row in enumerate(rows)
        for place, column in enumerate(columns)
    ]  # fmt: skip
