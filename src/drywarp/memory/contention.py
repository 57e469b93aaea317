"""What blocks do to each other: reads of what others write, and atomics on the same address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..kernel.cfg import ControlFlowGraph, ends_block, kept_for
from ..kernel.dataflow import Dataflow
from ..kernel.draws import NOTE, draws_of
from ..kernel.instruction import Instruction
from ..kernel.isa.nvidia.registers import Place, address_places
from ..kernel.launch.launch import Dim3
from ..kernel.profile import GRID_BARRIER_AREA, SPACE_GLOBAL, Profile
from .affine import AffineBlocks, Alike
from .followed import FollowedBlocks
from .requests import Ints, distinct_per_row
from .table import active_lanes, distinct

_READS, _WRITES = ("load", "atomic"), ("store", "atomic", "reduction")
_WIDEST = 16
_CHUNK = 1 << 14


def reads_of_others(profile: Profile) -> int | None:
    """An instruction that reads another block's writes and whose result is decisive; None if there is none.

    A load's result is decisive if a branch or an address follows from it. An atomic's result is decisive if it
    determines a loop or an address that is read: which block takes the last ticket, or where results are packed, makes
    little difference. Draws that were handed out in turn do not count (`kernel.draws`). Only the addresses of the
    sampled blocks are examined. Blocks that synchronise at grid-wide barriers were run together.
    """
    log = profile.accesses
    instructions = profile.kernel.instructions
    if len(profile.blocks) < 2 or not len(log) or GRID_BARRIER_AREA in profile.allocations:
        return None
    kinds = [i.memory.kind if i.memory else "" for i in instructions]
    reads, writes = (np.array([kind in wanted for kind in kinds], np.bool_) for wanted in (_READS, _WRITES))
    # A buffer that is only read, or only written, needs no closer look.
    starts = np.sort(np.array([address for address, _ in profile.allocations.values()], np.int64))
    buffer = np.searchsorted(starts, log.base, side="right")
    outside = log.space == SPACE_GLOBAL
    read, written = (np.flatnonzero(some[log.instruction] & outside) for some in (reads, writes))
    both = np.intersect1d(buffer[read], buffer[written])
    written = written[np.isin(buffer[written], both)]
    read = read[np.isin(buffer[read], both)]
    if not len(read) or not len(written):
        return None
    unit = int(_widths(profile)[log.instruction[np.r_[read, written]]].min())
    places, first, last = _writers(profile, written, unit)
    found: set[int] = set()
    for start in range(0, len(read), _CHUNK):
        words, block, instruction = _words(profile, read[start : start + _CHUNK], unit)
        at = np.minimum(np.searchsorted(places, words), len(places) - 1)
        theirs = (places[at] == words) & ((first[at] != block) | (last[at] != block))
        found |= set(np.unique(instruction[theirs]).tolist())
    if found and NOTE in profile.notes:
        found -= draws_of(instructions, profile.cfg)
    if not found:
        return None
    cfg = profile.cfg
    return min(found & kept_for(instructions, cfg, "deciding", lambda: _deciding(instructions, cfg)), default=None)


def _widths(profile: Profile) -> npt.NDArray[np.int64]:
    """Bytes that each lane of an instruction accesses."""
    return np.array([min(i.memory.width, _WIDEST) if i.memory else _WIDEST for i in profile.kernel.instructions])


def _words(
    profile: Profile, rows: npt.NDArray[np.intp], unit: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Words of this many bytes that these requests access, with sampled block and instruction of each."""
    log = profile.accesses
    addresses, active = active_lanes(log, rows)
    row, _ = np.nonzero(active)
    instruction = log.instruction[rows][row].astype(np.int64)
    block = (log.warp[rows] // profile.launch.warps_per_block)[row].astype(np.int64)
    each = _widths(profile)[instruction] // unit
    begin = np.repeat(addresses[active] // unit, each)
    place = np.arange(len(begin)) - np.repeat(np.cumsum(each) - each, each)
    return begin + place, np.repeat(block, each), np.repeat(instruction, each)


def _writers(
    profile: Profile, rows: npt.NDArray[np.intp], unit: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Words that are written, in order, and the first and the last sampled block that writes each."""
    parts = [_words(profile, rows[start : start + _CHUNK], unit)[:2] for start in range(0, len(rows), _CHUNK)]
    words, block = (np.concatenate(column) for column in zip(*parts, strict=True))
    at, of_place = distinct(words)
    places, order = words[at], np.argsort(words[at])
    first, last = np.full(len(places), len(profile.blocks)), np.full(len(places), -1)
    np.minimum.at(first, of_place, block)
    np.maximum.at(last, of_place, block)
    return places[order], first[order], last[order]


def _deciding(code: Sequence[Instruction], cfg: ControlFlowGraph) -> frozenset[int]:
    """Instructions with decisive results, also through shared memory; stores to global memory are not followed."""
    flow = Dataflow(code, cfg)
    ends: list[tuple[int, set[Place] | None]] = []
    of_loops: list[tuple[int, set[Place] | None]] = []
    for index, i in enumerate(code):
        if ends_block(i):
            loop, next_ = cfg.innermost_loop(cfg.block_of[index]), cfg.blocks[cfg.block_of[index]].successors
            ends_turn = loop is not None and (
                i.opcode == "EXIT" or loop.header in next_ or not loop.blocks.issuperset(next_)
            )
            (of_loops if ends_turn else ends).append((index, None))
        elif i.memory is not None:
            (of_loops if i.memory.kind in _READS else ends).append((index, address_places(i)))
    loops = flow.slice_of(of_loops)
    loads = {k for k in flow.slice_of(ends) if (memory := code[k].memory) is not None and memory.kind == "load"}
    return frozenset(loops | loads)


# Atomics on global memory that target the same address: the L2 executes them one lane after the other.

ATOMIC = ("atomic", "reduction")
_RUN_CHUNK = 1 << 16
_MOST_WANTED = 1 << 21
"""Most pairs of address and block that are examined; if there are more, fewer blocks are used."""


@dataclass(frozen=True)
class Busiest:
    """The address that most lanes of a grid's atomics target: lanes of each instruction, shape (instructions,).

    `shared` says whether several blocks target it. `slice_lanes` are those that target the busiest slice of the L2.
    """

    lanes: npt.NDArray[np.float64]
    shared: bool
    slice_lanes: npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Wanted:
    """Addresses, the blocks and instructions that target them, and the lanes that do: columns of shape (n,)."""

    address: Ints
    block: Ints
    instruction: Ints
    lanes: npt.NDArray[np.float64]


def busiest_address(profile: Profile, alike: FollowedBlocks | AffineBlocks | None, slice_bytes: int) -> Busiest:
    """What the known blocks imply about the whole grid's atomics.

    A slice holds `slice_bytes` in a row; parts of a footprint are assumed to lie on slices of their own.
    If all blocks do what one does, its addresses are moved over the grid. Otherwise see `_estimated`. The busiest
    slice never has fewer lanes than a buffer's slices have on average, wherever in it other blocks aim.
    """
    found = _busiest_seen(profile, alike, slice_bytes)
    return replace(found, slice_lanes=_at_least(profile, found.slice_lanes, slice_bytes)) if slice_bytes else found


def _at_least(profile: Profile, lanes: npt.NDArray[np.float64], slice_bytes: int) -> npt.NDArray[np.float64]:
    log, rows, count = profile.accesses, _atomics(profile), len(lanes)
    requests = np.maximum(1, np.bincount(log.instruction[rows], minlength=count))
    grid = np.array([sample.weight for sample in profile.blocks]) @ profile.thread_instructions
    for address, size in profile.allocations.values():
        inside = rows[(log.base[rows] >= address) & (log.base[rows] < address + size)]
        mean = np.bincount(log.instruction[inside], minlength=count) / requests * grid / -(-size // slice_bytes)
        lanes = max(lanes, mean, key=lambda each: float(each.sum()))
    return lanes


def lanes_together(profile: Profile) -> npt.NDArray[np.float64]:
    """Lanes of a request that share an address, on average over an atomic's requests: 1 for other instructions."""
    log, rows, count = profile.accesses, _atomics(profile), len(profile.kernel.instructions)
    lanes, distinct = np.zeros(count), np.zeros(count)
    for start in range(0, len(rows), _RUN_CHUNK):
        some = rows[start : start + _RUN_CHUNK]
        addresses, active = active_lanes(log, some)
        lanes += np.bincount(log.instruction[some], active.sum(axis=1), minlength=count)
        distinct += np.bincount(log.instruction[some], distinct_per_row(addresses, active), minlength=count)
    return np.divide(lanes, distinct, out=np.ones(count), where=distinct > 0)


def _busiest_seen(profile: Profile, alike: FollowedBlocks | AffineBlocks | None, slice_bytes: int) -> Busiest:
    if isinstance(alike, FollowedBlocks):
        entries = max(32 * len(_atomics(one.profile)) / len(one.profile.blocks) for one in alike.classes)
        known = _looked_at(sorted(block for one in alike.classes for block in one.place), entries)
        parts = [
            _moved(one.profile, one, together, known[np.isin(known, list(one.place))])
            for one in alike.classes
            for together in _moving_together(one, _atomics(one.profile))
        ]
        return _estimated(profile, _joined(parts), known, slice_bytes)
    rows = _atomics(profile)
    seen, sampled = _seen(profile, rows), np.array([sample.linear for sample in profile.blocks], np.int64)
    if alike is None or len(sampled) == profile.launch.blocks:
        return _estimated(profile, seen, sampled, slice_bytes)
    # Whatever the reference block does not do is taken from the sampled blocks that do it.
    others = ~np.isin(seen.instruction, profile.accesses.instruction[alike.rows])
    found = [_estimated(profile, _only(seen, others), sampled, slice_bytes)]
    for together in _moving_together(alike, rows):
        steps = alike.coefficients[np.flatnonzero(alike.rows == together[0])[0]]
        launch = profile.launch
        if launch.starts:  # in one row, whatever they are in the grid
            steps = np.array([steps.any(), False, False])
        blocks, times = _enough_blocks(launch.starting, steps, len(together) * 32)
        wanted = _moved(profile, alike, together, blocks)
        found.append(_busiest(profile, wanted, np.full(len(wanted.lanes), float(times)), slice_bytes))
    most = max(found, key=lambda busiest: float(busiest.lanes.sum()))
    of_slice = max((one.slice_lanes for one in found), key=lambda lanes: float(lanes.sum()))
    return replace(most, slice_lanes=of_slice)


def contended_loop(profile: Profile, busiest: Busiest) -> int | None:
    """A compare-and-swap that a loop retries until no other block interferes; None if there is none.

    Sampled blocks are run separately, so only a block's own attempts are counted.
    """
    cfg = profile.cfg
    for number, block in enumerate(cfg.blocks):
        if not busiest.shared or cfg.innermost_loop(number) is None:
            continue
        for index in range(block.start, block.end):
            if "CAS" in profile.kernel.instructions[index].modifiers and busiest.lanes[index]:
                return index
    return None


def _atomics(profile: Profile) -> npt.NDArray[np.intp]:
    """Log rows of atomics on global memory."""
    kinds = np.array([bool(i.memory and i.memory.kind in ATOMIC) for i in profile.kernel.instructions], np.bool_)
    log = profile.accesses
    if not kinds.any() or not len(log):
        return np.zeros(0, np.intp)
    return np.flatnonzero(kinds[log.instruction] & (log.space == SPACE_GLOBAL))


def _moving_together(alike: Alike, rows: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    """Those of the reference block's rows that are in `rows`, grouped by how they move from block to block."""
    among = np.isin(alike.rows, rows)
    return [alike.rows[among & (alike.mover == mover)] for mover in np.unique(alike.mover[among]).tolist()]


def _seen(profile: Profile, rows: npt.NDArray[np.intp]) -> _Wanted:
    """Targets of these requests of the sampled blocks."""
    log, found = profile.accesses, []
    linear = np.array([sample.linear for sample in profile.blocks], np.int64)
    for start in range(0, len(rows), _RUN_CHUNK):
        some = rows[start : start + _RUN_CHUNK]
        addresses, active = active_lanes(log, some)
        row, _ = np.nonzero(active)
        block = linear[log.warp[some] // profile.launch.warps_per_block]
        instruction = log.instruction[some].astype(np.int64)[row]
        lanes = np.ones(len(row)) if profile.logged is None else 1 / profile.logged[instruction]
        found.append(_summed(_Wanted(addresses[active], block[row], instruction, lanes)))
    return _summed(_joined(found))


def _moved(profile: Profile, alike: Alike, rows: npt.NDArray[np.intp], blocks: Ints) -> _Wanted:
    """Targets of these blocks, from what the reference block does in `rows`, which all move together."""
    one = _seen(profile, rows)
    moves = alike.moves(blocks)[:, alike.mover[np.flatnonzero(alike.rows == rows[0])[0]]]
    each, count = len(one.address), len(blocks)
    return _Wanted(
        np.add.outer(moves, one.address).reshape(-1),
        np.repeat(blocks, each),
        np.tile(one.instruction, count),
        np.tile(one.lanes, count),
    )


def _joined(parts: Sequence[_Wanted]) -> _Wanted:
    """Parts joined."""
    none = np.zeros(0, np.int64)
    return _Wanted(
        np.concatenate([none, *(part.address for part in parts)]),
        np.concatenate([none, *(part.block for part in parts)]),
        np.concatenate([none, *(part.instruction for part in parts)]),
        np.concatenate([np.zeros(0), *(part.lanes for part in parts)]),
    )


def _summed(wanted: _Wanted) -> _Wanted:
    """Merge the lanes of one block and instruction at one address."""
    order = np.lexsort((wanted.instruction, wanted.block, wanted.address))
    keys = np.stack([wanted.address, wanted.block, wanted.instruction])[:, order]
    new = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)][: len(order)])
    lanes = np.add.reduceat(wanted.lanes[order], new) if len(new) else np.zeros(0)
    return _Wanted(keys[0, new], keys[1, new], keys[2, new], lanes)


def _only(wanted: _Wanted, some: npt.NDArray[np.bool_]) -> _Wanted:
    return _Wanted(wanted.address[some], wanted.block[some], wanted.instruction[some], wanted.lanes[some])


def _enough_blocks(grid: Dim3, steps: Ints, entries: int) -> tuple[Ints, int]:
    """Blocks whose addresses cover the grid's, and how many blocks target each block's addresses.

    Along a dimension in which addresses do not move, one block represents all. If there are still too many blocks, the
    longest dimension is cut short: blocks that target the same address are close to each other there.
    """
    extents = [extent if step else 1 for extent, step in zip(grid, steps.tolist(), strict=True)]
    times = np.prod(grid) // np.prod(extents)
    while np.prod(extents) * entries > _MOST_WANTED and max(extents) > 1:
        longest = extents.index(max(extents))
        extents[longest] = -(-extents[longest] // 2)
    z, y, x = np.meshgrid(*(np.arange(extent) for extent in reversed(extents)), indexing="ij")
    return ((z * grid[1] + y) * grid[0] + x).reshape(-1).astype(np.int64), int(times)


def _looked_at(blocks: Sequence[int], entries: float) -> Ints:
    """The groups of neighbours among these blocks; long groups are cut to the size limit.

    Groups much shorter than others were run for other reasons and would be over-represented, so they are dropped.
    """
    known = np.array(blocks, np.int64)
    groups = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1)
    longest = most = max(map(len, groups))
    groups = [group for group in groups if 8 * len(group) >= longest]
    while most > 1 and sum(min(len(group), most) for group in groups) * entries > _MOST_WANTED:
        most = most * 3 // 4
    return np.concatenate([group[:most] for group in groups])


def _estimated(profile: Profile, wanted: _Wanted, known: Ints, slice_bytes: int) -> Busiest:
    """The most contended address of a grid of which some blocks are known.

    Neighbours among them form a group. Blocks between two groups are assumed to target what both groups target, as
    often as these do; those before the first and after the last group, what that group targets.
    """
    ends = np.flatnonzero(np.diff(known) > 1)
    first, last = known[np.r_[0, ends + 1]], known[np.r_[ends, len(known) - 1]]
    count = len(first)
    before = np.diff(np.r_[-1, last])  # blocks up to the end of a group, from the end of the one before
    size = last - first + 1
    gap = np.r_[before - size, profile.launch.blocks - 1 - last[-1]].astype(np.float64)
    gap[1:-1] /= 2
    group = np.searchsorted(first, wanted.block, side="right") - 1
    places, of_place = np.unique(wanted.address, return_inverse=True)
    pairs = np.unique(of_place * (count + 2) + group + 1)

    def wants(neighbour: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        pair = of_place * (count + 2) + neighbour + 1
        at = np.minimum(np.searchsorted(pairs, pair), len(pairs) - 1)
        found: npt.NDArray[np.bool_] = (neighbour < 0) | (neighbour == count) | (pairs[at] == pair)
        return found

    # An address that only one of several groups targets is private to that group.
    several = np.bincount(pairs // (count + 2), minlength=len(places))[of_place] > 1 if count > 1 else True
    more = gap[group] * wants(group - 1) + gap[group + 1] * wants(group + 1)
    return _busiest(profile, wanted, 1 + several * more / size[group], slice_bytes)


def _busiest(profile: Profile, wanted: _Wanted, weight: npt.NDArray[np.float64], slice_bytes: int) -> Busiest:
    count = len(profile.kernel.instructions)
    if not len(wanted.lanes):
        return Busiest(np.zeros(count), shared=False, slice_lanes=np.zeros(count))
    lanes = wanted.lanes * weight

    def most(places: Ints) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
        _, of_place = np.unique(places, return_inverse=True)
        there = of_place == np.bincount(of_place, lanes).argmax()
        return there, np.bincount(wanted.instruction[there], lanes[there], minlength=count).astype(np.float64)

    there, total = most(wanted.address)
    several = len(np.unique(wanted.block[there])) > 1 or float(weight[there].max()) > 1
    return Busiest(total, shared=several, slice_lanes=most(wanted.address // slice_bytes)[1] if slice_bytes else total)
