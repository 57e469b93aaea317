"""The compiled event loop for warps that may issue any node whose producers are done.

Like the loop in `inorder.py`, whose notes on the cached next issue of a partition hold here too;
a warp has a list of candidates instead of one next instruction: the nodes that all producers of
have issued, so that the tick from which they are ready is known.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from .accounts import busy_before, busy_since, note_spell
from .columns import (
    ALIVE,
    ARRIVED,
    ASYNC,
    AT_BARRIER,
    BARRIER,
    BLOCK_SLOT,
    BUSY_REASON,
    CANDIDATE,
    DEPENDENT_REASON,
    DRAIN,
    ENDS,
    GREEDY,
    LAMBDA,
    LAST,
    LAST_ARRIVAL,
    LATENCY,
    LAUNCHED,
    LEVEL_FROM,
    LEVEL_PER_PARTITION,
    LEVEL_RESOURCE,
    LEVEL_TO,
    NEVER,
    NEXT,
    NOT_SELECTED,
    PER_PARTITION,
    PICKED,
    READ_TICKS,
    RESOURCE,
    ROOM,
    SELECTED,
    SEQUENCE,
    SPELL_START,
    STALE,
    STALL,
    VALVE,
    WAIT,
)
from .steps import admit, rank_by_launch, visit_levels

# Columns of the warp table: where its graph begins, nodes not issued yet, candidates in its list, the
# tick that the last issue's stall count ends at, the barrier that it stands at (else -1); and of the
# node that last issued or opened what to tell its consumers: when each need is met (NEVER: not now).
# EARLIEST is a lower bound on when a candidate of the list is ready. For the accounts: the node that issued
# last (-1: none), and the tick that the time is accounted to.
FIRST, LEFT, DONE, BLOCK, COUNT, GAP, WAITING, RECORD, TOLD, RESULT_AT, READ_AT, ISSUED_AT, WHY, EARLIEST = range(14)
BEFORE, COUNTED = range(14, 16)
WARP_COLUMNS = 16


@njit(inline="always")
def _offer(w: int, d: int, partitions: int, warps: Any, ready: Any, listed: Any, parts: Any) -> None:
    """Put a node whose ready tick is known among the warp's candidates."""
    listed[w, warps[w, COUNT]] = d
    warps[w, COUNT] += 1
    warps[w, EARLIEST] = min(warps[w, EARLIEST], ready[w, d])
    q = w % partitions
    tick = max(ready[w, d], warps[w, GAP], parts[q, VALVE])
    if tick <= parts[q, NEXT]:
        parts[q, NEXT] = tick
        parts[q, STALE] = 1


@njit(inline="always")
def _tell(
    w: int, partitions: int, warps: Any, edge_from: Any, edges: Any, missing: Any, ready: Any, reasons: Any,
    listed: Any, parts: Any,
) -> None:  # fmt: skip
    """Tell the consumers of the warp's node TOLD when they have what they need of it."""
    at = warps[w, FIRST] + warps[w, TOLD]
    for edge in range(edge_from[at], edge_from[at + 1]):
        tick = warps[w, RESULT_AT + edges[edge, 1]]
        if tick == NEVER:
            continue
        consumer = edges[edge, 0]
        if tick > ready[w, consumer]:
            ready[w, consumer] = tick
            reasons[w, consumer] = warps[w, WHY]
        missing[w, consumer] -= 1
        if missing[w, consumer] == 0:
            _offer(w, consumer, partitions, warps, ready, listed, parts)


@njit(inline="always")
def _resource(nodes: Any, node: int, q: int) -> int:
    resource: int = nodes[node, RESOURCE]
    return resource + q if nodes[node, PER_PARTITION] != 0 else resource


