"""Compiled: the state of warps that issue out of program order, in tick-independent words.

The words do not depend on how far a warp has advanced either: nodes count from its first one that has not issued. They
hold only part of the state, a hash of each warp's first nodes; `jump_dataflow.py` compares the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .columns import (
    BEFORE,
    COUNT,
    DONE,
    FIRST,
    GAP,
    LEFT,
    LOW,
    NODES,
    NOW,
    PER_PARTITION,
    RESOURCE,
    SEQUENCE,
    VALVE,
    WAITING,
    WORDS,
    part,
    step,
)
from .observe import describe_machine, mixed, noticed

HASHED = 12
"""Number of nodes of a warp, from its first unissued one, whose hash the words contain."""


@step
def hidden(now: int, q: int, node: int, gap: int, nodes: Any, parts: Any, free: Any) -> int:
    """The tick before which the node does not issue even if it is ready."""
    own = nodes[node, RESOURCE] + (q if nodes[node, PER_PARTITION] != 0 else 0)
    tick: int = max(now, gap, parts[q, VALVE], free[own])
    return tick


@part
def describe_warps(
    accounting: bool, partitions: int, per_block: int, nodes: Any, graph: Any, warps: Any,
    missing: Any, ready: Any, reasons: Any, slots: Any, parts: Any, free: Any, clock: Any, words: Any,
) -> int:  # fmt: skip
    """Write the words of all warps; returns where they end."""
    now = clock[NOW]
    n = 0
    for w in range(len(warps)):
        if slots[w // per_block, SEQUENCE] < 0:
            continue
        if warps[w, LEFT] == 0 and warps[w, WAITING] < 0:
            words[n] = -1  # it has ended
            n += 1
            continue
        first = warps[w, FIRST]
        end = warps[w, NODES]
        low = warps[w, LOW]
        while low < end and missing[w, low] < 0:
            low += 1
        warps[w, LOW] = low
        key = np.uint64(low < end)
        for d in range(low, min(end, low + HASHED)):
            if missing[w, d] < 0:
                key = mixed(key, -1)
                continue
            node = graph[first + d]
            floor = now
            if not accounting:
                floor = hidden(now, w % partitions, node, warps[w, GAP], nodes, parts, free)
            word = (max(floor, ready[w, d]) - now << 20) + (node << 8) + missing[w, d]
            if accounting and ready[w, d] > now:
                word += reasons[w, d] << 4
            key = mixed(key, word)
        words[n] = np.int64(key >> np.uint64(1))
        words[n + 1] = max(0, warps[w, DONE] - now)
        words[n + 2] = max(0, warps[w, GAP] - now)
        words[n + 3] = warps[w, WAITING] - low if warps[w, WAITING] >= 0 else 1
        words[n + 4] = warps[w, COUNT]
        words[n + 5] = warps[w, BEFORE] if accounting else -1
        n += 6
    return n


@part
def observe(
    level: int, partitions: int, per_block: int, rotates: bool, greedy: bool, nodes: Any, graph: Any,
    warps: Any, missing: Any, ready: Any, reasons: Any, slots: Any, parts: Any, free: Any, pending: Any,
    pending_from: Any, stalls: Any, clock: Any, watch: Any, seen: Any, words: Any,
) -> int:  # fmt: skip
    """Describe the state and store it; whether the loop should return, and why."""
    accounting = len(stalls) > 0
    n = describe_warps(
        accounting, partitions, per_block, nodes, graph, warps, missing, ready, reasons, slots, parts, free,
        clock, words,
    )  # fmt: skip
    n = describe_machine(n, accounting, rotates, greedy, slots, parts, free, pending, pending_from, clock, words)
    clock[WORDS] = n
    return noticed(level, n, n + HASHED * len(warps), watch, seen, clock, words)
