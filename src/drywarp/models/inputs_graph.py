"""Straight-line code of a path, and the parallelism in it: ILP and MLP as GPUPerf §5.3 counts them.

A straight line is a maximal run of instructions between the ends of loops; branches that a path takes are part of it.
GPUPerf averages over basic blocks, weighted by execution count. (In print it divides by the number of blocks; the sum
of the weights is meant.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..workload.cost import TICKS_PER_CYCLE, CostedNode, CostedPath, CostedWorkload, Item, Repeat
from .gpuperf_terms import average
from .inputs_parts import kind_of, own_lambda

LONGEST_LINE = 1 << 17
"""A longer line, such as a trace in which no loop was recognised, is represented by its beginning."""


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


def producers_in(workload: CostedWorkload, path: CostedPath, line: Sequence[int]) -> list[set[int]]:
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


def mean_ilp(workload: CostedWorkload, weights: Sequence[float]) -> float:
    """ILP: instructions over groups, as a mean over straight lines weighted by execution count."""

    def local(path: CostedPath, line: Sequence[int]) -> float | None:
        return len(line) / groups(producers_in(workload, path, line), workload.in_order)

    return _mean(workload, weights, local)


def mean_mlp(workload: CostedWorkload, weights: Sequence[float]) -> float:
    """MLP: memory requests from a load to its first use, itself included; 1 if nothing is loaded."""

    def local(path: CostedPath, line: Sequence[int]) -> float | None:
        memory = [place for place, i in enumerate(line) if kind_of(workload, path.nodes[i]) == "memory"]
        loads = [place for place in memory if not path.nodes[line[place]].async_result]
        if not loads:
            return 1.0 if memory else None
        first_use: dict[int, int] = {}
        for place, needs in enumerate(producers_in(workload, path, line)):
            for producer in needs:
                first_use.setdefault(producer, place)
        spans = (bisect_left(memory, first_use.get(load, len(line))) - bisect_left(memory, load) for load in loads)
        return sum(spans) / len(loads)

    return _mean(workload, weights, local)


def _mean(
    workload: CostedWorkload, weights: Sequence[float], local: Callable[[CostedPath, Sequence[int]], float | None]
) -> float:
    """§5.3's average of a straight line's figure over those that have one; 1 if none has."""
    found: list[tuple[float, float]] = []
    for path, weight in zip(workload.paths, weights, strict=True):
        for line, times in straight_lines(path.program) if weight else ():
            value = local(path, line[:LONGEST_LINE])
            if value is not None:
                found.append((value, weight * times))
    return average(found)


# The work-flow graph of a warp: blocks of computation, memory transactions and barriers, and their arcs.
#
# Baghsorkhi et al., "An adaptive performance modeling tool for GPU architectures" (2010), as Lemeire, Cornelis and
# Konstantinidis §2.4 describe it. Transition arcs follow the order of the nodes; a node's `needs` are its
# data-dependence arcs, from memory transactions only. A block of computation ends where the next instruction is a
# memory transaction or a barrier, or needs a memory transaction's result. Loops are not unrolled: a node represents all
# iterations.


@dataclass(frozen=True, slots=True)
class WorkNode:
    """A node of the graph, run `times` times by a warp.

    `kind` is ``computation``, ``memory`` or ``barrier``; `instructions` how many it holds, `lambda_` and `latency`
    their means in cycles, `ilp` instructions over groups that can issue together. `needs` are indices of memory nodes;
    an index not below the node's own refers to the previous iteration. `waited_for` is false for stores: no arc leaves
    them, not even to the warp's end. `alone` is the cycles that the instructions take in a lone warp, with those on one
    subsystem λ apart (as Λ_app, analysis Eq. 2).
    """

    kind: str
    instructions: int
    lambda_: float
    latency: float
    ilp: float
    times: int
    needs: tuple[int, ...] = ()
    waited_for: bool = True
    alone: float = 0.0


@dataclass
class _Draft:
    kind: str
    times: int
    line: list[int] = field(default_factory=list)
    needs: set[int] = field(default_factory=set)


def work_flow_graph(workload: CostedWorkload, path: CostedPath) -> tuple[WorkNode, ...]:
    """The graph of one path, its nodes in program order."""
    return tuple(_finished(workload, path, draft) for draft in _Builder(workload, path).build())


class _Builder:
    """Walks the program; `writers` holds which memory node last wrote each slot."""

    def __init__(self, workload: CostedWorkload, path: CostedPath) -> None:
        self.path = path
        self.kinds = [kind_of(workload, node) for node in path.nodes]
        self.drafts: list[_Draft] = []
        self.trace: list[tuple[int, int]] = []
        self.writers: dict[int, int] = {}
        self.carried: set[int] = set()
        self.fresh = True

    def build(self) -> list[_Draft]:
        self._items(self.path.program, 1)
        return self.drafts

    def _items(self, program: Sequence[Item], times: int) -> None:
        for item in program:
            if not isinstance(item, Repeat):
                self._add(item, times)
            elif item.count > 0:
                self._loop(item, times * item.count)

    def _loop(self, loop: Repeat, times: int) -> None:
        start, outer = len(self.trace), self.carried
        self.fresh = True
        if loop.count > 1:
            self.carried = outer | _last_memory_slots(self.path, self.kinds, loop.body)
        self._items(loop.body, times)
        self.fresh = True
        self.carried = outer
        if loop.count > 1:
            # State left by the previous iteration, as seen by the next one.
            for index, at in self.trace[start:]:
                self._connect(index, at)

    def _add(self, index: int, times: int) -> None:
        kind = self.kinds[index]
        node = self.path.nodes[index]
        waits = any(slot in self.writers or slot in self.carried for slot in node.waits)
        if kind in ("memory", "barrier"):
            self.drafts.append(_Draft(kind, times))
            self.fresh = True
        elif self.fresh or waits:
            self.drafts.append(_Draft("computation", times))
            self.fresh = False
        at = len(self.drafts) - 1
        self.drafts[at].line.append(index)
        self.trace.append((index, at))
        self._connect(index, at)

    def _connect(self, index: int, at: int) -> None:
        node = self.path.nodes[index]
        self.drafts[at].needs |= {self.writers[slot] for slot in node.waits if slot in self.writers}
        if node.sets < 0:
            return
        self.carried = self.carried - {node.sets}
        if self.kinds[index] == "memory":
            self.writers[node.sets] = at
        else:
            self.writers.pop(node.sets, None)


def _last_memory_slots(path: CostedPath, kinds: Sequence[str], program: Sequence[Item]) -> set[int]:
    """Slots whose last writer in a loop's body is a memory instruction."""
    found: set[int] = set()
    for item in program:
        if isinstance(item, Repeat):
            found |= _last_memory_slots(path, kinds, item.body)
        elif (slot := path.nodes[item].sets) >= 0:
            if kinds[item] == "memory":
                found.add(slot)
            else:
                found.discard(slot)
    return found


