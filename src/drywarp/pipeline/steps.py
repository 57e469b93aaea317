"""Compiled steps that the in-order and the dataflow loop share, inlined into both.

Numba notices a change only in the file of the loop itself: after a change here or in `columns.py`,
touch `inorder.py` and `dataflow_loop.py`, else the stored machine code is used on. (An installation
writes all files anew.)
"""

from __future__ import annotations

from typing import Any

from numba import njit

from .columns import LEVEL_LAMBDA, LEVEL_PER_PARTITION, LEVEL_RESOURCE, LEVEL_TAIL, SEQUENCE


@njit(inline="always")
def rank_by_launch(slots: Any, per_block: int, partitions: int, youngest: bool, rank: Any, at_rank: Any) -> None:
    """Number all concurrent warps by launch, from 0; `at_rank` is the inverse of `rank`.

    `rank` has a row per partition; block slots that are empty may get any numbers.
    """
    for b in range(len(slots)):
        older = 0
        for other in range(len(slots)):
            if slots[other, SEQUENCE] < slots[b, SEQUENCE] or (
                slots[other, SEQUENCE] == slots[b, SEQUENCE] and other < b
            ):
                older += 1
        for i in range(per_block):
            w = b * per_block + i
            number = older * per_block + i
            if youngest:
                number = len(at_rank) - 1 - number
            rank[w % partitions, w // partitions] = number
            at_rank[number] = w


@njit(inline="always")
def visit_levels(
    levels: Any, first: int, end: int, partition: int, tick: int, tail: bool, free: Any, busy: Any, changed: Any
) -> int:
    """Send a transaction through its levels; returns when the last one starts on it.

    It reaches the next level when the one before starts on it: constant times between them are part
    of Λ, so that the return value less `tick` is what queueing adds.
    """
    for level in range(first, end):
        resource = levels[level, LEVEL_RESOURCE]
        if levels[level, LEVEL_PER_PARTITION] != 0:
            resource += partition
        cost = levels[level, LEVEL_TAIL] if tail else levels[level, LEVEL_LAMBDA]
        if free[resource] > tick:
            tick = free[resource]
        free[resource] = tick + cost
        busy[resource] += cost
        changed[resource] = 1
    return tick


@njit(inline="always")
def admit(resource: int, free_at: int, completion: int, pending: Any, pending_from: Any) -> int:
    """Note an issue on a subsystem that limits outstanding instructions; returns when it takes the next.

    Of the noted completions the earliest gives its place to this one: the next instruction finds a
    place free once the then earliest has completed.
    """
    first, end = pending_from[resource], pending_from[resource + 1]
    earliest = first
    for place in range(first + 1, end):
        if pending[place] < pending[earliest]:
            earliest = place
    pending[earliest] = completion
    for place in range(first, end):
        if pending[place] < pending[earliest]:
            earliest = place
    place_free: int = pending[earliest]
    return max(free_at, place_free)
