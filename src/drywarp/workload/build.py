"""What a kernel requires on any GPU: its warp paths as instruction dependence graphs, loops kept as loops.

The dependences are those that the compiler's schedule encodes: a scoreboard is a slot that an instruction with a write
(or read) barrier sets, and that every instruction with that bit in its wait mask waits for. Fixed latencies are the
stall counts. Both are exact for the given machine code (Cornelis and Lemeire §III.C calls the graph IDG and draws it by
hand).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import numpy.typing as npt

from ..kernel.cfg import ControlFlowGraph
from ..kernel.instruction import Immediate, Instruction, Special
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Launch
from ..kernel.profile import Profile
from .cost import SYNC_AT_END, SYNC_SIGNALS, BlockType, Item, Repeat
from .scoreboards import BarrierPhases, Dependences, find_barrier_phases, spread_partial_waits
from .waitcnt import Dependences as CountedDependences
from .waitcnt import counts_accesses, dependences

SCOREBOARDS = 6
ASYNC_SLOT, BULK_SLOT, WGMMA_SLOT, WGMMA_GROUPS, TENSOR_SLOT = range(SCOREBOARDS, SCOREBOARDS + 5)
"""Slots of operations that complete without a scoreboard of their own: per-lane copies, bulk stores and warp-group
products, the group `gsb0` that the last of several such products closes, and operations on tensor memory."""
SLOTS = SCOREBOARDS + 5
_COMMITS = {"LDGDEPBAR": ASYNC_SLOT, "UTMACMDFLUSH": BULK_SLOT}
"""Operations that a commit instruction groups; the scoreboard that it sets counts the groups."""
_REPORTS = {"ARRIVES": ASYNC_SLOT, "UTCBAR": TENSOR_SLOT}
"""Arrivals at a barrier that take place when all earlier operations of the warp are complete."""
_COUNTED = ("DEPBAR", "WARPGROUP")
"""Instructions that may wait for all but the last few."""


@dataclass(frozen=True, slots=True)
class Node:
    """One instruction of a path: its index in the kernel, and its dependences as slots.

    `waits` are the slots that must be ready; `sets` is the slot of its result, `sets_read` the slot that is ready once
    its operands have been read (-1: none). `stall` is the compiler's distance to the next instruction, in issue slots
    of the warp. `taken` marks a branch that is mostly taken, `skipped` a barrier that the warp's guard lets it pass.
    `sync` and `after` are as in `CostedNode`.
    """

    instruction: int
    waits: tuple[int, ...]
    sets: int
    sets_read: int
    stall: int
    taken: bool = False
    sync: int = 0
    after: int = -1
    skipped: bool = False


@dataclass(frozen=True)
class Path:
    """One distinct warp path: nodes, their order with loops kept as loops, and mean active lanes per node.

    An instruction may be several nodes with different slots. `slots` is the number of slots that the nodes use;
    `events` and `signals` are as in `CostedPath`.
    """

    nodes: tuple[Node, ...]
    program: tuple[Item, ...]
    lanes: tuple[float, ...]
    slots: int = SLOTS
    events: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()


@dataclass(frozen=True)
class Workload:
    """A kernel and its launch, without any hardware. `block_types` weights blocks by their paths.

    `stood_in` counts the blocks of the sample that are represented by others, and `off` is how much shorter and how
    much longer they are than these, in warp instructions (1.0: as long).
    """

    kernel: Kernel
    launch: Launch
    paths: tuple[Path, ...]
    block_types: tuple[BlockType, ...]
    stood_in: int = 0
    off: tuple[float, float] = (1.0, 1.0)


def build_workload(profile: Profile) -> Workload:
    """Turn an emulated profile into a workload.

    Blocks are simulated one by one, so what others of a cluster send counts as sent by the block itself: the record
    names a barrier by its place in shared memory, whichever block's it is. A block that sends nothing of what it waits
    for would not wait then; one of its cluster that does is simulated in its place.
    """
    kernel, size = profile.kernel, profile.launch.warp_size
    phases = find_barrier_phases(profile)
    bare: dict[int, Path] = {}
    paths: dict[tuple[int, tuple[int, ...], frozenset[int]], int] = {}
    made: list[Path] = []
    plain: dict[tuple[int, int], Node] = {}
    weights: dict[tuple[int, ...], float] = {}
    keys: list[tuple[int, ...]] = []

    def folded(path: int) -> Path:
        if path not in bare:
            taken = profile.paths[path]
            bare[path] = _path(kernel.instructions, profile.cfg, taken.blocks, taken.lanes, phases, size, plain)
        return bare[path]

    instead, off = _instead(profile, folded)
    for number, sample in enumerate(profile.blocks):
        key = []
        for warp, path in enumerate(sample.paths if number not in instead else ()):
            events, signals = phases.of(number, warp)
            skipped = phases.skipped.get((number, warp), frozenset())
            if (path, events, skipped) not in paths:
                paths[path, events, skipped] = len(made)
                new = replace(folded(path), events=events, signals=signals) if events else folded(path)
                made.append(_past(new, skipped) if skipped else new)
            key.append(paths[path, events, skipped])
        keys.append(tuple(key))
    for number, sample in enumerate(profile.blocks):
        other = _simulated(profile, number, phases.receivers)
        shown = keys[instead.get(other, other)]
        weights[shown] = weights.get(shown, 0.0) + sample.weight
    types = tuple(BlockType(key, weight) for key, weight in weights.items())
    return Workload(kernel, profile.launch, tuple(made), types, len(instead), off)


MOST_ITEMS = 1_000_000
"""Entries of all paths together, loops folded, past which further blocks are represented by others: some seconds."""


def _instead(profile: Profile, folded: Callable[[int], Path]) -> tuple[dict[int, int], tuple[float, float]]:
    """For each sampled block that is one too many, the block nearest in length that represents it; and `Workload.off`.

    Paths that follow data hardly fold. The longest block counts first, then the shortest, then those in between.
    """
    sizes = np.array([block.end - block.start for block in profile.cfg.blocks], np.int64)
    steps = [int(sizes[path.blocks].sum()) for path in profile.paths]
    if sum(steps) <= MOST_ITEMS:
        return {}, (1.0, 1.0)
    lengths = [sum(steps[path] for path in sample.paths) for sample in profile.blocks]
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    held: set[int] = set()
    kept: list[int] = []
    items = 0
    for number in _spread(order):
        if kept and items > MOST_ITEMS and not held.issuperset(profile.blocks[number].paths):
            continue
        new = set(profile.blocks[number].paths) - held
        items += sum(_entries(folded(path).program) for path in new)
        held |= new
        kept.append(number)
    left = sorted(set(order) - set(kept))
    instead = {number: min(kept, key=lambda one: abs(lengths[one] - lengths[number])) for number in left}
    off = [lengths[number] / lengths[one] for number, one in instead.items()]
    return instead, (min([1.0, *off]), max([1.0, *off]))


def _spread(order: Sequence[int]) -> Iterator[int]:
    """Both ends of a list, the one in the middle, the middle of each half, and so on."""
    last = len(order) - 1
    seen: set[int] = set()
    parts = 1
    while len(seen) < len(order):
        for at in range(parts + 1):
            place = round(at * last / parts)
            if place not in seen:
                seen.add(place)
                yield order[place]
        parts *= 2


def _entries(program: tuple[Item, ...]) -> int:
    return sum(_entries(item.body) + 1 if isinstance(item, Repeat) else 1 for item in program)


def _simulated(profile: Profile, number: int, receivers: frozenset[int]) -> int:
    """The sampled block that is simulated in the place of one."""
    launch, blocks = profile.launch, profile.blocks
    if number not in receivers or launch.cluster_blocks == 1:
        return number
    cluster = launch.cluster_of(blocks[number].linear)
    others = (n for n, one in enumerate(blocks) if n not in receivers and launch.cluster_of(one.linear) == cluster)
    return next(others, number)


def _past(path: Path, skipped: frozenset[int]) -> Path:
    """The path of a warp that its guards let pass some barriers."""
    return replace(path, nodes=tuple(replace(n, skipped=n.instruction in skipped) for n in path.nodes))


def node_of(instructions: Sequence[Instruction], index: int, sync: int = 0) -> Node:
    """The node of one instruction, from its control bits; `sync` is its effect on barrier phases."""
    instruction = instructions[index]
    control = instruction.control
    waits = tuple(b for b in range(SCOREBOARDS) if control.wait_mask >> b & 1)
    sets = -1 if control.write_barrier is None else control.write_barrier
    kind = instruction.memory.kind if instruction.memory else ""
    if instruction.class_ == "async_copy":
        sets = ASYNC_SLOT
    elif kind in ("bulk_store", "bulk_reduction"):
        sets = BULK_SLOT
    elif instruction.class_ == "wgmma":
        sets = WGMMA_GROUPS if _names_groups(instruction) else WGMMA_SLOT
    elif instruction.class_ == "tcgen05":
        sets = TENSOR_SLOT
    waits += _partial_wait(instruction)
    after = _REPORTS.get(instruction.opcode, -1)
    if sync & SYNC_SIGNALS and (after >= 0 or kind == "bulk_load"):
        sync |= SYNC_AT_END
    return Node(
        instruction=index,
        waits=waits,
        sets=sets,
        sets_read=-1 if control.read_barrier is None else control.read_barrier,
        # The encoding allows 0, a leftover from dual issue; a scheduler issues at most once per cycle.
        stall=max(control.stall, 1),
        sync=sync,
        after=after,
    )


def _names_groups(instruction: Instruction) -> bool:
    return any(isinstance(o, Special) and o.name.startswith("gsb") for o in instruction.operands)


def _partial_wait(instruction: Instruction) -> tuple[int, ...]:
    """Slots that a `DEPBAR.LE SB0, 0x0, {4,3}` waits for: SB0 where the count is 0, and the set in braces.

    If nothing may stay outstanding, neither may operations that complete without a scoreboard.
    """
    board, count = _scoreboard_and_count(instruction)
    if board == WGMMA_GROUPS:
        return (WGMMA_SLOT, WGMMA_GROUPS) if count == 0 else ()
    if instruction.opcode != "DEPBAR":
        return ()
    names = [o.name for o in instruction.operands if isinstance(o, Special)]
    whole = [int(board) for name in names if name.startswith("{") for board in re.findall(r"\d", name)]
    return (*whole, *([board, ASYNC_SLOT, BULK_SLOT] if count == 0 else []))


def _scoreboard_and_count(instruction: Instruction) -> tuple[int, int]:
    """The scoreboard of a DEPBAR.LE and how many operations may stay outstanding; (-1, -1) for other instructions.

    A group of warp-group products counts as one.
    """
    groups = instruction.opcode == "WARPGROUP" and _names_groups(instruction)
    if instruction.opcode != "DEPBAR" and not groups:
        return -1, -1
    counts = [int(o.value) for o in instruction.operands if isinstance(o, Immediate)]
    boards = [int(o.name[2:]) for o in instruction.operands if isinstance(o, Special) and o.name.startswith("SB")]
    boards = [WGMMA_GROUPS] if groups else boards
    return (boards[0], counts[0]) if boards and counts else (-1, -1)


def _path(
    instructions: Sequence[Instruction],
    cfg: ControlFlowGraph,
    blocks: npt.NDArray[np.int32],
    lanes: npt.NDArray[np.float32],
    phases: BarrierPhases,
    warp_size: int,
    plain: dict[tuple[int, int], Node],
) -> Path:
    """The path of a warp through basic `blocks`; `plain` holds the nodes that other paths have already created."""
    tree = fold(blocks.tolist(), cfg)
    counted = dependences(instructions, cfg, blocks.tolist()) if counts_accesses(instructions) else None
    order = sorted(set(blocks.tolist()))
    leaves = _leaves(blocks)
    node_index: dict[int, int] = {}
    nodes: list[Node] = []
    node_lanes: list[float] = []
    for block in order:
        mean = float(lanes[blocks == block].mean()) if len(lanes) else float(warp_size)
        for index in range(cfg.blocks[block].start, cfg.blocks[block].end):
            node_index[index] = len(nodes)
            sync = phases.sync.get(index, 0)
            if counted:
                nodes.append(_counted_node(instructions, index, counted))
            else:
                if (index, sync) not in plain:
                    plain[index, sync] = node_of(instructions, index, sync)
                made = plain[index, sync]
                last = index == cfg.blocks[block].end - 1
                leaving = last and block in leaves and instructions[index].class_ == "branch"
                nodes.append(replace(made, taken=True) if leaving else made)
            node_lanes.append(mean)
    spans = {
        block: tuple(node_index[i] for i in range(cfg.blocks[block].start, cfg.blocks[block].end)) for block in order
    }
    if counted is not None:
        return Path(tuple(nodes), _items(tree, spans), tuple(node_lanes), counted.slots)
    return _with_partial_waits(instructions, Path(tuple(nodes), _items(tree, spans), tuple(node_lanes)))


def _leaves(blocks: npt.NDArray[np.int32]) -> frozenset[int]:
    """Basic blocks that are mostly followed by a block other than the next one in the code."""
    before, after = blocks[:-1], blocks[1:]
    length = int(blocks.max()) + 1 if len(blocks) else 0
    away = np.bincount(before[after != before + 1], minlength=length)
    return frozenset(np.flatnonzero(2 * away > np.bincount(before, minlength=length)).tolist())


def _with_partial_waits(instructions: Sequence[Instruction], path: Path) -> Path:
    """The path with waits for all but the last few turned into waits for slots (see `scoreboards`)."""
    if all(instructions[node.instruction].opcode not in _COUNTED for node in path.nodes):
        return path
    collects: dict[int, frozenset[int]] = {WGMMA_GROUPS: frozenset({WGMMA_SLOT})}
    for node in path.nodes:
        collected = _COMMITS.get(instructions[node.instruction].opcode)
        board = node.sets if node.sets >= 0 else node.sets_read
        if collected is not None and board >= 0:
            collects[board] = collects.get(board, frozenset()) | {collected}
    # Barrier arrivals that depend on all earlier copies name the copies' slot, which a ring would split.
    whole = any(node.after == ASYNC_SLOT for node in path.nodes)
    given = []
    for node in path.nodes:
        board, count = _scoreboard_and_count(instructions[node.instruction])
        waits, counted = node.waits, (board, count) if count > 0 else None
        if whole and counted and ASYNC_SLOT in collects.get(board, ()):
            waits, counted = (*waits, board, ASYNC_SLOT), None
        given.append(Dependences(waits, node.sets, node.sets_read, counted))
    spread = spread_partial_waits(given, path.program, SLOTS, collects)
    if spread is None:
        return path
    nodes = tuple(
        replace(path.nodes[origin], waits=made.waits, sets=made.sets, sets_read=made.sets_read)
        for origin, made in zip(spread.origins, spread.nodes, strict=True)
    )
    return Path(nodes, spread.program, tuple(path.lanes[origin] for origin in spread.origins), spread.slots)


def _counted_node(instructions: Sequence[Instruction], index: int, counted: CountedDependences) -> Node:
    """The node of an AMD instruction, with the dependences that the counters imply."""
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

    Works outwards from the innermost natural loop. Unfolding restores the exact sequence, even if a divergent warp
    interleaves branch sides or skips a header.
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
