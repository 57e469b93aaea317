"""The work-flow graph of a warp: blocks of computation, memory transactions and barriers, and their arcs.

Baghsorkhi et al., "An adaptive performance modeling tool for GPU architectures" (2010), as Lemeire, Cornelis and
Konstantinidis §2.4 describe it. Transition arcs follow the order of the nodes; a node's `needs` are its
data-dependence arcs, from memory transactions only. A block of computation ends where the next instruction is a
memory transaction or a barrier, or needs a memory transaction's result. Loops are not unrolled: a node represents all
iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..workload.cost import TICKS_PER_CYCLE, CostedNode, CostedPath, CostedWorkload, Item, Repeat
from .inputs_parts import groups, kind_of, own_lambda, producers_in


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
