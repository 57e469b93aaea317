"""Compiled: a run's state described in tick-independent words, and whether it was met before.

Two moments with equal words evolve identically, with every tick shifted by the time between them, as long as no loop of
a warp ends and each launched block is like the one launched before. So a tick in the past is equivalent to now, and a
tick hidden behind a certain later event is equivalent to that event. Loop counters are not part of the words: they are
checked separately (`engine_inorder.py`).

A hash of the words is stored; a hash that was stored before is reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .columns import (
    AGO,
    ALIVE,
    ARRIVED,
    AWAITED,
    COUNT_SEEN,
    DONE_ALL,
    ENDS,
    EVEN_FREE,
    FULL,
    FULL_END,
    FULL_LEFT,
    GREEDY,
    ISSUED,
    LAST,
    LAST_ARRIVAL,
    LEVEL,
    LIMIT,
    MUTE,
    NEVER,
    NOT_BEFORE,
    NOTICED,
    NOW,
    ODD_FREE,
    PATIENCE,
    ROOM,
    SEQUENCE,
    SERVED,
    SPARING,
    STOPPED,
    VALVE,
    part,
    step,
)


@part
def describe_machine(
    n: int, accounting: bool, rotates: bool, greedy: bool, slots: Any, parts: Any, free: Any, pending: Any,
    pending_from: Any, clock: Any, words: Any,
) -> int:  # fmt: skip
    """Write the state that belongs to no single warp from `words[n]` on; returns where the words end."""
    now = clock[NOW]
    partitions = len(parts)
    for b in range(len(slots)):
        words[n] = slots[b, ALIVE] if slots[b, SEQUENCE] >= 0 else -1
        words[n + 1] = max(0, slots[b, ROOM] - now) if slots[b, ROOM] < NEVER else -1
        n += 2
        if slots[b, SEQUENCE] < 0:
            continue
        older = 0
        if not rotates:
            for other in range(len(slots)):
                older += 0 <= slots[other, SEQUENCE] < slots[b, SEQUENCE]
        words[n] = older
        words[n + 1] = slots[b, SEQUENCE] < clock[FULL]
        words[n + 2] = slots[b, ARRIVED]
        words[n + 3] = max(0, slots[b, LAST_ARRIVAL] - now) if slots[b, ARRIVED] > 0 else 0
        words[n + 4] = max(0, slots[b, ENDS] - now)
        n += 5
    words[n] = -1 if clock[FULL_LEFT] > 0 else max(0, clock[FULL_END] - now)
    n += 1
    soonest = NEVER
    for q in range(partitions):
        soonest = min(soonest, max(now, parts[q, VALVE]))
        words[n] = max(0, parts[q, VALVE] - now)
        words[n + 1] = parts[q, LAST] if rotates else -1
        words[n + 2] = parts[q, GREEDY] if greedy else -1
        before = 0  # partitions that a shared subsystem served longer ago: only the order of the ticks matters
        for other in range(partitions):
            before += parts[other, SERVED] < parts[q, SERVED]
        words[n + 3] = before
        n += 4
        if parts[q, EVEN_FREE] + parts[q, ODD_FREE] > 0:  # else no operand was ever read there
            # None is read before the valve opens.
            opens = max(now, parts[q, VALVE])
            words[n] = max(0, parts[q, EVEN_FREE] - opens)
            words[n + 1] = max(0, parts[q, ODD_FREE] - opens)
            n += 2
    # No subsystem is used before some valve opens; only the accounting looks at it earlier.
    if accounting:
        soonest = now
    for r in range(len(free)):
        words[n] = max(0, free[r] - soonest)
        n += 1
    for r in range(len(free)):
        first, end = pending_from[r], pending_from[r + 1]
        for place in range(first, end):  # the order of the places is irrelevant: sort them
            value = max(0, pending[place] - now)
            at = n
            while at > n - (place - first) and words[at - 1] > value:
                words[at] = words[at - 1]
                at -= 1
            words[at] = value
            n += 1
    return n


@step
def mixed(key: Any, word: int) -> Any:
    """The hash `key` extended by one word."""
    key = (key ^ np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15)
    return key ^ (key >> np.uint64(29))


@part
def noticed(level: int, count: int, cost: int, watch: Any, seen: Any, clock: Any, words: Any) -> int:
    """Store the hash of the first `count` words; whether the loop should return, and why.

    `cost` is the number of words that were written.
    """
    key = np.uint64(count)
    for place in range(count):
        key = mixed(key, words[place])
    found = np.int64(key >> np.uint64(1)) | 1
    number = watch[level, COUNT_SEEN]
    watch[level, COUNT_SEEN] = number + 1
    watch[level, NOT_BEFORE] = clock[ISSUED] + cost // watch[level, SPARING]
    entry = seen[level, found % seen.shape[1]]
    met, ago = entry[0] == found, number - entry[1]
    entry[0], entry[1] = found, number
    clock[LEVEL] = level
    if watch[level, AWAITED] != 0:
        if found == watch[level, AWAITED]:
            return NOTICED
        watch[level, PATIENCE] -= 1
        if watch[level, PATIENCE] <= 0:
            watch[level, AWAITED] = 0
    elif met and clock[ISSUED] >= watch[level, MUTE]:
        watch[level, AWAITED] = found
        watch[level, AGO] = ago
        return NOTICED
    return STOPPED if clock[ISSUED] >= clock[LIMIT] else DONE_ALL
