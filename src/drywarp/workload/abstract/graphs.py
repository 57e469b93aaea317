"""The paths of an abstract kernel's warps: a node for every copy of every instruction, and the outcomes of branches.

A graph without branches is one path, with its loops kept as loops. Where it has branches, each warp of a number of
thread blocks takes its own way: of all executions of a branch, the stated share is drawn, in whole executions. The draw
is the same each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random

from ...support.expressions import Number
from ..cost import BlockType, CostedNode, CostedPath, Item, Repeat, to_ticks
from .check import program_key, steps
from .costs import Machine, Settings, node_of
from .file import Step

MOST_COPIES = 4096
MOST_BLOCKS = 64
"""Most thread blocks for which branches are drawn; a larger grid repeats them."""
MOST_EXECUTIONS = 100_000
"""Most executions of a loop's body for which a branch in it is drawn."""


@dataclass(frozen=True)
class Paths:
    """The distinct paths of all warps, the kinds of thread blocks, the instructions' names, and what was drawn."""

    paths: tuple[CostedPath, ...]
    block_types: tuple[BlockType, ...]
    names: tuple[str, ...]
    notes: tuple[str, ...]


def make_paths(settings: Settings, machine: Machine, stall: float, per_block: int, blocks: int) -> Paths:
    """The paths of the warps of `blocks` thread blocks; `stall` cycles separate instructions if the file gives none."""
    kernel = settings.file.kernel
    graphs: dict[str, _Graph] = {}
    for name, program in kernel.programs().items():
        first = sum(len(graph.nodes) for graph in graphs.values())
        graphs[name] = _Graph(name, program, settings, machine, stall, first)
    groups = _groups(settings, per_block)
    drawn = any(branches(program) for program in kernel.programs().values())
    kinds = _dealt([weight for _, weight in groups], min(blocks, MOST_BLOCKS)) if drawn else list(range(len(groups)))
    warps = [groups[kind][0][warp] for kind in kinds for warp in range(per_block)]
    ways = {name: iter(graph.ways(warps.count(name))) for name, graph in graphs.items()}
    known: dict[tuple[str, tuple[Item, ...]], int] = {}
    which = [known.setdefault((name, next(ways[name])), len(known)) for name in warps]
    types = tuple(
        BlockType(tuple(which[at * per_block : (at + 1) * per_block]), 1.0 if drawn else groups[kind][1])
        for at, kind in enumerate(kinds)
    )
    return Paths(
        paths=tuple(CostedPath(graphs[name].nodes, way, len(graphs[name].nodes)) for name, way in known),
        block_types=types,
        names=tuple(name for graph in graphs.values() for name in graph.names),
        notes=tuple(note for graph in graphs.values() for note in graph.notes),
    )


def branches(program: Sequence[Step]) -> bool:
    """Whether there is a branch among these steps."""
    return any(step.branch is not None for _, step in steps(program, ""))


