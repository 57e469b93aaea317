"""Which blocks one SM runs, waits for others of a block, and which issue each instruction waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import UsageError
from ..workload.cost import SYNC_AT_END, SYNC_AWAITS, CostedNode, CostedWorkload
from .columns import (
    AFTER,
    AFTER_SLOT,
    AT_PHASE,
    COMPLETE_AT,
    COUNTED,
    DONE,
    END,
    EVENT,
    MISSING,
    PLACE,
    REASON,
    RECORD,
    SETS,
    SYNC,
    WAIT,
    WAITING,
    loop,
    step,
)
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


# Compiled steps for warps that wait for others of their block: for all at a barrier, or for some.
#
# A barrier phase is complete when all signals that the paths of its block's warps hold have arrived. A warp that awaits
# it has already issued, and resumes Λ later. The entries of a warp's event list are read in sequence: the number of
# phases signalled, those phases, and the phase awaited.


@step
def begin_phases(
    b: int, kind: int, per_block: int, block_paths: Any, events_from: Any, needed: Any, meetings: Any, phases: Any
) -> None:
    """Start a block of a kind in slot `b`: all signals are missing."""
    for i in range(per_block):
        w = b * per_block + i
        meetings[w, EVENT] = events_from[block_paths[kind, i]]
        meetings[w, AT_PHASE] = -1
    for phase in range(phases.shape[1]):
        phases[b, phase, MISSING] = needed[kind, phase]
        phases[b, phase, COMPLETE_AT] = 0


@step
def signal(
    w: int, b: int, node: int, tick: int, completion: int, nodes: Any, slot_ready: Any, events: Any, meetings: Any,
    phases: Any,
) -> bool:  # fmt: skip
    """Signal the node's phases and start to await one; whether some warp that awaits a phase may resume."""
    at = tick
    if nodes[node, SYNC] & SYNC_AT_END:
        at = completion
        if nodes[node, AFTER_SLOT] >= 0:
            at = max(at, slot_ready[w, nodes[node, AFTER_SLOT]])
    event = meetings[w, EVENT]
    opened = False
    for k in range(event + 1, event + 1 + events[event]):
        phase = events[k]
        phases[b, phase, MISSING] -= 1
        phases[b, phase, COMPLETE_AT] = max(phases[b, phase, COMPLETE_AT], at)
        if phases[b, phase, MISSING] == 0:
            opened = True
    event += 1 + events[event]
    if nodes[node, SYNC] & SYNC_AWAITS:
        meetings[w, AT_PHASE] = events[event]
        event += 1
        if meetings[w, AT_PHASE] >= 0:
            opened = True
    meetings[w, EVENT] = event
    return opened


@step
def resume(
    w: int, tick: int, code: int, following: bool, record: bool, nodes: Any, positions: Any, warps: Any,
    slot_ready: Any, slot_reason: Any, stalls: Any, table: Any,
) -> None:  # fmt: skip
    """Resume at `tick` a warp that waits at node WAITING; the time until then has the reason `code`.

    With `following`, it is charged to the next instruction if there is one, else to this one.
    """
    node = warps[w, WAITING]
    warps[w, WAITING] = -1
    slot = nodes[node, SETS]
    if slot >= 0 and tick > slot_ready[w, slot]:
        slot_ready[w, slot] = tick
        slot_reason[w, slot] = code
    warps[w, DONE] = max(warps[w, DONE], tick)
    if record:
        table[warps[w, RECORD], 5] = tick
    if len(stalls) > 0:
        counted = warps[w, COUNTED]
        if warps[w, PLACE] < warps[w, END]:
            its = positions[warps[w, PLACE], 0]
            counted = max(counted, warps[w, AFTER])
            stalls[its, WAIT] += counted - warps[w, COUNTED]
            node = its if following else node
        stalls[node, code] += max(0, tick - counted)
        warps[w, COUNTED] = max(tick, counted)
    if tick >= warps[w, AFTER]:
        warps[w, AFTER] = tick
        warps[w, REASON] = code


# Which blocks one SM runs, their types, and which of them fall into the tail.

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
        deal(np.array([weight / total for weight in weights]), np.zeros(len(weights)), order)
        return order
    given = [0] * len(weights)
    for number in range(count):
        behind = [weight / total * (number + 1) - got for weight, got in zip(weights, given, strict=True)]
        order[number] = kind = behind.index(max(behind))
        given[kind] += 1
    return order


# Compiled: the types of many blocks in launch order.


@loop
def deal(shares: Any, given: Any, order: Any) -> None:
    """Fill `order` as `blocks.type_order` does, with the same roundings.

    `shares` are the weights divided by their sum; `given` is initially zero.
    """
    for number in range(len(order)):
        kind = 0
        most = shares[0] * (number + 1) - given[0]
        for other in range(1, len(shares)):
            behind = shares[other] * (number + 1) - given[other]
            if behind > most:
                kind, most = other, behind
        order[number] = kind
        given[kind] += 1.0
