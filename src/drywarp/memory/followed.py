"""Blocks whose addresses are not affine in the block index: every block of a wave is examined, but briefly.

Grouped tiles, swizzled orders and blocks that select their work by division and remainder start anywhere, yet from
there on most do the same. A brief run of a block (`emulator.skim`) shows where each of its loops begins. The blocks
that were run in full show that the rest of a loop moves as its beginning does. Blocks that differ in more than their
addresses form classes, each with a block that was run in full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..kernel.cfg import Loop
from ..kernel.profile import SPACE_GLOBAL, Profile
from .footprint import EMPTY, Footprint, Moved, Stage, union
from .moved_footprint import MovedFootprints
from .requests import Ints
from .table import MemoryGeometry

EmulateBlocks = Callable[[Sequence[int]], "Profile | None"]
"""Runs whole blocks for their addresses; None if that would exceed a limit."""
MOST_CLASSES = 24
"""Most kinds of blocks for which each gets its own reference."""
_FEW = 2 * MOST_CLASSES
"""Blocks that are looked at first, at least, spread over all."""


class Look(Protocol):
    """Runs blocks briefly: loops in `once` run a single iteration."""

    @property
    def once(self) -> Sequence[Loop]:
        """The loops that run a single iteration."""

    def __call__(self, blocks: Sequence[int]) -> Profile | None:
        """The brief runs of some blocks, given as linear indices; None past a limit."""


class _UnlikeError(Exception):
    """What was observed of the blocks does not determine the rest of what they do."""


@dataclass(frozen=True)
class _Requests:
    """Global accesses of one block, warp by warp in issue order: rows of a log, and a key for equal behaviour."""

    rows: npt.NDArray[np.intp]
    base: Ints
    key: bytes


@dataclass(frozen=True)
class _Run:
    """A block that was run: block `number` of a profile."""

    profile: Profile
    number: int
    requests: _Requests


def _requests_of(profile: Profile, known: dict[bytes, int]) -> list[_Requests]:
    """The global accesses of every block of a profile; equal keys mean equal accesses apart from their addresses.

    `known` numbers lane patterns, which profiles may number differently.
    """
    log, per_block = profile.accesses, profile.launch.warps_per_block
    rows = np.flatnonzero(log.space == SPACE_GLOBAL)
    warp = log.warp[rows].astype(np.int64)
    bounds = np.searchsorted(warp, np.arange(len(profile.blocks) + 1) * per_block).tolist()
    lanes = np.arange(log.offsets.shape[1])
    on = (log.masks[:, None].astype(np.uint64) >> lanes.astype(np.uint64)) & np.uint64(1)
    content = np.column_stack([np.where(on == 1, log.offsets, 0), log.masks.astype(np.int64)])
    pattern = np.array([known.setdefault(row.tobytes(), len(known)) for row in content], np.int64)
    keys, base = np.empty((len(rows), 3), np.int32), log.base[rows]
    keys[:, 0], keys[:, 1], keys[:, 2] = log.instruction[rows], pattern[log.pattern[rows]], warp % per_block
    return [_Requests(rows[a:b], base[a:b], keys[a:b].tobytes()) for a, b in pairwise(bounds)]


@dataclass(frozen=True)
class BlockClass:
    """Blocks that do what sample `reference` of `profile` does: see `affine.Alike`.

    `mover` holds column numbers of `bases`, the addresses at which the members' brief runs begin their loops.
    """

    profile: Profile
    reference: int
    rows: npt.NDArray[np.intp]
    mover: Ints
    bases: Ints
    origin: int
    place: dict[int, int]

    def moves(self, linear: Ints) -> Ints:
        """Bytes from the reference's requests to those of some members, shape (blocks, movers)."""
        moved: Ints = self.bases[[self.place[block] for block in linear.tolist()]] - self.bases[self.origin]
        return moved


