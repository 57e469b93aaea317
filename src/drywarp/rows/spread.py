"""An order of rows whose every beginning is spread evenly over all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def spread(rows: Sequence[Item]) -> list[Item]:
    """All rows in an order whose every beginning is spread evenly over the table: indices by their reversed bits."""
    bits = max(1, (len(rows) - 1).bit_length())
    order = (int(f"{index:0{bits}b}"[::-1], 2) for index in range(1 << bits))
    return [rows[index] for index in order if index < len(rows)]
