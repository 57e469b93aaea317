"""The compiled event loop for warps that may issue any node whose producers have completed.

Like the loop in `inorder.py`, whose notes on the cached next issue of a partition apply here too. A warp has a list of
candidates instead of one next instruction: the nodes whose producers have all issued, so the tick at which they become
ready is known.
"""

from __future__ import annotations

from typing import Any

from .columns import (
    ALIVE,
    ARRIVED,
    AT_BARRIER,
    BARRIER,
    BEFORE,
    BLOCK,
    BUSY_REASON,
    CANDIDATE,
    COUNT,
    COUNTED,
    DEPENDENT_REASON,
    DONE,
    DONE_ALL,
    EARLIEST,
    ENDS,
    FIRST,
    GAP,
    GREEDY,
    ISSUED,
    ISSUED_AT,
    LAST,
    LAST_ARRIVAL,
    LATENCY,
    LEFT,
    LIMIT,
    NEVER,
    NEXT,
    NEXT_BLOCK,
    NEXT_ROOM,
    NO_ROWS,
    NOT_SELECTED,
    ONLY,
    PER_PARTITION,
    PICKED,
    READ_AT,
    READ_TICKS,
    RECORD,
    RESOURCE,
    RESULT_AT,
    SELECTED,
    SERVED,
    SKIPPED,
    SPELL_START,
    STALE,
    STALL,
    STAYS,
    STOPPED,
    TOLD,
    TOTAL,
    VALVE,
    WAIT,
    WAITING,
    WHY,
    loop,
    step,
)
from .reasons import busy_before, count_issue, note_spell
from .steps import end_block, end_warp, forget_changes, issued_in, occupy, read_registers, start_block, take_room


@step
def _resource(nodes: Any, node: int, q: int) -> int:
    resource: int = nodes[node, RESOURCE]
    return resource + q if nodes[node, PER_PARTITION] != 0 else resource


# An entry of a warp's list: the node, and from NODE_BITS on the subsystem to which it issues.
NODE_BITS = 32
NODE_MASK = (1 << NODE_BITS) - 1


@step
def _offer(
    w: int, d: int, partitions: int, nodes: Any, graph: Any, warps: Any, ready: Any, listed: Any, parts: Any
) -> None:
    """Add a node whose ready tick is known to the warp's candidates."""
    own = _resource(nodes, graph[warps[w, FIRST] + d], w % partitions)
    listed[w, warps[w, COUNT]] = d | (own << NODE_BITS)
    if warps[w, COUNT] == 0:
        warps[w, ONLY] = own
    elif warps[w, ONLY] != own:
        warps[w, ONLY] = -1
    warps[w, COUNT] += 1
    warps[w, EARLIEST] = min(warps[w, EARLIEST], ready[w, d])
    q = w % partitions
    tick = max(ready[w, d], warps[w, GAP], parts[q, VALVE])
    if tick <= parts[q, NEXT]:
        parts[q, NEXT] = tick
        parts[q, STALE] = 1


@step
def _tell(
    w: int, partitions: int, nodes: Any, graph: Any, warps: Any, edge_from: Any, edges: Any, missing: Any, ready: Any,
    reasons: Any, listed: Any, parts: Any,
) -> None:  # fmt: skip
    """Tell the consumers of the warp's node TOLD when their needs of it are met."""
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
            _offer(w, consumer, partitions, nodes, graph, warps, ready, listed, parts)


