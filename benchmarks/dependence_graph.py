"""Instruction dependence graphs of warps that were emulated, with loops kept as loops.

A node is a machine instruction at a place of the warp's path. Its edges are the registers and predicates that it reads,
the words of shared memory that the same warp wrote, and the last conditional branch before it: a GPU does not
speculate. Order is not an edge, as in the papers' graphs (Lemeire, Cornelis, Konstantinidis, §3.1.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from drywarp.errors import UsageError
from drywarp.kernel.cfg import ControlFlowGraph
from drywarp.kernel.dataflow import Dataflow
from drywarp.kernel.instruction import Instruction
from drywarp.kernel.isa.nvidia.opcodes import is_barrier
from drywarp.kernel.profile import SPACE_SHARED, Profile, WarpPath
from drywarp.workload.cost import Item, Repeat

# The path of a warp as loops: a part is a basic block, or a loop with the trip counts of its executions.


@dataclass
class Block:
    """Executions of a basic block: their steps in the warp's path."""

    block: int
    steps: list[int]

    def shape(self) -> object:
        """What two items must share to be the same code."""
        return self.block


@dataclass
class Loop:
    """Executions of a loop: the trip count of each, and the body."""

    trips: list[int]
    body: list[Part]

    def shape(self) -> object:
        """What two items must share to be the same code; trip counts may differ."""
        return tuple(item.shape() for item in self.body)


Part = Block | Loop


def loops_of(blocks: Iterable[int], loops: Iterable[tuple[int, frozenset[int]]]) -> list[Part]:
    """A path of basic blocks with equal consecutive iterations as loops; `loops` are header and members, inner first.

    Iterations that differ only in the trip counts of inner loops are equal too, if the mean count is whole.
    """
    items: list[Part] = [Block(block, [step]) for step, block in enumerate(blocks)]
    for header, members in loops:
        items = _fold(items, header, members)
    return items


def _fold(items: list[Part], header: int, members: frozenset[int]) -> list[Part]:
    folded: list[Part] = []
    at = 0
    while at < len(items):
        iterations: list[list[Part]] = []
        while at < len(items) and _first(items[at]) == header:
            end = at + 1
            while end < len(items) and _first(items[end]) != header and _first(items[end]) in members:
                end += 1
            iterations.append(items[at:end])
            at = end
        for _, alike in groupby(iterations, key=lambda body: tuple(item.shape() for item in body)):
            run = list(alike)
            whole = _merged(run)
            for group in [run] if _even(whole) else [list(same) for _, same in groupby(run, key=_trips)]:
                folded.append(Loop([len(group)], _merged(group)))
        if not iterations:
            folded.append(items[at])
            at += 1
    return folded


def _first(item: Part) -> int:
    return item.block if isinstance(item, Block) else _first(item.body[0])


def _merged(bodies: Sequence[list[Part]]) -> list[Part]:
    """One list for all: steps and trip counts one after the other."""
    merged: list[Part] = []
    for same in zip(*bodies, strict=True):
        if isinstance(same[0], Block):
            merged.append(
                Block(same[0].block, [step for item in same if isinstance(item, Block) for step in item.steps])
            )
        else:
            loops = [item for item in same if isinstance(item, Loop)]
            merged.append(Loop([n for loop in loops for n in loop.trips], _merged([loop.body for loop in loops])))
    return merged


def _even(items: Iterable[Part]) -> bool:
    loops = [item for item in items if isinstance(item, Loop)]
    return all(sum(loop.trips) % len(loop.trips) == 0 and _even(loop.body) for loop in loops)


def _trips(items: Iterable[Part]) -> list[object]:
    return [(item.trips, _trips(item.body)) for item in items if isinstance(item, Loop)]


# The dependence graph of a warp.


@dataclass
class Node:
    """An instruction at a place of the program: its name, class, and the places that it depends on."""

    name: str
    class_: str
    needs: set[int] = field(default_factory=set)
    previous: set[int] = field(default_factory=set)


@dataclass
class Graph:
    """A warp's nodes in order, and its program over their indices."""

    nodes: list[Node]
    program: tuple[Item, ...]


def graph_of(profile: Profile, sample: int, warp: int, class_of: Callable[[Instruction], str]) -> Graph:
    """The graph of one warp of a sampled block; `class_of` gives an instruction's class, by which nodes are named."""
    path, cfg = profile.paths[profile.blocks[sample].paths[warp]], profile.cfg
    instructions = profile.kernel.instructions
    return graph_from(
        loops_of(path.blocks.tolist(), [(loop.header, loop.blocks) for loop in cfg.loops]),
        [range(block.start, block.end) for block in cfg.blocks],
        executed(path, cfg),
        producers_of(profile, sample, warp),
        lambda index: class_of(instructions[index]),
    )