def _finished(workload: CostedWorkload, path: CostedPath, draft: _Draft) -> WorkNode:
    nodes = [path.nodes[index] for index in draft.line]
    count = len(nodes)
    return WorkNode(
        kind=draft.kind,
        instructions=count,
        lambda_=sum(own_lambda(workload, node) for node in nodes) / count,
        latency=sum(node.latency_ticks for node in nodes) / count / TICKS_PER_CYCLE,
        ilp=count / groups(producers_in(workload, path, draft.line), workload.in_order),
        times=draft.times,
        needs=tuple(sorted(draft.needs)),
        waited_for=not all(node.async_result for node in nodes),
        alone=_alone(nodes, producers_in(workload, path, draft.line)) / TICKS_PER_CYCLE,
    )


def _alone(nodes: Sequence[CostedNode], producers: Sequence[set[int]]) -> int:
    """Ticks from the first issue to the last result, each instruction after its producers' Λ."""
    starts: list[int] = []
    free: dict[int, int] = {}
    for node, needs in zip(nodes, producers, strict=True):
        ready = max((starts[place] + nodes[place].latency_ticks for place in needs), default=0)
        starts.append(max(ready, free.get(node.subsystem, 0)))
        free[node.subsystem] = starts[-1] + node.lambda_ticks
    return max(start + node.latency_ticks for start, node in zip(starts, nodes, strict=True))
