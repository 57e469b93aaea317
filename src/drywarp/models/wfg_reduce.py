"""Reducing a work-flow graph whose arcs have weights: the longest way through it.

Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs", §2.4.1:
successive nodes are combined and their latencies added up; of the two arcs that leave a memory node
the longer counts. Where other nodes lie between a memory node and the one that needs its result, what
they take counts against the dependence arc. A dependence arc that nothing waits for ends at the
warp's end; a store has none. Units: those of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence

from .inputs import WorkNode


def reduced(graph: Sequence[WorkNode], transitions: Sequence[float], exposed: Sequence[float]) -> float:
    """The longest way, loops counted as often as they turn.

    A dependence from the turn before (`needs` not below the node) spans the loop's end and beginning.
    Of several such that one loop has, the one that adds most counts.
    """
    starts: list[float] = []
    now = total = 0.0
    needed: set[int] = set()
    carried: list[tuple[int, int]] = []
    for index, node in enumerate(graph):
        for source in node.needs:
            needed.add(source)
            if source >= index:
                carried.append((source, index))
                continue
            late = starts[source] + exposed[source] - now
            if late > 0:
                now += late
                total += late * min(node.times, graph[source].times)
        starts.append(now)
        now += transitions[index]
        total += transitions[index] * node.times
    total += _carried(graph, transitions, exposed, starts, carried)
    last = [
        starts[index] + exposed[index] - now
        for index, node in enumerate(graph)
        if node.kind == "memory" and node.waited_for and index not in needed
    ]
    return total + max([0.0, *last])


def _carried(
    graph: Sequence[WorkNode],
    transitions: Sequence[float],
    exposed: Sequence[float],
    starts: Sequence[float],
    carried: Sequence[tuple[int, int]],
) -> float:
    """What dependences on the turn before add, once for each turn but the first."""
    most: dict[tuple[int, int], float] = {}
    for source, index in carried:
        low, high = _loop(graph, index, source)
        passed = starts[high] + transitions[high] - starts[source] + starts[index] - starts[low]
        late = (exposed[source] - passed) * (min(graph[source].times, graph[index].times) - 1)
        most[low, high] = max(most.get((low, high), 0.0), late)
    return sum(most.values())


def _loop(graph: Sequence[WorkNode], low: int, high: int) -> tuple[int, int]:
    """The nodes around `low` to `high` that turn at least as often as these two."""
    turns = min(node.times for node in graph[low : high + 1])
    while low > 0 and graph[low - 1].times >= turns:
        low -= 1
    while high + 1 < len(graph) and graph[high + 1].times >= turns:
        high += 1
    return low, high
