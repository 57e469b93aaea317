"""How much of what only repeats is run: a fixed part by default, all of it under `pytest -m exhaustive`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

VARIABLE = "DRYWARP_TESTS"
"""Set by `conftest.py` to `exhaustive` where such tests were asked for."""


def exhaustive() -> bool:
    """Whether this run was asked for all that repeats."""
    return os.environ.get(VARIABLE) == "exhaustive"


def examples(full: int, share: int = 10) -> int:
    """How many examples of a law are tried: `full` of them when exhaustive, else one in `share`."""
    return full if exhaustive() else max(5, full // share)


def first(values: Iterable[Any], keep: int = 1) -> list[Any]:
    """Values for `parametrize` of which all but the first `keep` are exhaustive."""
    return [
        value if number < keep else pytest.param(value, marks=pytest.mark.exhaustive)
        for number, value in enumerate(values)
    ]


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
