"""The compiled event loop for warps that issue in program order.

For each warp it stores the tick at which the next instruction is ready within its warp. Other limits (its subsystem,
its partition's valve) are checked when a partition looks for its next issue. Each partition's next issue is cached. Its
tick is always a lower bound, because every event only delays it, except for warps that start or return from a barrier:
these lower it immediately. `stale` marks entries that must be recomputed before use.
"""

from __future__ import annotations

from typing import Any

from .blocks import begin_phases, resume, signal
from .columns import (
    AFTER,
    ALIVE,
    ARRIVED,
    AT_BARRIER,
    AT_PHASE,
    AWAIT_REASON,
    BARRIER,
    BEFORE,
    BLOCK,
    BUSY_REASON,
    CANDIDATE,
    COMPLETE_AT,
    COUNTED,
    DEPENDENT_REASON,
    DONE,
    DONE_ALL,
    END,
    ENDS,
    GREEDY,
    ISSUED,
    LAST,
    LAST_ARRIVAL,
    LATENCY,
    LEADER,
    LEADING,
    LEVEL_FROM,
    LEVEL_TO,
    LIMIT,
    LOOP_COUNT,
    LOOP_DEPTH,
    LOOP_LEVEL,
    LOOP_OUTER,
    LOOP_START,
    MISSING,
    NEVER,
    NEXT,
    NEXT_BLOCK,
    NEXT_ROOM,
    NO_ROWS,
    NO_SIGN,
    NODE,
    NOT_BEFORE,
    NOT_SELECTED,
    NOW,
    PER_PARTITION,
    PLACE,
    POSITION,
    PRIORITY_BITS,
    READ_TICKS,
    REASON,
    RECORD,
    RESOURCE,
    SELECTED,
    SERVED,
    SETS,
    SETS_READ,
    SKIPPED,
    SPELL_START,
    STALE,
    STALL,
    STAYS,
    STOPPED,
    SYNC,
    TOTAL,
    VALVE,
    WAIT,
    WAIT_FROM,
    WAIT_TO,
    WAITING,
    WRITTEN,
    loop,
    step,
)
from .observe_inorder import observe
from .reasons import busy_before, count_issue, note_spell
from .steps import end_block, end_warp, forget_changes, issued_in, occupy, read_registers, start_block, take_room

PRIORITY = (1 << PRIORITY_BITS) - 1


