"""Which blocks one SM runs, of which types, and which of them fall into the tail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..bound import BoundWorkload
from ..errors import UsageError
from .result import Ticks

LONGEST_IN_PYTHON = 1000
"""Blocks whose types are dealt without compiled code: loading that takes longer."""


@dataclass(frozen=True, slots=True)
class Share:
    """One SM's part of the grid: `resident` blocks at once, `blocks` in all, the first `full` of them
    while all SMs are busy; the rest runs in the tail, the partial last wave of the grid.
    """

    resident: int
    blocks: int
    full: int

    def shortened(self, blocks: int) -> Share:
        """The same share with fewer full blocks and an equal tail."""
        return Share(self.resident, blocks, max(0, blocks - (self.blocks - self.full)))


def share_of(workload: BoundWorkload, resident: int) -> Share:
    """The share of the SM that gets most: ceil(blocks / SMs), of which floor are full.

    A workload with `runs` gives each SM that many times the resident blocks instead.
    """
    if resident < 1:
        raise UsageError("the occupancy must be at least one block per SM")
    if workload.runs:
        return Share(resident, resident * workload.runs, resident * workload.runs)
    full, rest = divmod(workload.blocks, workload.sm_count)
    return Share(resident, full + (rest > 0), full)


def type_order(weights: Sequence[float], count: int, lengths: Sequence[int] = ()) -> Ticks:
    """The types of `count` blocks in launch order, interleaved in proportion to `weights`.

    Each block is of the type that is furthest behind its due number (largest remainder), the
    first of equals. `lengths` are the instructions of a block of each type. Where the longest type is so rare that
    none is due here though the grid has one (a weight is a number of blocks), the first block is one: some
    SM runs it, and the grid ends with the slowest.
    """
    order = _in_proportion(weights, count)
    if len(lengths) > 1 and count:
        longest = max((n for n, weight in enumerate(weights) if weight >= 1), key=lengths.__getitem__, default=0)
        if lengths[longest] > max(lengths[kind] for kind in np.unique(order)):
            order[0] = longest
    return order


def _in_proportion(weights: Sequence[float], count: int) -> Ticks:
    if len(weights) == 1:
        return np.zeros(count, dtype=np.int64)
    total = sum(weights)
    if total <= 0:
        raise UsageError("the weights of the block types must add up to more than zero")
    order = np.empty(count, dtype=np.int64)
    if count > LONGEST_IN_PYTHON:
        from .deal import deal

        deal(np.array([weight / total for weight in weights]), np.zeros(len(weights)), order)
        return order
    given = [0] * len(weights)
    for number in range(count):
        behind = [weight / total * (number + 1) - got for weight, got in zip(weights, given, strict=True)]
        order[number] = kind = behind.index(max(behind))
        given[kind] += 1
    return order
