"""Compiled steps that the in-order and the dataflow loop share, inlined into both."""

from __future__ import annotations

from typing import Any

from .columns import (
    ALIVE,
    ARRIVED,
    ASYNC,
    BEFORE,
    BLOCK_SLOT,
    COUNTED,
    DONE,
    DRAIN,
    ENDS,
    EVEN_FREE,
    FULL,
    FULL_END,
    FULL_LEFT,
    GREEDY,
    LAMBDA,
    LAST,
    LATENCY,
    LAUNCHED,
    LEVEL_FROM,
    LEVEL_LAMBDA,
    LEVEL_PER_PARTITION,
    LEVEL_QUEUES,
    LEVEL_RESOURCE,
    LEVEL_TAIL,
    LEVEL_TO,
    NEVER,
    NEXT,
    NEXT_BLOCK,
    NEXT_ROOM,
    ODD_FREE,
    READ_WINDOW,
    READS_EVEN,
    READS_ODD,
    ROOM,
    SELECTED,
    SEQUENCE,
    SERVED,
    STALE,
    VALVE,
    step,
)


@step
def take_room(slots: Any, clock: Any) -> int:
    """The block slot that first has room, the lowest if several; it is then marked as occupied."""
    b = 0
    while slots[b, ROOM] != clock[NEXT_ROOM]:
        b += 1
    slots[b, ROOM] = NEVER
    room = NEVER
    for other in range(len(slots)):
        room = min(room, slots[other, ROOM])
    clock[NEXT_ROOM] = room
    return b


@step
def start_block(
    b: int, start: int, per_block: int, partitions: int, order: int, slots: Any, blocks: Any, parts: Any, rank: Any,
    at_rank: Any, clock: Any,
) -> None:  # fmt: skip
    """Start the next block in slot `b`: everything except its warps' own state."""
    block = clock[NEXT_BLOCK]
    slots[b, SEQUENCE] = block
    blocks[block, LAUNCHED] = start
    blocks[block, BLOCK_SLOT] = b
    slots[b, ENDS] = start
    slots[b, ALIVE] = per_block
    slots[b, ARRIVED] = 0
    for w in range(b * per_block, (b + 1) * per_block):
        if parts[w % partitions, GREEDY] == w:
            parts[w % partitions, GREEDY] = -1
    if order != 0:
        rank_by_launch(slots, per_block, partitions, order < 0, rank, at_rank)
    clock[NEXT_BLOCK] = block + 1


@step
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


@step
def end_warp(w: int, b: int, warps: Any, age: Any, slots: Any, warp_ends: Any, stalls: Any) -> None:
    """Warp `w` of slot `b` has issued everything: it ends when its results are ready."""
    if len(stalls) > 0 and warps[w, BEFORE] >= 0:
        over = warps[w, DONE] - warps[w, COUNTED]
        stalls[warps[w, BEFORE], DRAIN] += max(0, over)
        stalls[warps[w, BEFORE], SELECTED] += min(0, over)
    warp_ends[age[w]] = warps[w, DONE]
    slots[b, ALIVE] -= 1
    slots[b, ENDS] = max(slots[b, ENDS], warps[w, DONE])


@step
def end_block(b: int, launch_ticks: int, slots: Any, clock: Any) -> None:
    """Make room where the last warp of slot `b` has ended."""
    if slots[b, ALIVE] == 0 and slots[b, SEQUENCE] >= 0:
        if slots[b, SEQUENCE] < clock[FULL]:
            clock[FULL_LEFT] -= 1
            clock[FULL_END] = max(clock[FULL_END], slots[b, ENDS])
        slots[b, SEQUENCE] = -1
        slots[b, ROOM] = slots[b, ENDS] + launch_ticks
        clock[NEXT_ROOM] = min(clock[NEXT_ROOM], slots[b, ROOM])


