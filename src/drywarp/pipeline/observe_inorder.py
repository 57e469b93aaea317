"""Compiled: the state of warps that issue in program order, in tick-independent words."""

from __future__ import annotations

from typing import Any

from .columns import (
    AFTER,
    AT_BARRIER,
    BEFORE,
    BUSY_REASON,
    COUNTED,
    DONE,
    END,
    NEVER,
    NODE,
    NOT_SELECTED,
    NOW,
    PLACE,
    SEQUENCE,
    VALVE,
    WAIT,
    WAITING,
    WORDS,
    WRITTEN,
    part,
)
from .observe import describe_machine, noticed
from .reasons import busy_since


@part
def settle(
    now: int, partitions: int, per_block: int, nodes: Any, positions: Any, warps: Any, ready: Any, resource: Any,
    slots: Any, free: Any, stalls: Any, spells: Any, newest: Any,
) -> None:  # fmt: skip
    """Account for all that is known of the time until `now`, and for the rest of a subsystem's busy period.

    The next issue or the barrier would account for it later; afterwards it no longer matters when the wait began.
    """
    for w in range(len(warps)):
        if slots[w // per_block, SEQUENCE] < 0:
            continue
        counted = warps[w, COUNTED]
        q, j = w % partitions, w // partitions
        if ready[q, j] < NEVER:
            own = resource[q, j]
            until = max(now, free[own])
            if counted >= until:
                continue
            node = warps[w, NODE]
            if free[own] > counted:
                throttled = busy_since(own, counted, warps[w, WRITTEN], free, spells, newest)
                stalls[node, nodes[node, BUSY_REASON]] += throttled
                counted += throttled
            stalls[node, NOT_SELECTED] += until - counted
            warps[w, COUNTED] = until
        elif warps[w, WAITING] >= 0 and counted < now:
            node = warps[w, WAITING]
            if warps[w, PLACE] < warps[w, END]:
                node = positions[warps[w, PLACE], 0]
                waits = min(now, max(counted, warps[w, AFTER]))
                stalls[node, WAIT] += waits - counted
                counted = waits
            stalls[node, AT_BARRIER] += now - counted
            warps[w, COUNTED] = now


@part
def describe_warps(
    accounting: bool, partitions: int, per_block: int, warps: Any, ready: Any, resource: Any, slot_ready: Any,
    slot_reason: Any, slots: Any, parts: Any, free: Any, clock: Any, words: Any,
) -> int:  # fmt: skip
    """Write the words of all warps; returns where they end."""
    now = clock[NOW]
    n = 0
    for w in range(len(warps)):
        if slots[w // per_block, SEQUENCE] < 0:
            continue
        q, j = w % partitions, w // partitions
        armed = ready[q, j] < NEVER
        if not armed and warps[w, WAITING] < 0:
            words[n] = -1  # it has ended
            n += 1
            continue
        words[n] = warps[w, PLACE]
        words[n + 1] = max(0, warps[w, DONE] - now)
        if armed:  # being ready before the subsystem and the valve changes nothing
            words[n + 2] = max(now, ready[q, j], free[resource[q, j]], parts[q, VALVE]) - now
            words[n + 3] = -1
        else:
            words[n + 2] = max(0, warps[w, AFTER] - now)
            words[n + 3] = warps[w, WAITING]
        n += 4
        if accounting:
            words[n] = max(0, warps[w, COUNTED] - now)
            words[n + 1] = warps[w, BEFORE] if warps[w, COUNTED] > now else -1
            n += 2
        for slot in range(slot_ready.shape[1]):
            ahead = slot_ready[w, slot] - now
            if ahead <= 0:
                words[n] = 0
            else:
                words[n] = (ahead << 4) + slot_reason[w, slot] if accounting else ahead
            n += 1
    return n


@part
def observe(
    level: int, partitions: int, per_block: int, rotates: bool, greedy: bool, nodes: Any, positions: Any, nest: Any,
    warps: Any, ready: Any, resource: Any, counters: Any, slot_ready: Any, slot_reason: Any, slots: Any, parts: Any,
    free: Any, pending: Any, pending_from: Any, stalls: Any, spells: Any, newest: Any, clock: Any, watch: Any,
    seen: Any, words: Any,
) -> int:  # fmt: skip
    """Describe the state and store it; whether the loop should return, and why.

    Iterations of loops that are watched at `level` or further out are excluded from what is stored.
    """
    accounting = len(stalls) > 0
    if accounting:
        settle(
            clock[NOW], partitions, per_block, nodes, positions, warps, ready, resource, slots, free, stalls, spells,
            newest,
        )  # fmt: skip
    n = describe_warps(
        accounting, partitions, per_block, warps, ready, resource, slot_ready, slot_reason, slots, parts, free, clock,
        words,
    )  # fmt: skip
    n = describe_machine(n, accounting, rotates, greedy, slots, parts, free, pending, pending_from, clock, words)
    clock[WORDS] = n
    for w in range(len(warps)):
        if slots[w // per_block, SEQUENCE] < 0 or warps[w, PLACE] == warps[w, END]:
            continue
        for depth in range(counters.shape[1]):
            own = nest[warps[w, PLACE], depth]
            if own == 0 or own > level:
                words[n] = counters[w, depth]
                n += 1
    return noticed(level, n, n, watch, seen, clock, words)