@step
def _look(
    q: int, partitions: int, rotates: bool, now: int, warps: Any, ready: Any, listed: Any, at_rank: Any, free: Any,
    parts: Any,
) -> None:  # fmt: skip
    """Find the partition's next issue, not before `now`; PICKED is the place of the node in its warp's list.

    Warps are tried in the policy's order, so ties go to the first, and nothing beats the first that can issue at once.
    Among a warp's nodes, the first in its program is taken.
    """
    best, best_node, place, candidate = NEVER, NEVER, -1, -1
    soonest = max(now, parts[q, VALVE])
    favourite = parts[q, GREEDY]
    asked = (len(warps) - q + partitions - 1) // partitions if rotates else len(warps)
    start = parts[q, LAST] // partitions + 1
    for i in range(-1, asked):
        if i < 0:
            w = favourite
        elif rotates:
            w = start + i
            w = (w - asked if w >= asked else w) * partitions + q
        else:
            w = at_rank[i]
        if w < 0 or w % partitions != q or (i >= 0 and w == favourite):
            continue
        floor = max(soonest, warps[w, GAP])
        if max(warps[w, EARLIEST], floor) >= best or (warps[w, ONLY] >= 0 and free[warps[w, ONLY]] >= best):
            continue
        earliest, only = NEVER, listed[w, 0] >> NODE_BITS
        for k in range(warps[w, COUNT]):
            d = listed[w, k] & NODE_MASK
            own = listed[w, k] >> NODE_BITS
            only = only if own == only else -1
            earliest = min(earliest, ready[w, d])
            tick = max(ready[w, d], floor, free[own])
            if tick < best or (tick == best and w == candidate and d < best_node):
                best, best_node, place, candidate = tick, d, k, w
        warps[w, EARLIEST], warps[w, ONLY] = earliest, only
        if best == soonest:
            break
    parts[q, NEXT] = best
    parts[q, PICKED] = place
    parts[q, CANDIDATE] = candidate
    parts[q, STALE] = 0


@step
def _write_down(
    own: int, tick: int, warps: Any, ready: Any, listed: Any, written: Any, free: Any, spells: Any, newest: Any
) -> None:
    """Before the notes on a subsystem are reset: save what its waiting instructions need of them."""
    for w in range(len(warps)):
        for k in range(warps[w, COUNT]):
            d = listed[w, k] & NODE_MASK
            if listed[w, k] >> NODE_BITS == own:
                counted = max(warps[w, COUNTED], warps[w, GAP], ready[w, d])
                if spells[own, 0, SPELL_START] <= counted < tick:
                    written[w, d] = busy_before(own, counted, free, spells, newest)


