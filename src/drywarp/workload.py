"""What a kernel asks of any GPU: its warp paths as instruction dependence graphs, loops kept as loops.

The dependences are those that the compiler's schedule states: a scoreboard is a slot that the
instruction with a write (or read) barrier sets, and that every instruction with that bit in its wait
mask waits for. Fixed latencies are the stall counts. Both are exact for the machine code at hand
(Cornelis and Lemeire §III.C calls the graph IDG; there it is drawn by hand).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import numpy.typing as npt

from .bound import BlockType, Item, Repeat
from .counted_waits import Dependences, spread_counted_waits
from .kernel.cfg import ControlFlowGraph
from .kernel.instruction import Instruction
from .kernel.kernel import Kernel
from .kernel.launch import Launch
from .kernel.operand import Immediate, Special
from .kernel.profile import Profile
from .outstanding import Dependences as CountedDependences
from .outstanding import counts_accesses, dependences

SCOREBOARDS = 6
ASYNC_SLOT = SCOREBOARDS
"""Slot of asynchronous copies, which complete without a scoreboard of their own."""
SLOTS = SCOREBOARDS + 1


@dataclass(frozen=True, slots=True)
class Node:
    """One instruction of a path: its index in the kernel, and its dependences as slots.

    `waits` are the slots that must be ready; `sets` the slot of its result, `sets_read` that of its
    operands having been read (-1: none). `stall` is the compiler's distance to the next instruction,
    in issue slots of the warp. `taken` marks an AMD GPU's branch that mostly goes elsewhere than to the next
    instruction; the others' stall counts say what a branch costs.
    """

    instruction: int
    waits: tuple[int, ...]
    sets: int
    sets_read: int
    stall: int
    taken: bool = False


@dataclass(frozen=True)
class Path:
    """One distinct warp path: nodes, their order with loops as loops, and mean active lanes per node.

    An instruction may be several nodes, with different slots. `slots` is how many slots the nodes use.
    """

    nodes: tuple[Node, ...]
    program: tuple[Item, ...]
    lanes: tuple[float, ...]
    slots: int = SLOTS


@dataclass(frozen=True)
class Workload:
    """A kernel and its launch, with no hardware in it. `block_types` weigh blocks by their paths."""

    kernel: Kernel
    launch: Launch
    paths: tuple[Path, ...]
    block_types: tuple[BlockType, ...]


def build_workload(profile: Profile) -> Workload:
    """Turn an emulated profile into a workload."""
    instructions = profile.kernel.instructions
    size = profile.launch.warp_size
    paths = tuple(_path(instructions, profile.cfg, path.blocks, path.lanes, size) for path in profile.paths)
    weights: dict[tuple[int, ...], float] = {}
    for sample in profile.blocks:
        weights[sample.paths] = weights.get(sample.paths, 0.0) + sample.weight
    types = tuple(BlockType(key, weight) for key, weight in weights.items())
    return Workload(profile.kernel, profile.launch, paths, types)


def node_of(instructions: Sequence[Instruction], index: int) -> Node:
    """The node of one instruction, from its control bits."""
    instruction = instructions[index]
    control = instruction.control
    waits = tuple(b for b in range(SCOREBOARDS) if control.wait_mask >> b & 1)
    sets = -1 if control.write_barrier is None else control.write_barrier
    if instruction.class_ == "async_copy":
        sets = ASYNC_SLOT
    elif instruction.opcode == "DEPBAR":
        waits += _counted_wait(instruction)
    return Node(
        instruction=index,
        waits=waits,
        sets=sets,
        sets_read=-1 if control.read_barrier is None else control.read_barrier,
        # The encoding allows 0, a leftover of dual issue; one scheduler issues once a cycle at most.
        stall=max(control.stall, 1),
    )


def _counted_wait(instruction: Instruction) -> tuple[int, ...]:
    """Slots that a `DEPBAR.LE SB0, 0x0, {4,3}` waits for: SB0 where the count is 0, and the set in braces."""
    names = [o.name for o in instruction.operands if isinstance(o, Special)]
    whole = [int(board) for name in names if name.startswith("{") for board in re.findall(r"\d", name)]
    board, count = _scoreboard_and_count(instruction)
    return (*whole, *([board, ASYNC_SLOT] if count == 0 else []))


def _scoreboard_and_count(instruction: Instruction) -> tuple[int, int]:
    """The scoreboard of a DEPBAR.LE and how many may stay outstanding; (-1, -1) for any other instruction."""
    if instruction.opcode != "DEPBAR":
        return -1, -1
    counts = [int(o.value) for o in instruction.operands if isinstance(o, Immediate)]
    boards = [int(o.name[2:]) for o in instruction.operands if isinstance(o, Special) and o.name.startswith("SB")]
    return (boards[0], counts[0]) if boards and counts else (-1, -1)


def _path(
    instructions: Sequence[Instruction],
    cfg: ControlFlowGraph,
    blocks: npt.NDArray[np.int32],
    lanes: npt.NDArray[np.float32],
    warp_size: int,
) -> Path:
    tree = fold(blocks.tolist(), cfg)
    counted = dependences(instructions, cfg, blocks.tolist()) if counts_accesses(instructions) else None
    order = sorted(set(blocks.tolist()))
    node_index: dict[int, int] = {}
    nodes: list[Node] = []
    node_lanes: list[float] = []
    for block in order:
        mean = float(lanes[blocks == block].mean()) if len(lanes) else float(warp_size)
        for index in range(cfg.blocks[block].start, cfg.blocks[block].end):
            node_index[index] = len(nodes)
            made = node_of(instructions, index) if counted is None else _counted_node(instructions, index, counted)
            nodes.append(made)
            node_lanes.append(mean)
    spans = {
        block: tuple(node_index[i] for i in range(cfg.blocks[block].start, cfg.blocks[block].end)) for block in order
    }
    if counted is not None:
        return Path(tuple(nodes), _items(tree, spans), tuple(node_lanes), counted.slots)
    return _with_counted_waits(instructions, Path(tuple(nodes), _items(tree, spans), tuple(node_lanes)))


def _with_counted_waits(instructions: Sequence[Instruction], path: Path) -> Path:
    """The path with waits for all but the last few made waits for slots (see `counted_waits`)."""
    given = []
    for node in path.nodes:
        board, count = _scoreboard_and_count(instructions[node.instruction])
        given.append(Dependences(node.waits, node.sets, node.sets_read, (board, count) if count > 0 else None))
    commits = [node.sets for node in path.nodes if instructions[node.instruction].opcode == "LDGDEPBAR"]
    spread = spread_counted_waits(given, path.program, SLOTS, ASYNC_SLOT, commits[0] if commits else None)
    if spread is None:
        return path
    nodes = tuple(
        replace(path.nodes[origin], waits=made.waits, sets=made.sets, sets_read=made.sets_read)
        for origin, made in zip(spread.origins, spread.nodes, strict=True)
    )
    return Path(nodes, spread.program, tuple(path.lanes[origin] for origin in spread.origins), spread.slots)


def _counted_node(instructions: Sequence[Instruction], index: int, counted: CountedDependences) -> Node:
    """The node of an AMD instruction, whose dependences the counters state."""
    return Node(
        instruction=index,
        waits=counted.waits.get(index, ()),
        sets=counted.sets.get(index, -1),
        sets_read=-1,
        stall=instructions[index].control.stall,
        taken=index in counted.taken,
    )


def _items(tree: Sequence[Item], spans: dict[int, tuple[int, ...]]) -> tuple[Item, ...]:
    items: list[Item] = []
    for item in tree:
        if isinstance(item, Repeat):
            items.append(Repeat(item.count, _items(item.body, spans)))
        else:
            items.extend(spans[item])
    return tuple(items)


def fold(blocks: Sequence[int], cfg: ControlFlowGraph) -> tuple[Item, ...]:
    """Fold a sequence of basic blocks into loops: equal consecutive iterations become a `Repeat`.

    Works from the innermost natural loop outwards. Unfolding gives back the sequence exactly, also
    where a divergent warp interleaves sides or skips a header.
    """
    items: list[Item] = list(blocks)
    present = set(blocks)
    for loop in cfg.loops:
        if loop.header in present:
            items = _fold_loop(items, loop.header, loop.blocks)
    return tuple(items)


def _fold_loop(items: list[Item], header: int, members: frozenset[int]) -> list[Item]:
    folded: list[Item] = []
    at = 0
    while at < len(items):
        if _first_block(items[at]) != header:
            folded.append(items[at])
            at += 1
            continue
        # An iteration is the header and the members after it, up to the next header.
        iterations: list[tuple[Item, ...]] = []
        while at < len(items) and _first_block(items[at]) == header:
            end = at + 1
            while end < len(items) and _first_block(items[end]) != header and _first_block(items[end]) in members:
                end += 1
            iterations.append(tuple(items[at:end]))
            at = end
        for body, run in groupby(iterations):
            count = len(list(run))
            folded.extend(body) if count == 1 else folded.append(Repeat(count, body))
    return folded


def _first_block(item: Item) -> int:
    while isinstance(item, Repeat):
        item = item.body[0]
    return item