class FollowedBlocks:
    """The class of every examined block, and the footprint of any of them."""

    def __init__(self, profile: Profile, look: Look, emulate: EmulateBlocks | None, geometry: MemoryGeometry) -> None:
        self._profile, self._look, self._emulate, self._geometry = profile, look, emulate, geometry
        self._in_full: dict[int, _Run] = {}
        self._brief: dict[int, _Run] = {}
        self._class_of: dict[int, int] = {}
        self._classes: list[BlockClass] = []
        self._footprints: list[MovedFootprints] = []
        self._patterns: dict[bytes, int] = {}
        self._keep(profile, self._in_full)

    def look(self, blocks: Sequence[int]) -> bool:
        """Examine these blocks; whether that determines what they do."""
        if all(block in self._class_of for block in blocks):
            return True
        sampled = {sample.linear for sample in self._profile.blocks}
        asked = sorted({*blocks, *self._class_of, *sampled})
        new = [block for block in asked if block not in self._brief]
        # Where the sampled ones, or a few of all, already differ too much, the others need no look.
        first, some = [block for block in new if block in sampled], new[:: max(1, len(new) // _FEW)]
        few = {*first, *some}
        try:
            for part in (first, [b for b in some if b not in sampled], [b for b in new if b not in few]):
                seen = self._look(part) if part else None
                if seen is None and part:
                    return False
                if seen is not None:
                    self._keep(seen, self._brief)
                if len({run.requests.key for run in self._brief.values()}) > MOST_CLASSES:
                    return False
                if part is first:
                    self._sorted(first)
            self._classes = self._sorted(asked)
        except _UnlikeError:
            return False
        self._class_of = {block: number for number, one in enumerate(self._classes) for block in one.place}
        self._footprints = [MovedFootprints(one.profile, one, self._geometry) for one in self._classes]
        return True

    def __call__(self, blocks: Sequence[int], stage: Stage | None = None) -> Footprint | None:
        """The footprint of some blocks, in one stage of their runs or in all.

        None if it cannot be determined or would need too much memory.
        """
        if not self.look(blocks):
            return None
        members: dict[int, list[int]] = {}
        for block in blocks:
            members.setdefault(self._class_of[block], []).append(block)
        found = [self._footprints[number](some, stage) for number, some in sorted(members.items())]
        parts = [part for part in found if part is not None]
        if len(parts) < len(found):
            return None
        return parts[0] if len(parts) == 1 else _joined(parts)

    @property
    def classes(self) -> Sequence[BlockClass]:
        """The kinds of blocks that were examined."""
        return self._classes

    def class_of(self, block: int) -> BlockClass | None:
        """The class of a block whose reference the profile holds."""
        found = self._classes[self._class_of[block]] if self.look([block]) else None
        return found if found is not None and found.profile is self._profile else None

    def _keep(self, profile: Profile, runs: dict[int, _Run]) -> None:
        for number, (sample, requests) in enumerate(
            zip(profile.blocks, _requests_of(profile, self._patterns), strict=True)
        ):
            runs.setdefault(sample.linear, _Run(profile, number, requests))

    def _sorted(self, blocks: Sequence[int]) -> list[BlockClass]:
        """The classes of examined blocks, each confirmed on blocks that were run in full."""
        members: dict[bytes, list[int]] = {}
        for block in blocks:
            members.setdefault(self._brief[block].requests.key, []).append(block)
        if len(members) > MOST_CLASSES:
            raise _UnlikeError
        return [self._class(of_class) for of_class in members.values()]

    def _class(self, linear: Sequence[int]) -> BlockClass:
        # Two blocks run in full: one as the reference, one to confirm it.
        have = sum(block in self._in_full for block in linear)
        missing = [block for block in linear if block not in self._in_full][-max(0, 2 - have) :] if have < 2 else []
        if missing:
            found = self._emulate(missing) if self._emulate else None
            if found is None:
                raise _UnlikeError
            self._keep(found, self._in_full)
        full = [(place, self._in_full[block]) for place, block in enumerate(linear) if block in self._in_full]
        full.sort(key=lambda item: item[1].profile is not self._profile)
        origin, run = full[0]
        profile, reference, requests = run.profile, run.number, run.requests
        bases = np.stack([self._brief[block].requests.base for block in linear])
        begin = _beginnings(run, self._brief[linear[origin]], self._look.once)
        for place, other in full[1:]:
            theirs = other.requests
            moved = (bases[place] - bases[origin])[begin]
            if theirs.key != requests.key or not np.array_equal(theirs.base - requests.base, moved):
                raise _UnlikeError
        used, column = np.unique(begin, return_inverse=True)
        columns, mover = _distinct_columns(bases[:, used] - bases[origin, used])
        issued = np.lexsort((profile.accesses.warp[requests.rows], profile.accesses.order[requests.rows]))
        numbers = mover[column.reshape(-1)]
        return BlockClass(
            profile, reference, requests.rows[issued], numbers[issued], columns, origin,
            {block: place for place, block in enumerate(linear)},
        )  # fmt: skip


def _distinct_columns(table: Ints) -> tuple[Ints, npt.NDArray[np.intp]]:
    """The distinct columns in lexicographic order, and which of them each column is, as NumPy's `unique` has them.

    That would compare as many fields as there are rows, one by one.
    """
    # Big-endian numbers with the sign turned over compare as bytes do.
    ordered = np.ascontiguousarray((table.T ^ np.int64(-1 << 63)).astype(">i8"))
    texts = [column.tobytes() for column in ordered]
    first = {text: at for at, text in reversed([*enumerate(texts)])}
    number = {text: place for place, text in enumerate(sorted(first))}
    return table[:, [first[text] for text in number]], np.array([number[text] for text in texts], np.intp)


def _beginnings(full: _Run, brief: _Run, once: Sequence[Loop]) -> npt.NDArray[np.intp]:
    """For each request of a block run in full, the request of its brief run that moves with it.

    That is the same execution if it is in no loop that ran once, else the one in the iteration that ran.
    """
    known: dict[tuple[int, int, int, int], int] = {}
    for index, place in enumerate(_places(brief, once)):
        known.setdefault(place, index)
    first: dict[tuple[int, int], int] = {}
    for (warp, instruction, _, _), index in known.items():
        first.setdefault((warp, instruction), index)
    found = []
    for place in _places(full, once):
        index = known.get(place, first.get(place[:2], -1))
        if index < 0:
            raise _UnlikeError
        found.append(index)
    return np.array(found, np.intp)


def _places(run: _Run, once: Sequence[Loop]) -> list[tuple[int, int, int, int]]:
    """For each request: its warp, instruction, execution of it (or of the loop around it), and request within it."""
    profile, sample, requests = run.profile, run.number, run.requests
    log, cfg, per_block = profile.accesses, profile.cfg, profile.launch.warps_per_block
    instruction = log.instruction[requests.rows].astype(np.int64)
    warp = log.warp[requests.rows].astype(np.int64) - sample * per_block
    order = np.lexsort((np.arange(len(warp)), instruction, warp))
    cut = np.flatnonzero(np.r_[True, np.diff(instruction[order]) != 0] | np.r_[True, np.diff(warp[order]) != 0])
    found: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)] * len(order)
    runs: dict[tuple[int, int], Ints] = {}
    for rows in np.split(order, cut[1:]) if len(order) else []:
        w, i = int(warp[rows[0]]), int(instruction[rows[0]])
        path = profile.blocks[sample].paths[w]
        block = cfg.block_of[i]
        if (path, block) not in runs:
            runs[path, block] = _runs(profile.paths[path].blocks, block, once)
        passes = runs[path, block]
        each = len(rows) // len(passes) if len(passes) and len(rows) % len(passes) == 0 else 0
        for n, row in enumerate(rows.tolist()):
            # If not every execution made a request, it is unknown which one did.
            found[row] = (w, i, int(passes[n // each]), n % each) if each else (w, i, -1, 0)
    return found


def _runs(path: npt.NDArray[np.int32], block: int, once: Sequence[Loop]) -> Ints:
    """The number of each execution of a basic block; in a loop that ran once, the number of the loop's execution."""
    here = path == block
    loop = max((loop for loop in once if block in loop.blocks), key=lambda loop: len(loop.blocks), default=None)
    if loop is None:
        return np.arange(np.count_nonzero(here))
    inside = np.isin(path, list(loop.blocks))
    began = inside & ~np.r_[False, inside[:-1]]
    numbers: Ints = np.cumsum(began)[here] - 1
    return numbers


def _joined(parts: Sequence[Footprint]) -> Footprint:
    def by_instruction() -> dict[int, Moved]:
        pieces: dict[int, list[Moved]] = {}
        for part in parts:
            for index, moved in part.parts.items():
                pieces.setdefault(index, []).append(moved)
        return {index: Moved(union(EMPTY, *(m.whole() for m in some))) for index, some in sorted(pieces.items())}

    return Footprint(by_instruction, lambda: union(EMPTY, *(part.union() for part in parts)))