@njit(inline="always")
def _look(
    q: int, partitions: int, rotates: bool, nodes: Any, graph: Any, warps: Any, ready: Any, listed: Any, rank: Any,
    free: Any, parts: Any,
) -> None:  # fmt: skip
    """Find the partition's next issue; PICKED is the place of the node in its warp's list."""
    best = NEVER
    best_rank = 0
    best_node = 0
    place = -1
    parts[q, CANDIDATE] = -1
    count = len(warps)
    for w in range(q, count, partitions):
        this = w - parts[q, LAST] - 1 if rotates else rank[q, w // partitions]
        if this < 0:
            this += count
        if w == parts[q, GREEDY]:
            this = -1
        floor = max(parts[q, VALVE], warps[w, GAP])
        if max(warps[w, EARLIEST], floor) > best:
            continue
        earliest = NEVER
        for k in range(warps[w, COUNT]):
            d = listed[w, k]
            earliest = min(earliest, ready[w, d])
            tick = max(ready[w, d], floor)
            if tick > best:
                continue
            tick = max(tick, free[_resource(nodes, graph[warps[w, FIRST] + d], q)])
            if tick > best:
                continue
            if tick < best or this < best_rank or (this == best_rank and d < best_node):
                best, best_rank, best_node, place = tick, this, d, k
                parts[q, CANDIDATE] = w
        warps[w, EARLIEST] = earliest
    parts[q, NEXT] = best
    parts[q, PICKED] = place
    parts[q, STALE] = 0


@njit(inline="always")
def _write_down(
    own: int, tick: int, partitions: int, nodes: Any, graph: Any, warps: Any, ready: Any, listed: Any, written: Any,
    free: Any, spells: Any, newest: Any,
) -> None:  # fmt: skip
    """Before the notes on a subsystem begin anew: write down what its waiting instructions need of them."""
    for w in range(len(warps)):
        for k in range(warps[w, COUNT]):
            d = listed[w, k]
            if _resource(nodes, graph[warps[w, FIRST] + d], w % partitions) == own:
                counted = max(warps[w, COUNTED], warps[w, GAP], ready[w, d])
                if spells[own, 0, SPELL_START] <= counted < tick:
                    written[w, d] = busy_before(own, counted, free, spells, newest)


@njit(cache=True, nogil=True, error_model="numpy")
def run_dataflow(
    partitions: int, issue_ticks: int, launch_ticks: int, per_block: int, full: int, greedy: bool, order: int,
    cycle: int, nodes: Any, levels: Any, graph: Any, producers: Any, edge_from: Any, edges: Any, path_from: Any,
    block_paths: Any, block_types: Any, warps: Any,
    rank: Any, at_rank: Any, age: Any, todo: Any, missing: Any, ready: Any, reasons: Any, listed: Any,
    written: Any, slots: Any, parts: Any, free: Any, busy: Any, changed: Any, pending: Any, pending_from: Any,
    warp_ends: Any, blocks: Any, stalls: Any, spells: Any, newest: Any, table: Any,
) -> int:  # fmt: skip
    """Run all blocks of the share; fills `warp_ends`, `blocks`, `busy`, `stalls` and `table`.

    `stalls` and `table` without rows are left as they are.

    Returns the number of instructions issued.
    """
    issued = 0
    next_block = 0
    full_left = full
    full_end = 0
    record = len(table) > 0
    accounting = len(stalls) > 0
    next_room = 0
    left = 0  # warps in `todo`
    while True:
        tick = NEVER
        for q in range(partitions):
            tick = min(tick, parts[q, NEXT])
        if next_room <= tick:
            if next_room == NEVER:
                break
            b = 0
            while slots[b, ROOM] != next_room:
                b += 1
            slots[b, ROOM] = NEVER
            start = next_room
            next_room = NEVER
            for other in range(len(slots)):
                next_room = min(next_room, slots[other, ROOM])
            if next_block < len(block_types):
                slots[b, SEQUENCE] = next_block
                blocks[next_block, LAUNCHED] = start
                blocks[next_block, BLOCK_SLOT] = b
                slots[b, ENDS] = start
                slots[b, ALIVE] = per_block
                slots[b, ARRIVED] = 0
                for i in range(per_block):
                    w = b * per_block + i
                    path = block_paths[block_types[next_block], i]
                    warps[w, FIRST] = path_from[path]
                    warps[w, LEFT] = path_from[path + 1] - path_from[path]
                    warps[w, DONE] = start
                    warps[w, BLOCK] = next_block
                    warps[w, COUNT] = 0
                    warps[w, GAP] = start
                    warps[w, WAITING] = -1
                    warps[w, TOLD] = -1
                    warps[w, EARLIEST] = NEVER
                    warps[w, BEFORE] = -1
                    warps[w, COUNTED] = start
                    age[w] = next_block * per_block + i
                    if parts[w % partitions, GREEDY] == w:
                        parts[w % partitions, GREEDY] = -1
                    for d in range(warps[w, LEFT]):
                        missing[w, d] = producers[path_from[path] + d]
                        ready[w, d] = start
                        reasons[w, d] = SELECTED
                        if missing[w, d] == 0:
                            _offer(w, d, partitions, warps, ready, listed, parts)
                    todo[i] = w
                left = per_block
                if order != 0:
                    rank_by_launch(slots, per_block, partitions, order < 0, rank, at_rank)
                next_block += 1
        else:
            chosen = -1
            for q in range(partitions):
                if parts[q, NEXT] == tick:
                    if parts[q, STALE] != 0:
                        _look(q, partitions, order == 0, nodes, graph, warps, ready, listed, rank, free, parts)
                        if parts[q, NEXT] != tick:
                            continue
                    if chosen < 0 or parts[q, CANDIDATE] < parts[chosen, CANDIDATE]:
                        chosen = q
            if chosen < 0:
                continue
            q = chosen
            w = parts[q, CANDIDATE]
            b = w // per_block
            d = listed[w, parts[q, PICKED]]
            node = graph[warps[w, FIRST] + d]
            own = _resource(nodes, node, q)
            reason = reasons[w, d]
            bound = ready[w, d]
            if warps[w, GAP] > bound:
                bound = warps[w, GAP]
                reason = WAIT
            if free[own] > bound:
                bound = free[own]
                reason = nodes[node, BUSY_REASON]
            if tick > bound:
                reason = NOT_SELECTED
            if accounting:
                counted = warps[w, COUNTED]
                if tick < counted:  # sooner than a cycle after the last
                    stalls[warps[w, BEFORE], SELECTED] -= counted - tick
                if warps[w, GAP] > counted:
                    stalls[node, WAIT] += warps[w, GAP] - counted
                    counted = warps[w, GAP]
                if warps[w, BEFORE] >= 0 and nodes[warps[w, BEFORE], BARRIER] != 0:
                    stalls[node, AT_BARRIER] += max(0, warps[w, RESULT_AT] - counted)
                    counted = max(counted, warps[w, RESULT_AT])
                if ready[w, d] > counted:
                    stalls[node, reasons[w, d]] += ready[w, d] - counted
                    counted = ready[w, d]
                if tick > counted:
                    if free[own] > counted:
                        throttled = busy_since(own, counted, written[w, d], free, spells, newest)
                        stalls[node, nodes[node, BUSY_REASON]] += throttled
                        counted += throttled
                    stalls[node, NOT_SELECTED] += tick - counted
                warps[w, BEFORE] = node
                warps[w, COUNTED] = tick + cycle
                stalls[node, SELECTED] += cycle
                if tick > free[own]:
                    if newest[own] == spells.shape[1] - 1:
                        _write_down(
                            own, tick, partitions, nodes, graph, warps, ready, listed, written, free, spells, newest
                        )
                    note_spell(own, tick, free, spells, newest)
            tail = full_left == 0 and tick >= full_end
            start = visit_levels(
                levels, nodes[node, LEVEL_FROM], nodes[node, LEVEL_TO], q, tick, tail, free, busy, changed
            )
            if nodes[node, ASYNC] == 0:
                completion = start + nodes[node, LATENCY]
            elif nodes[node, LEVEL_FROM] == nodes[node, LEVEL_TO]:
                completion = tick + nodes[node, LAMBDA]
            else:
                completion = start
            free[own] = tick + nodes[node, LAMBDA]
            busy[own] += nodes[node, LAMBDA]
            if pending_from[own] != pending_from[own + 1]:
                free[own] = admit(own, free[own], completion, pending, pending_from)
            changed[own] = 1
            for other in range(partitions):
                v = parts[other, CANDIDATE]
                if other != q and v >= 0 and parts[other, STALE] == 0:
                    theirs = _resource(nodes, graph[warps[v, FIRST] + listed[v, parts[other, PICKED]]], other)
                    if changed[theirs] != 0:
                        parts[other, STALE] = 1
            changed[own] = 0
            for level in range(nodes[node, LEVEL_FROM], nodes[node, LEVEL_TO]):
                changed[levels[level, LEVEL_RESOURCE] + (q if levels[level, LEVEL_PER_PARTITION] != 0 else 0)] = 0
            parts[q, VALVE] = tick + issue_ticks
            parts[q, LAST] = w
            parts[q, GREEDY] = w if greedy else -1
            parts[q, NEXT] = parts[q, VALVE]
            parts[q, STALE] = 1
            if record:
                row = table[issued]
                row[0], row[1], row[2], row[3] = w, warps[w, BLOCK], node, d
                row[4], row[5], row[6] = tick, completion, reason
            warps[w, RECORD] = issued
            issued += 1
            # The node leaves the list, and its consumers learn of it.
            warps[w, COUNT] -= 1
            listed[w, parts[q, PICKED]] = listed[w, warps[w, COUNT]]
            warps[w, GAP] = tick + nodes[node, STALL]
            warps[w, LEFT] -= 1
            warps[w, TOLD] = d
            warps[w, ISSUED_AT] = tick
            warps[w, READ_AT] = tick + nodes[node, READ_TICKS]
            warps[w, RESULT_AT] = completion
            warps[w, WHY] = nodes[node, DEPENDENT_REASON]
            if nodes[node, BARRIER] != 0:
                slots[b, ARRIVED] += 1
                slots[b, LAST_ARRIVAL] = tick
                warps[w, DONE] = max(warps[w, DONE], tick)
                warps[w, WAITING] = d
                warps[w, RESULT_AT] = NEVER
            else:
                warps[w, DONE] = max(warps[w, DONE], completion, tick)
            todo[0] = w
            left = 1
        # Warps of block slot b that go on or end; the end of one may open a barrier for others.
        while True:
            while left > 0:
                left -= 1
                w = todo[left]
                if warps[w, TOLD] >= 0:
                    _tell(w, partitions, warps, edge_from, edges, missing, ready, reasons, listed, parts)
                if warps[w, LEFT] == 0 and warps[w, WAITING] < 0:
                    if accounting and warps[w, BEFORE] >= 0:
                        over = warps[w, DONE] - warps[w, COUNTED]
                        stalls[warps[w, BEFORE], DRAIN] += max(0, over)
                        stalls[warps[w, BEFORE], SELECTED] += min(0, over)
                    warp_ends[age[w]] = warps[w, DONE]
                    slots[b, ALIVE] -= 1
                    slots[b, ENDS] = max(slots[b, ENDS], warps[w, DONE])
            if slots[b, ARRIVED] == 0 or slots[b, ARRIVED] < slots[b, ALIVE]:
                break
            opens = max(slots[b, LAST_ARRIVAL], slots[b, ENDS])
            slots[b, ARRIVED] = 0
            for i in range(per_block):
                w = b * per_block + i
                d = warps[w, WAITING]
                if d < 0:
                    continue
                resume = opens + nodes[graph[warps[w, FIRST] + d], LATENCY]
                warps[w, WAITING] = -1
                warps[w, TOLD] = d
                warps[w, ISSUED_AT] = NEVER
                warps[w, READ_AT] = NEVER
                warps[w, RESULT_AT] = resume
                warps[w, WHY] = AT_BARRIER
                warps[w, DONE] = max(warps[w, DONE], resume)
                if accounting and warps[w, LEFT] == 0 and resume > warps[w, COUNTED]:
                    stalls[warps[w, BEFORE], AT_BARRIER] += resume - warps[w, COUNTED]
                    warps[w, COUNTED] = resume
                if record:
                    table[warps[w, RECORD], 5] = resume
                todo[left] = w
                left += 1
        if slots[b, ALIVE] == 0 and slots[b, SEQUENCE] >= 0:
            if slots[b, SEQUENCE] < full:
                full_left -= 1
                full_end = max(full_end, slots[b, ENDS])
            slots[b, SEQUENCE] = -1
            slots[b, ROOM] = slots[b, ENDS] + launch_ticks
            next_room = min(next_room, slots[b, ROOM])
    return issued