@step
def _arm(
    w: int, partitions: int, warps: Any, nodes: Any, waits: Any, positions: Any,
    slot_ready: Any, slot_reason: Any, ready: Any, resource: Any, parts: Any, stalls: Any,
) -> None:  # fmt: skip
    """Make the warp's next instruction a candidate: not before AFTER, nor before its slots are ready."""
    tick = warps[w, AFTER]
    reason = warps[w, REASON]
    node = positions[warps[w, PLACE] & NO_SIGN, 0] & NO_SIGN
    for k in range(nodes[node, WAIT_FROM], nodes[node, WAIT_TO]):
        slot = waits[k] & NO_SIGN
        if slot_ready[w, slot] > tick:
            tick = slot_ready[w, slot]
            reason = slot_reason[w, slot]
    if len(stalls) > 0:
        counted = max(warps[w, COUNTED], warps[w, AFTER])
        stalls[node, WAIT] += counted - warps[w, COUNTED]
        stalls[node, reason] += max(0, tick - counted)
        warps[w, COUNTED] = max(counted, tick)
    q = w % partitions
    warps[w, NODE] = node
    warps[w, REASON] = reason
    ready[q, w // partitions] = tick
    resource[q, w // partitions] = nodes[node, RESOURCE] + (q if nodes[node, PER_PARTITION] != 0 else 0)
    tick = max(tick, parts[q, VALVE])
    if tick <= parts[q, NEXT]:
        parts[q, NEXT] = tick
        parts[q, STALE] = 1


@step
def _look(
    q: int, partitions: int, rotates: bool, ready: Any, resource: Any, rank: Any, at_rank: Any,
    free: Any, parts: Any,
) -> None:  # fmt: skip
    """Find the partition's next issue: the earliest tick, and among the warps ready then, the policy's choice.

    Tick and priority form one number, so the search is a minimum without branches.
    """
    floor = parts[q, VALVE]
    last = parts[q, LAST]
    parts[q, STALE] = 0
    favourite = parts[q, GREEDY]
    favoured = NEVER
    if favourite >= 0:
        j = favourite // partitions
        favoured = max(ready[q, j], free[resource[q, j]], floor)
        if favoured == floor:
            # No issue before the valve opens: nothing is earlier.
            parts[q, NEXT] = floor
            parts[q, CANDIDATE] = favourite
            return
    row = ready[q]
    resources = resource[q]
    width = len(row)
    best = NEVER << PRIORITY_BITS
    if rotates:
        start = last // partitions + 1 if last >= 0 else 0
        for j in range(width):
            tick = max(row[j], free[resources[j] & NO_SIGN], floor)
            distance = j - start
            distance = distance + width if distance < 0 else distance
            best = min(best, (tick << PRIORITY_BITS) | distance)
        w = start + (best & PRIORITY)
        w = (w - width if w >= width else w) * partitions + q
    else:
        ranks = rank[q]
        for j in range(width):
            tick = max(row[j], free[resources[j] & NO_SIGN], floor)
            best = min(best, (tick << PRIORITY_BITS) | ranks[j])
        w = at_rank[best & PRIORITY]
    tick = best >> PRIORITY_BITS
    if favoured == tick:
        w = favourite
    parts[q, NEXT] = tick
    parts[q, CANDIDATE] = w if tick < NEVER else -1


@step
def _write_down(
    own: int, tick: int, partitions: int, warps: Any, ready: Any, resource: Any, free: Any, spells: Any, newest: Any
) -> None:
    """Before the notes on a subsystem are reset: save what its waiting instructions need of them."""
    for w in range(len(warps)):
        q, j = w % partitions, w // partitions
        counted = warps[w, COUNTED]
        if ready[q, j] < NEVER and resource[q, j] == own and spells[own, 0, SPELL_START] <= counted < tick:
            warps[w, WRITTEN] = busy_before(own, counted, free, spells, newest)


@loop
def run_in_order(
    partitions: int, issue_ticks: int, launch_ticks: int, per_block: int, greedy: bool, order: int, cycle: int,
    nodes: Any, waits: Any, levels: Any, positions: Any, loops: Any, nest: Any, path_from: Any, block_paths: Any,
    block_types: Any, events: Any, events_from: Any, needed: Any, warps: Any, ready: Any, resource: Any,
    rank: Any, at_rank: Any, age: Any, counters: Any, todo: Any,
    slot_ready: Any, slot_reason: Any, meetings: Any, phases: Any,
    slots: Any, parts: Any, free: Any, busy: Any, changed: Any,
    pending: Any, pending_from: Any, warp_ends: Any, blocks: Any, stalls: Any, spells: Any, newest: Any, table: Any,
    clock: Any, watch: Any, seen: Any, words: Any,
) -> int:  # fmt: skip
    """Resume at the state in `clock`; fills `warp_ends`, `blocks`, `busy`, `stalls` and `table`.

    `stalls` and `table` are left unchanged if they have no rows; a `watch` without rows watches for nothing. Returns
    why it stopped: `columns.DONE_ALL` and the others.
    """
    issued = clock[ISSUED]
    record = len(table) > 0
    accounting = len(stalls) > 0
    watching = len(watch) > 0
    left = 0  # warps in `todo`
    # The leader's iterations and launches in the leading slot are observed, as long as they keep occurring.
    leader, turns, leading, launches = clock[LEADER], 0, clock[LEADING], 0
    look_at = -1
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
                for i in range(per_block):
                    w = b * per_block + i
                    path = block_paths[kind, i]
                    warps[w, PLACE] = path_from[path]
                    warps[w, END] = path_from[path + 1]
                    warps[w, DONE] = tick
                    warps[w, BLOCK] = block
                    warps[w, POSITION] = 0
                    warps[w, AFTER] = tick
                    warps[w, REASON] = SELECTED
                    warps[w, WAITING] = -1
                    warps[w, BEFORE] = -1
                    warps[w, COUNTED] = tick
                    age[w] = block * per_block + i
                    for slot in range(slot_ready.shape[1]):
                        slot_ready[w, slot] = 0
                    todo[i] = w
                left = per_block
                begin_phases(b, kind, per_block, block_paths, events_from, needed, meetings, phases)
                start_block(b, tick, per_block, partitions, order, slots, blocks, parts, rank, at_rank, clock)
                launches += 1
                if watching and (b == leading or launches > 4 * len(slots)):
                    leading, launches, look_at = b, 0, 0
        else:
            chosen = -1
            for q in range(partitions):
                if parts[q, NEXT] == tick:
                    if parts[q, STALE] != 0:
                        _look(q, partitions, order == 0, ready, resource, rank, at_rank, free, parts)
                        if parts[q, NEXT] != tick:
                            continue
                    if chosen < 0 or parts[q, SERVED] < parts[chosen, SERVED]:
                        chosen = q
            if chosen < 0:
                continue  # the bounds were too low: look again
            q = chosen & NO_SIGN
            w = parts[q, CANDIDATE] & NO_SIGN
            b = w // per_block
            node = warps[w, NODE] & NO_SIGN
            own = resource[q, w // partitions] & NO_SIGN
            reason = warps[w, REASON]
            bound = ready[q, w // partitions]
            if free[own] > bound:
                bound = free[own]
                reason = nodes[node, BUSY_REASON]
            if tick > bound:
                reason = NOT_SELECTED
            if accounting:
                count_issue(
                    w, node, own, tick, warps[w, COUNTED], warps[w, WRITTEN], cycle, nodes, warps, stalls, free,
                    spells, newest,
                )  # fmt: skip
                if tick > free[own]:
                    if newest[own] == spells.shape[1] - 1:
                        _write_down(own, tick, partitions, warps, ready, resource, free, spells, newest)
                    note_spell(own, tick, free, spells, newest)
            completion = occupy(
                node, own, q, tick, nodes, levels, clock, free, busy, changed, pending, pending_from
            )  # fmt: skip
            # Other partitions recompute if their next issue needs a resource that was taken.
            if nodes[node, PER_PARTITION] == 0 or nodes[node, LEVEL_FROM] != nodes[node, LEVEL_TO]:
                for other in range(partitions):
                    v = parts[other, CANDIDATE]
                    if v >= 0 and changed[resource[other, v // partitions]] != 0:
                        parts[other, STALE] = 1
            forget_changes(node, own, q, nodes, levels, changed)
            held = read_registers(q, node, tick, nodes, parts)
            stays = greedy and nodes[node, STAYS] != 0
            issued_in(q, w, tick, issue_ticks + held, stays, nodes[node, PER_PARTITION] == 0, parts)
            ready[q, w // partitions] = NEVER
            if record:
                row = table[issued]
                row[0], row[1], row[2], row[3] = w, warps[w, BLOCK], node, warps[w, POSITION]
                row[4], row[5], row[6] = tick, completion, reason
            warps[w, RECORD] = issued
            warps[w, POSITION] += 1
            issued += 1
            # The results, and the warp's next place.
            slot = nodes[node, SETS_READ]
            if slot >= 0 and tick + nodes[node, READ_TICKS] > slot_ready[w, slot]:
                slot_ready[w, slot] = tick + nodes[node, READ_TICKS]
                slot_reason[w, slot] = nodes[node, DEPENDENT_REASON]
            place = warps[w, PLACE] & NO_SIGN
            loop = positions[place, 1]
            place += 1
            while loop >= 0:
                depth = loops[loop, LOOP_DEPTH]
                counters[w, depth] += 1
                if counters[w, depth] < loops[loop, LOOP_COUNT]:
                    place = loops[loop, LOOP_START]
                    if watching and loops[loop, LOOP_LEVEL] > 0:
                        turns += 1
                        if w == leader or turns > 4 * len(warps):
                            leader, turns, look_at = w, 0, loops[loop, LOOP_LEVEL]
                    break
                counters[w, depth] = 0
                loop = loops[loop, LOOP_OUTER]
            warps[w, PLACE] = place
            warps[w, AFTER] = tick + nodes[node, STALL]
            warps[w, REASON] = WAIT
            if nodes[node, BARRIER] != 0:
                slots[b, ARRIVED] += 1
                slots[b, LAST_ARRIVAL] = tick
                warps[w, DONE] = max(warps[w, DONE], tick)
                warps[w, WAITING] = node
            else:
                slot = nodes[node, SETS]
                if slot >= 0 and completion > slot_ready[w, slot]:
                    slot_ready[w, slot] = completion
                    slot_reason[w, slot] = nodes[node, DEPENDENT_REASON]
                warps[w, DONE] = max(warps[w, DONE], completion, tick)
                todo[0] = w
                left = 1
                if nodes[node, SYNC] != 0:
                    opened = signal(w, b, node, tick, completion, nodes, slot_ready, events, meetings, phases)
                    if meetings[w, AT_PHASE] >= 0:
                        # It resumes with the others that await a phase, or when that phase is complete.
                        warps[w, WAITING] = node
                        left = 0
                    if opened:
                        for i in range(per_block):
                            v = b * per_block + i
                            phase = meetings[v, AT_PHASE]
                            if phase >= 0 and phases[b, phase, MISSING] == 0:
                                meetings[v, AT_PHASE] = -1
                                at = warps[v, WAITING]
                                goes_on = max(phases[b, phase, COMPLETE_AT], tick) + nodes[at, LATENCY]
                                resume(
                                    v, goes_on, nodes[at, AWAIT_REASON], False, record, nodes, positions, warps,
                                    slot_ready, slot_reason, stalls, table,
                                )  # fmt: skip
                                todo[left] = v
                                left += 1
        # Warps of block slot b that resume or end; the end of one may open a barrier for others.
        while True:
            while left > 0:
                left -= 1
                w = todo[left] & NO_SIGN
                if warps[w, PLACE] < warps[w, END]:
                    _arm(
                        w, partitions, warps, nodes, waits, positions, slot_ready, slot_reason, ready, resource,
                        parts, stalls,
                    )  # fmt: skip
                else:
                    end_warp(w, b, warps, age, slots, warp_ends, stalls)
            if slots[b, ARRIVED] == 0 or slots[b, ARRIVED] < slots[b, ALIVE]:
                break
            # All have arrived or ended: the barrier opens.
            opens = max(slots[b, LAST_ARRIVAL], slots[b, ENDS])
            slots[b, ARRIVED] = 0
            for i in range(per_block):
                w = b * per_block + i
                node = warps[w, WAITING]
                if node < 0 or meetings[w, AT_PHASE] >= 0:
                    continue
                # Time at the barrier is charged to the next instruction; if there is none, to the barrier itself.
                resume(
                    w, opens + nodes[node, LATENCY], AT_BARRIER, True, record, nodes, positions, warps, slot_ready,
                    slot_reason, stalls, table,
                )  # fmt: skip
                todo[left] = w
                left += 1
        end_block(b, launch_ticks, slots, clock)
        if look_at >= 0:
            if issued >= watch[look_at, NOT_BEFORE]:
                clock[ISSUED] = issued
                clock[NOW] = tick
                clock[LEADER] = leader
                clock[LEADING] = leading
                code = observe(
                    look_at, partitions, per_block, order == 0, greedy, nodes, positions, nest, warps, ready, resource,
                    counters, slot_ready, slot_reason, slots, parts, free, pending, pending_from, stalls, spells,
                    newest, clock, watch, seen, words,
                )  # fmt: skip
                if code != DONE_ALL:
                    return code
            look_at = -1
