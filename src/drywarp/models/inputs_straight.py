"""Straight-line code of a path, and the parallelism in it: ILP and MLP as GPUPerf §5.3 counts them.

A straight line is a maximal run of instructions between the ends of loops; branches that a path takes
are part of it. GPUPerf averages over basic blocks, weighed by how often each runs. (In print it divides
by the number of blocks; the weights' sum is meant.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..bound import BoundPath, BoundWorkload, Item, Repeat
from .inputs_parts import kind_of


def straight_lines(program: Sequence[Item], times: int = 1) -> Iterator[tuple[tuple[int, ...], int]]:
    """Runs of node indices, in order, with how often a warp runs each."""
    run: list[int] = []
    for item in program:
        if not isinstance(item, Repeat):
            run.append(item)
            continue
        if run:
            yield tuple(run), times
            run = []
        if item.count > 0:
            yield from straight_lines(item.body, times * item.count)
    if run:
        yield tuple(run), times


def producers_in(workload: BoundWorkload, path: BoundPath, line: Sequence[int]) -> list[set[int]]:
    """For each place of a straight line, the earlier places in it whose results it needs."""
    found: list[set[int]] = []
    by_instruction: dict[int, int] = {}
    by_slot: dict[int, int] = {}
    for place, index in enumerate(line):
        node = path.nodes[index]
        needs = {by_slot[slot] for slot in node.waits if slot in by_slot}
        if workload.producers:
            needs |= {by_instruction[i] for i in workload.producers[node.instruction] if i in by_instruction}
        found.append(needs)
        by_instruction[node.instruction] = place
        if node.sets >= 0:
            by_slot[node.sets] = place
    return found


def groups(producers: Sequence[set[int]], in_order: bool) -> int:
    """Groups of instructions that can issue together: consecutive ones where warps issue in order,
    else the length of the longest chain of dependences."""
    if in_order:
        count, first = 0, len(producers)
        for place, needs in enumerate(producers):
            if place == 0 or any(producer >= first for producer in needs):
                count, first = count + 1, place
        return count
    depth: list[int] = []
    for needs in producers:
        depth.append(1 + max((depth[producer] for producer in needs), default=0))
    return max(depth, default=0)


def mean_ilp(workload: BoundWorkload, weights: Sequence[float]) -> float:
    """ILP: instructions over groups, in the mean over straight lines by how often each runs."""

    def local(path: BoundPath, line: Sequence[int]) -> float | None:
        return len(line) / groups(producers_in(workload, path, line), workload.in_order)

    return _mean(workload, weights, local)


def mean_mlp(workload: BoundWorkload, weights: Sequence[float]) -> float:
    """MLP: memory requests from a load to its first use, itself included; 1 where nothing is loaded."""

    def local(path: BoundPath, line: Sequence[int]) -> float | None:
        memory = [place for place, i in enumerate(line) if kind_of(workload, path.nodes[i]) == "memory"]
        loads = [place for place in memory if not path.nodes[line[place]].async_result]
        if not loads:
            return 1.0 if memory else None
        first_use: dict[int, int] = {}
        for place, needs in enumerate(producers_in(workload, path, line)):
            for producer in needs:
                first_use.setdefault(producer, place)
        spans = (sum(load <= place < first_use.get(load, len(line)) for place in memory) for load in loads)
        return sum(spans) / len(loads)

    return _mean(workload, weights, local)


def _mean(
    workload: BoundWorkload, weights: Sequence[float], local: Callable[[BoundPath, Sequence[int]], float | None]
) -> float:
    """The mean of a straight line's figure over those that have one; 1 where none has."""
    total = share = 0.0
    for path, weight in zip(workload.paths, weights, strict=True):
        for line, times in straight_lines(path.program):
            value = local(path, line) if weight else None
            if value is not None:
                total += value * weight * times
                share += weight * times
    return total / share if share else 1.0