def _groups(settings: Settings, per_block: int) -> list[tuple[list[str], float]]:
    """The kinds of thread blocks: each warp's graph, and the weight."""
    kernel, found = settings.file.kernel, []
    if not kernel.groups:
        (only,) = kernel.programs()
        return [([only] * per_block, 1.0)]
    for number, group in enumerate(kernel.groups):
        key = f"groups[{number}]"
        if per_block % len(group.graphs):
            problem = f"expected as many as a block has warps ({per_block}), or a part of it, got {len(group.graphs)}"
            raise settings.file.error(f"{key}.graphs", problem)
        weight = float(settings.number(f"{key}.weight", group.weight))
        if weight < 0:
            raise settings.file.error(f"{key}.weight", f"expected 0 or more, got {weight:g}")
        found.append((group.graphs * (per_block // len(group.graphs)), weight))
    if not any(weight for _, weight in found):
        raise settings.file.error("groups", "expected a weight above 0")
    return found


def _dealt(weights: list[float], count: int) -> list[int]:
    """The kinds of `count` blocks: each is of the kind that is furthest behind its share."""
    given, found = [0] * len(weights), []
    for number in range(1, count + 1):
        behind = [weight / sum(weights) * number - got for weight, got in zip(weights, given, strict=True)]
        found.append(behind.index(max(behind)))
        given[found[-1]] += 1
    return found


class _Graph:
    """One dependence graph: its nodes with their slots, and the ways that warps take through it."""

    def __init__(
        self, name: str, program: list[Step], settings: Settings, machine: Machine, stall: float, first: int
    ) -> None:
        self.program, self.settings, self.key = program, settings, program_key(name)
        self.copies: dict[str, list[int]] = {}
        self.names: list[str] = []
        self.notes: list[str] = []
        self._number(f"{name}." if name else "")
        self.nodes = tuple(self._nodes(machine, stall, first))
        if not self.nodes:
            raise settings.file.error(self.key, "expected at least one instruction")

    def _number(self, prefix: str) -> None:
        """Slots of all instructions, so that one may depend on another of the previous iteration."""
        for key, step in steps(self.program, self.key):
            if not step.id:
                continue
            count = self.settings.whole(f"{key}.copies", step.copies)
            if count > MOST_COPIES:
                raise self.settings.file.error(f"{key}.copies", f"expected at most {MOST_COPIES}")
            self.copies[step.id] = list(range(len(self.names), len(self.names) + count))
            self.names += [f"{prefix}{step.id}" + (f".{n}" if count > 1 else "") for n in range(1, count + 1)]

    def _nodes(self, machine: Machine, stall: float, first: int) -> list[CostedNode]:
        costs: dict[str, CostedNode] = {}
        nodes = []
        for key, step in steps(self.program, self.key):
            if not step.id:
                continue
            class_ = step.class_ or ""
            if class_ not in costs:
                costs[class_] = node_of(class_, machine, self.settings)
            cost = costs[class_]
            after = stall if step.stall is None else float(self.settings.number(f"{key}.stall", step.stall))
            needed = [slot for other in step.needs for slot in self.copies[other]]
            for place in self.copies[step.id]:
                waits = list(needed)
                for other in step.previous:
                    waits += [place] if other == step.id else self.copies[other]
                sets = -1 if cost.async_result else place
                node = replace(cost, instruction=first + place, waits=tuple(dict.fromkeys(waits)), sets=sets)
                nodes.append(replace(node, stall_ticks=to_ticks(after)))
        return nodes

    def ways(self, warps: int) -> list[tuple[Item, ...]]:
        """Each warp's way through the graph; all share one if there are no branches."""
        runs: list[list[Item]] = [[] for _ in range(warps if branches(self.program) else 1)]
        self._run(self.program, self.key, runs)
        return [tuple(run) for run in runs] if len(runs) == warps else [tuple(runs[0])] * warps

    def _run(self, program: Sequence[Step], key: str, runs: list[list[Item]]) -> None:
        """Append these steps to every run: the items of one execution of the steps."""
        for number, step in enumerate(program):
            here = f"{key}[{number}]"
            if step.branch is not None:
                self._branch(step, here, runs)
            elif step.loop is not None:
                self._loop(step, here, runs)
            else:
                for run in runs:
                    run += self.copies[step.id or ""]

    def _loop(self, step: Step, key: str, runs: list[list[Item]]) -> None:
        iterations, body = self.settings.whole(f"{key}.loop", step.loop or 0), step.body or []
        if not branches(body):
            once: list[list[Item]] = [[]]
            self._run(body, f"{key}.body", once)
            for run in runs:
                run.append(Repeat(iterations, tuple(once[0])))
            return
        if len(runs) * iterations > MOST_EXECUTIONS:
            problem = (
                f"a branch in it would be drawn {len(runs) * iterations:,} times; expected at most {MOST_EXECUTIONS:,}"
            )
            raise self.settings.file.error(f"{key}.loop", f"{problem} (fewer iterations, or a lower occupancy)")
        bodies: list[list[Item]] = [[] for _ in range(len(runs) * iterations)]
        self._run(body, f"{key}.body", bodies)
        for number, run in enumerate(runs):
            for items, same in groupby(bodies[number * iterations : (number + 1) * iterations]):
                count = len(list(same))
                run += items if count == 1 else [Repeat(count, tuple(items))]

    def _branch(self, step: Step, key: str, runs: list[list[Item]]) -> None:
        """Draw which runs take the branch, which do not, and which run both sides one after the other."""
        share, both = (self._share(f"{key}.{name}", of) for name, of in (("branch", step.branch), ("both", step.both)))
        if share + both > 1:
            problem = f"expected a share of at most {1 - share:g}, as {share:g} take the branch, got {both:g}"
            raise self.settings.file.error(f"{key}.both", problem)
        if not runs:  # in a loop without iterations, or on a side that none takes
            return
        taking = int(share * len(runs) + 0.5)
        diverging = min(int(both * len(runs) + 0.5), len(runs) - taking)
        order = Random(key).sample(range(len(runs)), len(runs))
        then, otherwise = sorted(order[: taking + diverging]), sorted(order[taking:])
        self._run(step.then or [], f"{key}.then", [runs[at] for at in then])
        self._run(step.else_, f"{key}.else", [runs[at] for at in otherwise])
        split = f", {diverging:,} run both sides" if both else ""
        self.notes.append(
            f"{key}: of {len(runs):,} executions drawn, {taking:,} take the branch{split} ({share:g} stated)"
        )

    def _share(self, key: str, value: Number | str | None) -> float:
        share = float(self.settings.number(key, value or 0))
        if not 0 <= share <= 1:
            raise self.settings.file.error(key, f"expected a probability from 0 to 1, got {share:g}")
        return share
