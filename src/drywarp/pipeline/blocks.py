"""Which blocks one SM runs, waits for others of a block, and which issue each instruction waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.library import Function
from ..errors import UsageError
from ..workload.cost import SYNC_AWAITS, CostedNode, CostedWorkload
from .reasons import REASONS
from .result import ExecutionProfile, Ticks

_DEPENDENT = frozenset(
    REASONS.index(name) for name in ("wait", "long_scoreboard", "short_scoreboard", "barrier", "membar", "gmma")
)


def awaited(workload: CostedWorkload, profile: ExecutionProfile) -> Ticks:
    """For each row of the profile, the row that it waited for last; -1 if none.

    That is the producer of the last operand to become ready, if the instruction could otherwise have issued earlier;
    after a barrier, the last of the block's warps to arrive; if a warp awaits only some others, the awaiting
    instruction. A producer that issued before the profile begins is not found.
    """
    table = profile.table
    found = np.full(len(table), -1, dtype=np.int64)
    nodes = [workload.paths[path].nodes[node] for path, node in profile.paths_nodes]
    order = np.lexsort((profile.column("position"), profile.column("block"), profile.column("warp")))
    last_arrivals = _last_arrivals(profile, nodes)
    warp = (-1, -1)
    ready: dict[int, tuple[int, int]] = {}
    free_from, held, event = 0, (0, -1), 0
    rows = table.tolist()
    for row in order.tolist():
        slot, block, number, _, issue, completion, reason = rows[row]
        node = nodes[number]
        if (slot, block) != warp:
            warp, ready, free_from, held, event = (slot, block), {}, 0, (0, -1), 0
        tick, producer = held
        for needed in node.waits:
            at = ready.get(needed)
            if at is not None and at[0] > tick:
                tick, producer = at
        if tick > free_from if workload.in_order else reason in _DEPENDENT:
            found[row] = producer
        free_from, held = issue + node.stall_ticks, held if not workload.in_order else (0, -1)
        if node.barrier:
            held = (completion, last_arrivals[(block, completion)])
        elif node.sync:
            events = workload.paths[profile.paths_nodes[number][0]].events
            event += 1 + events[event]
            if node.sync & SYNC_AWAITS:
                held = (completion, row) if events[event] >= 0 else held
                event += 1
        for written, at_tick in ((node.sets, completion), (node.sets_read, issue + node.read_ticks)):
            # In program order, all outstanding writers of a slot must complete; a graph's edge starts at the latest.
            before = ready.get(written, (0, -1))
            if written >= 0 and (at_tick > before[0] or not (workload.in_order or before[1] == row)):
                ready[written] = (at_tick, row)
    return found


def _last_arrivals(profile: ExecutionProfile, nodes: list[CostedNode]) -> dict[tuple[int, int], int]:
    """By block and barrier-open tick: the row that arrived last."""
    last: dict[tuple[int, int], int] = {}
    barriers = np.array([node.barrier for node in nodes], dtype=np.bool_)
    for row in np.flatnonzero(barriers[profile.column("node")]).tolist():  # in the order of issue
        last[(int(profile.column("block")[row]), int(profile.column("completion")[row]))] = row
    return last


# Which blocks one SM runs, their types, and which of them fall into the tail.

_deal = Function("deal", "aanan")
LONGEST_IN_PYTHON = 1000
"""Most blocks whose types are assigned without compiled code, which takes longer to load."""


@dataclass(frozen=True, slots=True)
class Share:
    """One SM's part of the grid: `resident` blocks at once, `blocks` in total, the first `full` of them
    while all SMs are busy; the rest runs in the tail, the partial last wave of the grid."""

    resident: int
    blocks: int
    full: int

    def shortened(self, blocks: int) -> Share:
        """The same share with fewer full blocks and an equal tail."""
        return Share(self.resident, blocks, max(0, blocks - (self.blocks - self.full)))


def share_of(workload: CostedWorkload, resident: int) -> Share:
    """The share of the most loaded SM: ceil(blocks / SMs), of which floor are full.

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

    Each block gets the type that is furthest behind its due count (largest remainder), ties going to the first.
    `lengths` are the instructions of a block of each type. If the longest type is so rare that none is due here
    although the grid has one (a weight is a number of blocks), the first block gets it: some SM runs it, and the grid
    ends with the slowest.
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
        shares = np.array([weight / total for weight in weights])
        _deal(shares, np.zeros(len(weights)), len(weights), order, count)
        return order
    given = [0] * len(weights)
    for number in range(count):
        behind = [weight / total * (number + 1) - got for weight, got in zip(weights, given, strict=True)]
        order[number] = kind = behind.index(max(behind))
        given[kind] += 1
    return order
