"""Which issue each instruction of an execution profile had to wait for: the arrows of the analysis paper's Fig. 8."""

from __future__ import annotations

import numpy as np

from ..bound import SYNC_AWAITS, BoundNode, BoundWorkload
from .reasons import REASONS
from .result import ExecutionProfile, Ticks

_DEPENDENT = frozenset(
    REASONS.index(name) for name in ("wait", "long_scoreboard", "short_scoreboard", "barrier", "membar", "gmma")
)


def awaited(workload: BoundWorkload, profile: ExecutionProfile) -> Ticks:
    """For each row of the profile the row that it waited for last, -1 where it waited for none.

    That is the producer of the operand that came last, if it came after the instruction could issue otherwise; after
    a barrier the last of the block's warps to arrive there, and where a warp awaits some others, the instruction that
    does. A producer that issued before the profile begins is not found.
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
            # In order, writers of a slot that are outstanding must all be done; a graph's edge leads from the latest.
            before = ready.get(written, (0, -1))
            if written >= 0 and (at_tick > before[0] or not (workload.in_order or before[1] == row)):
                ready[written] = (at_tick, row)
    return found


def _last_arrivals(profile: ExecutionProfile, nodes: list[BoundNode]) -> dict[tuple[int, int], int]:
    """By block and the tick that a barrier opens at: the row that arrived there last."""
    last: dict[tuple[int, int], int] = {}
    barriers = np.array([node.barrier for node in nodes], dtype=np.bool_)
    for row in np.flatnonzero(barriers[profile.column("node")]).tolist():  # in the order of issue
        last[(int(profile.column("block")[row]), int(profile.column("completion")[row]))] = row
    return last