@loop
def run_dataflow(
    partitions: int, issue_ticks: int, launch_ticks: int, per_block: int, greedy: bool, order: int, cycle: int,
    nodes: Any, levels: Any, graph: Any, producers: Any, edge_from: Any, edges: Any, path_from: Any,
    block_paths: Any, block_types: Any, warps: Any,
    rank: Any, at_rank: Any, age: Any, todo: Any, missing: Any, ready: Any, reasons: Any, listed: Any,
    written: Any, slots: Any, parts: Any, free: Any, busy: Any, changed: Any, pending: Any, pending_from: Any,
    warp_ends: Any, blocks: Any, stalls: Any, spells: Any, newest: Any, table: Any,
    clock: Any,
) -> int:  # fmt: skip
    """Resume at the state in `clock`; fills `warp_ends`, `blocks`, `busy`, `stalls` and `table`.

    `stalls` and `table` are left unchanged if they have no rows. A node that has issued has `missing` -1. Returns why
    it stopped: `columns.DONE_ALL` and the others.
    """
    issued = clock[ISSUED]
    record = len(table) > 0
    accounting = len(stalls) > 0
    left = 0  # warps in `todo`
    while True:
        if record and issued >= clock[LIMIT]:  # there is no room to write down more issues
            clock[ISSUED] = issued
            return STOPPED
        tick = NEVER
        for q in range(partitions):
            tick = min(tick, parts[q, NEXT])
        if clock[NEXT_ROOM] <= tick:
            if clock[NEXT_ROOM] == NEVER:
                clock[ISSUED] = issued
                return DONE_ALL
            if clock[NEXT_BLOCK] == len(blocks) and clock[NEXT_BLOCK] < clock[TOTAL]:
                clock[ISSUED] = issued
                return NO_ROWS
            tick = clock[NEXT_ROOM]
            b = take_room(slots, clock)
            if clock[NEXT_BLOCK] < clock[TOTAL]:
                block = clock[NEXT_BLOCK]
                kind = block_types[(block + clock[SKIPPED]) % len(block_types)]
                start_block(b, tick, per_block, partitions, order, slots, blocks, parts, rank, at_rank, clock)
                for i in range(per_block):
                    w = b * per_block + i
                    path = block_paths[kind, i]
                    warps[w, FIRST] = path_from[path]
                    warps[w, LEFT] = path_from[path + 1] - path_from[path]
                    warps[w, DONE] = tick
                    warps[w, BLOCK] = block
                    warps[w, COUNT] = 0
                    warps[w, GAP] = tick
                    warps[w, WAITING] = -1
                    warps[w, TOLD] = -1
                    warps[w, EARLIEST] = NEVER
                    warps[w, BEFORE] = -1
                    warps[w, COUNTED] = tick
                    age[w] = block * per_block + i
                    for d in range(warps[w, LEFT]):
                        missing[w, d] = producers[path_from[path] + d]
                        ready[w, d] = tick
                        reasons[w, d] = SELECTED
                        if missing[w, d] == 0:
                            _offer(w, d, partitions, nodes, graph, warps, ready, listed, parts)
                    todo[i] = w
                left = per_block
        else:
            chosen = -1
            for q in range(partitions):
                if parts[q, NEXT] == tick:
                    if parts[q, STALE] != 0:
                        _look(q, partitions, order == 0, tick, warps, ready, listed, at_rank, free, parts)
                        if parts[q, NEXT] != tick:
                            continue
                    if chosen < 0 or parts[q, SERVED] < parts[chosen, SERVED]:
                        chosen = q
            if chosen < 0:
                continue
            q = chosen
            w = parts[q, CANDIDATE]
            b = w // per_block
            d = listed[w, parts[q, PICKED]] & NODE_MASK
            own = listed[w, parts[q, PICKED]] >> NODE_BITS
            node = graph[warps[w, FIRST] + d]
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
                if warps[w, GAP] > counted:
                    stalls[node, WAIT] += warps[w, GAP] - counted
                    counted = warps[w, GAP]
                if warps[w, BEFORE] >= 0 and nodes[warps[w, BEFORE], BARRIER] != 0:
                    stalls[node, AT_BARRIER] += max(0, warps[w, RESULT_AT] - counted)
                    counted = max(counted, warps[w, RESULT_AT])
                if ready[w, d] > counted:
                    stalls[node, reasons[w, d]] += ready[w, d] - counted
                    counted = ready[w, d]
                count_issue(
                    w, node, own, tick, counted, written[w, d], cycle, nodes, warps, stalls, free, spells, newest
                )
                if tick > free[own]:
                    if newest[own] == spells.shape[1] - 1:
                        _write_down(own, tick, warps, ready, listed, written, free, spells, newest)
                    note_spell(own, tick, free, spells, newest)
            completion = occupy(node, own, q, tick, nodes, levels, clock, free, busy, changed, pending, pending_from)
            for other in range(partitions):
                v = parts[other, CANDIDATE]
                known = other != q and v >= 0 and parts[other, STALE] == 0
                if known and changed[listed[v, parts[other, PICKED]] >> NODE_BITS] != 0:
                    parts[other, STALE] = 1
            forget_changes(node, own, q, nodes, levels, changed)
            held = read_registers(q, node, tick, nodes, parts)
            stays = greedy and nodes[node, STAYS] != 0
            issued_in(q, w, tick, issue_ticks + held, stays, nodes[node, PER_PARTITION] == 0, parts)
            if record:
                row = table[issued]
                row[0], row[1], row[2], row[3] = w, warps[w, BLOCK], node, d
                row[4], row[5], row[6] = tick, completion, reason
            warps[w, RECORD] = issued
            issued += 1
            # The node leaves the list, and its consumers are notified.
            warps[w, COUNT] -= 1
            listed[w, parts[q, PICKED]] = listed[w, warps[w, COUNT]]
            missing[w, d] = -1
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
        # Warps of block slot b that resume or end; the end of one may open a barrier for others.
        while True:
            while left > 0:
                left -= 1
                w = todo[left]
                if warps[w, TOLD] >= 0:
                    _tell(w, partitions, nodes, graph, warps, edge_from, edges, missing, ready, reasons, listed, parts)
                if warps[w, LEFT] == 0 and warps[w, WAITING] < 0:
                    end_warp(w, b, warps, age, slots, warp_ends, stalls)
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
        end_block(b, launch_ticks, slots, clock)