def graph_from(
    parts: Sequence[Part],
    blocks: Sequence[range],
    run: Sequence[tuple[int, int]],
    producers: Sequence[Iterable[int]],
    class_of: Callable[[int], str],
) -> Graph:
    """The graph of a path: its `parts`, the instructions of its basic blocks, what it `run`s and what that waits for.

    `run` is the step of the path and the instruction of each executed one; `producers` are positions in it.
    """
    place: dict[tuple[int, int], int] = {}
    nodes: list[Node] = []
    numbers = Counter[str]()

    def walk(items: Sequence[Part]) -> list[Item]:
        found: list[Item] = []
        for item in items:
            if isinstance(item, Loop):
                iterations, body = sum(item.trips) // len(item.trips), walk(item.body)
                found += body if iterations == 1 else [Repeat(iterations, tuple(body))]
                continue
            for index in blocks[item.block]:
                class_ = class_of(index)
                numbers[class_] += 1
                found.append(len(nodes))
                place.update({(step, index): len(nodes) for step in item.steps})
                nodes.append(Node(f"{class_}{numbers[class_]}", class_))
        return found

    program = walk(parts)
    for at, waited in enumerate(producers):
        here = place[run[at]]
        for producer in waited:
            there = place[run[producer]]
            (nodes[here].needs if there < here else nodes[here].previous).add(there)
    _reduce(nodes)
    return Graph(nodes, tuple(program))


def executed(path: WarpPath, cfg: ControlFlowGraph) -> list[tuple[int, int]]:
    """What a warp executes, in order: the step of its path, and the instruction."""
    blocks = [cfg.blocks[block] for block in path.blocks.tolist()]
    return [(step, index) for step, block in enumerate(blocks) for index in range(block.start, block.end)]


def producers_of(profile: Profile, sample: int, warp: int) -> list[set[int]]:
    """For each instruction that a warp executes, the earlier ones that it waits for, as positions in `executed`."""
    path = profile.paths[profile.blocks[sample].paths[warp]]
    run = executed(path, profile.cfg)
    words = _shared_words(profile, sample * profile.launch.warps_per_block + warp, [index for _, index in run])
    return _producers(Dataflow(profile.kernel.instructions, profile.cfg), run, path.lanes.tolist(), words)


def _shared_words(profile: Profile, warp: int, run: Sequence[int]) -> dict[int, set[int]]:
    """The words of shared memory that each access of a warp touches, by position in its path."""
    log = profile.accesses
    rows = iter(np.flatnonzero(log.warp == warp).tolist())
    row, found = next(rows, None), {}
    for position, index in enumerate(run):
        if row is None or int(log.instruction[row]) != index:
            continue  # no active lane, or not an access
        if log.space[row] == SPACE_SHARED:
            pattern = int(log.pattern[row])
            lanes = [lane for lane in range(32) if int(log.masks[pattern]) >> lane & 1]
            found[position] = {int(log.base[row] + log.offsets[pattern, lane]) // 4 for lane in lanes}
        row = next(rows, None)
    if row is not None:
        raise UsageError(f"{profile.kernel.name}: the log of accesses does not follow the path of warp {warp}")
    return found


def _producers(
    flow: Dataflow, run: Sequence[tuple[int, int]], lanes: Sequence[float], words: dict[int, set[int]]
) -> list[set[int]]:
    """See `producers_of`; `words` are those that each access to shared memory touches.

    A write by fewer lanes than an earlier one leaves that visible, as does a guarded one, if it reaches the reader in
    the code. A barrier waits for what the warp wrote to shared memory; everything waits for the last conditional
    branch, directly or through another producer.
    """
    writers: dict[object, list[int]] = {}
    filled: dict[int, int] = {}
    branch, found = -1, []
    for at, (step, index) in enumerate(run):
        instruction, access = flow.instructions[index], flow.accesses[index]
        shared = instruction.memory is not None and instruction.memory.space == "shared"
        reaching = set(flow.producers[index])
        mine = {w for place in access.reads for w in writers.get(place, ()) if run[w][1] in reaching}
        stores = instruction.memory is not None and instruction.memory.kind == "store"
        if shared and not stores:
            mine |= {filled[word] for word in words.get(at, ()) if word in filled}
        elif is_barrier(instruction):
            mine |= set(filled.values())
            filled = {}
        if branch >= 0 and max(mine, default=-1) < branch:
            mine.add(branch)
        found.append(mine)
        for place in access.writes:
            kept = writers.get(place, [])
            if instruction.guard is None:
                kept = [earlier for earlier in kept if lanes[run[earlier][0]] > lanes[step]]
            writers[place] = [*kept, at]
        if shared and stores:
            filled.update(dict.fromkeys(words.get(at, ()), at))
        if instruction.class_ == "branch" and access.reads:
            branch = at
    return found


def _reduce(nodes: Sequence[Node]) -> None:
    """Drop what another producer waits for already; it changes no time."""
    reached: list[set[int]] = []
    for node in nodes:
        behind = {far for producer in node.needs for far in reached[producer]}
        node.needs -= behind
        reached.append(behind | node.needs)
