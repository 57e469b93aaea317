"""Compiled: the dependence graph of a path, unrolled, for warps that issue out of program order."""

from __future__ import annotations

from typing import Any

from .columns import (
    BARRIER,
    LOOP_COUNT,
    LOOP_DEPTH,
    LOOP_LEVEL,
    LOOP_OUTER,
    LOOP_START,
    SETS,
    SETS_READ,
    WAIT_FROM,
    WAIT_TO,
)
from .compiled import loop

# What a consumer needs of its producer: its result, its operands read, or only that it has issued.
RESULT, READ, ISSUE = range(3)


@loop
def unroll(
    first: int, end: int, positions: Any, loops: Any, nodes: Any, waits: Any, counters: Any, writer: Any,
    node: Any, mark: Any, producers: Any, consumers: Any, edges: Any,
) -> int:  # fmt: skip
    """Walk the path whose places are from `first` to before `end`; returns the number of edges.

    `counters` are zero, `writer` is -1 for each slot. Fills per unrolled node its `node`, at which level it
    begins another turn of a loop that is watched (`mark`, 0: of none), how many edges lead to it, and how many
    lead from it (`consumers`); and where there is room the `edges`: producer, consumer, need, in the order of
    the consumers.
    """
    count = 0
    barrier = -1
    position = 0
    place = first
    begins = 0
    while place < end:
        this = positions[place, 0]
        node[position] = this
        mark[position] = begins
        begins = 0
        before = count
        for k in range(nodes[this, WAIT_FROM], nodes[this, WAIT_TO]):
            producer = writer[waits[k]]
            if producer < 0:
                continue
            if nodes[node[producer], SETS] == waits[k]:
                if count < len(edges):
                    edges[count, 0], edges[count, 1], edges[count, 2] = producer, position, RESULT
                consumers[producer] += 1
                count += 1
            if nodes[node[producer], SETS_READ] == waits[k]:
                if count < len(edges):
                    edges[count, 0], edges[count, 1], edges[count, 2] = producer, position, READ
                consumers[producer] += 1
                count += 1
        if barrier >= 0:
            if count < len(edges):
                edges[count, 0], edges[count, 1], edges[count, 2] = barrier, position, RESULT
            consumers[barrier] += 1
            count += 1
        if nodes[this, BARRIER] != 0:
            for earlier in range(barrier + 1, position):
                if count < len(edges):
                    edges[count, 0], edges[count, 1], edges[count, 2] = earlier, position, ISSUE
                consumers[earlier] += 1
                count += 1
            barrier = position
        producers[position] = count - before
        if nodes[this, SETS] >= 0:
            writer[nodes[this, SETS]] = position
        if nodes[this, SETS_READ] >= 0:
            writer[nodes[this, SETS_READ]] = position
        position += 1
        closes = positions[place, 1]
        place += 1
        while closes >= 0:
            depth = loops[closes, LOOP_DEPTH]
            counters[depth] += 1
            if counters[depth] < loops[closes, LOOP_COUNT]:
                place = loops[closes, LOOP_START]
                begins = loops[closes, LOOP_LEVEL]
                break
            counters[depth] = 0
            closes = loops[closes, LOOP_OUTER]
    return count
