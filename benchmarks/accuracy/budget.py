"""Where a set's error comes from: the squared logarithmic errors, shared out among causes that its rows tell apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from .rows import Row

SHORT_US = 13.0
"""A quarter of the launches of HeCBench's table take less: what a launch costs at its start weighs most in them."""
APART = 1.25
"""A count that is off by more than this factor explains an error that goes the same way."""


def _same_way(row: Row, ratio: float | None) -> bool:
    """Whether a count is off, and in the direction of the time."""
    return ratio is not None and ratio > 0 and abs(math.log(ratio)) > math.log(APART) and (ratio > 1) == (row.ratio > 1)


CAUSES: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("the answer itself says that it is not to be trusted", lambda row: row.doubtful),
    (
        f"launches of less than {SHORT_US:g} µs, which their start dominates",
        lambda row: row.measured < SHORT_US,
    ),
    (
        f"operations off by more than {APART:g} times in the same direction: another compiler's code, or other data",
        lambda row: _same_way(row, row.operations_ratio),
    ),
    (
        f"DRAM limits, and its bytes are off by more than {APART:g} times in the same direction",
        lambda row: row.limiter == "dram" and _same_way(row, row.dram_ratio),
    ),
    ("atomics limit", lambda row: row.limiter == "atomics"),
    ("DRAM or the L2 limit otherwise", lambda row: row.limiter in ("dram", "l2")),
    ("a pipe, the LSU or the issue slots limit", lambda row: row.limiter not in ("latency", "launch", "unknown")),
    ("latency limits, or nothing that has a name", lambda row: True),
)
"""A row belongs to the first cause that holds."""


def shares(rows: Sequence[Row]) -> list[tuple[str, int, float]]:
    """Causes with how many rows they have, and their share of the sum of squared log(predicted / measured)."""
    left, found = list(rows), []
    every = sum(math.log(row.ratio) ** 2 for row in rows)
    for name, holds in CAUSES:
        mine = [row for row in left if holds(row)]
        left = [row for row in left if not holds(row)]
        squares = sum(math.log(row.ratio) ** 2 for row in mine)
        found.append((name, len(mine), squares / every if every else 0.0))
    return found


def budget(rows: Sequence[Row]) -> Iterator[str]:
    """The table of a page; causes without a row are left out."""
    yield "| each row under the first cause that holds for it | rows | share of the squared log error |"
    yield "|---|---:|---:|"
    for name, count, share in shares(rows):
        if count:
            yield f"| {name} | {count} | {share:.0%} |"