@step
def occupy(
    node: int, own: int, q: int, tick: int, nodes: Any, levels: Any, clock: Any, free: Any, busy: Any, changed: Any,
    pending: Any, pending_from: Any,
) -> int:  # fmt: skip
    """Occupy the instruction's subsystem and levels; returns when it completes.

    `changed` marks the occupied resources until `forget_changes`.
    """
    tail = clock[FULL_LEFT] == 0 and tick >= clock[FULL_END]
    start = visit_levels(levels, nodes[node, LEVEL_FROM], nodes[node, LEVEL_TO], q, tick, tail, free, busy, changed)
    if nodes[node, ASYNC] == 0:
        completion: int = start + nodes[node, LATENCY]
    elif nodes[node, LEVEL_FROM] == nodes[node, LEVEL_TO]:
        completion = tick + nodes[node, LAMBDA]
    else:
        completion = start
    free[own] = tick + nodes[node, LAMBDA]
    busy[own] += nodes[node, LAMBDA]
    if pending_from[own] != pending_from[own + 1]:
        free[own] = admit(own, free[own], completion, pending, pending_from)
    changed[own] = 1
    return completion


@step
def forget_changes(node: int, own: int, q: int, nodes: Any, levels: Any, changed: Any) -> None:
    """Mark all subsystems as unchanged."""
    changed[own] = 0
    for level in range(nodes[node, LEVEL_FROM], nodes[node, LEVEL_TO]):
        changed[levels[level, LEVEL_RESOURCE] + (q if levels[level, LEVEL_PER_PARTITION] != 0 else 0)] = 0


@step
def visit_levels(
    levels: Any, first: int, end: int, partition: int, tick: int, tail: bool, free: Any, busy: Any, changed: Any
) -> int:
    """Send a transaction through its levels; returns when the last one starts on it.

    It reaches the next level when the previous one starts on it: constant times between them are part of Λ, so the
    return value minus `tick` is the queueing delay.
    """
    for level in range(first, end):
        resource = levels[level, LEVEL_RESOURCE]
        if levels[level, LEVEL_PER_PARTITION] != 0:
            resource += partition
        cost = levels[level, LEVEL_TAIL] if tail else levels[level, LEVEL_LAMBDA]
        start = max(tick, free[resource])
        free[resource] = start + cost
        if levels[level, LEVEL_QUEUES] != 0:
            tick = start
        busy[resource] += cost
        changed[resource] = 1
    return tick


@step
def admit(resource: int, free_at: int, completion: int, pending: Any, pending_from: Any) -> int:
    """Record an issue on a subsystem that limits outstanding instructions; returns when it accepts the next.

    The earliest of the recorded completions is replaced by this one: the next instruction finds room once the then
    earliest has completed.
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


@step
def issued_in(q: int, w: int, tick: int, issue_ticks: int, greedy: bool, shared: bool, parts: Any) -> None:
    """Warp `w` issued in partition `q`: the valve closes, and the next issue must be recomputed.

    `shared` says that the instruction used a subsystem shared by all partitions.
    """
    if shared:
        parts[q, SERVED] = tick
    parts[q, VALVE] = tick + issue_ticks
    parts[q, LAST] = w
    parts[q, GREEDY] = w if greedy else -1
    parts[q, NEXT] = parts[q, VALVE]
    parts[q, STALE] = 1


@step
def read_registers(q: int, node: int, tick: int, nodes: Any, parts: Any) -> int:
    """Occupy the register file's banks for the instruction's operands; returns how long it is delayed before it reads.

    It waits until both banks have time for it within its window, and delays what issues after it.
    """
    even, odd, window = nodes[node, READS_EVEN], nodes[node, READS_ODD], nodes[node, READ_WINDOW]
    start = tick
    if even > 0:
        start = max(start, parts[q, EVEN_FREE] + even - window)
    if odd > 0:
        start = max(start, parts[q, ODD_FREE] + odd - window)
    if even > 0:
        parts[q, EVEN_FREE] = max(start, parts[q, EVEN_FREE]) + even
    if odd > 0:
        parts[q, ODD_FREE] = max(start, parts[q, ODD_FREE]) + odd
    held: int = start - tick
    return held
