"""The sectors that whole waves touch, derived from one block: the others do the same, shifted by some bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..kernel.profile import Profile
from .affine import Alike
from .footprint import EMPTY, Footprint, Moved, Runs, Stage, distinct_by_group, intersection, merged, shifted, union
from .requests import Ints
from .table import MemoryGeometry, distinct_rows

MOST_RUNS = 20_000_000
"""Most runs of sectors in the footprint of one wave before it is rejected as too large."""


class _Shift(NamedTuple):
    """Remaining bytes, less than a sector, and whole sectors, ascending: `first`, then `steps` from there.

    Equal steps have equal `key`.
    """

    residue: int
    first: int
    steps: Ints
    key: bytes


class _Base(NamedTuple):
    """What a group touches: a `pattern` that begins at 0, placed at `start`. Equal patterns have equal `key`."""

    pattern: Runs
    start: int
    key: bytes


@dataclass(frozen=True)
class _Group:
    """Requests that move alike: `rows` of the log, for `instruction` alone or (None) for all that move so."""

    instruction: int | None
    mover: int
    rows: npt.NDArray[np.intp]


class _InStage(NamedTuple):
    """Blocks that are alike, only some of whose accesses count: see `affine.Alike`."""

    alike: Alike
    rows: npt.NDArray[np.intp]
    mover: Ints

    @property
    def reference(self) -> int:
        return self.alike.reference

    def moves(self, linear: Ints) -> Ints:
        return self.alike.moves(linear)


class MovedFootprints:
    """The footprint of any blocks that are alike, derived from the reference block.

    Requests that move alike are shifted together, and equal shifts are taken once, so the cost depends on the distinct
    data and not on the number of blocks. Sectors outside every buffer (an edge block that does less than the reference)
    are dropped. None if it would need too much memory. What requests touch, and the pattern that its repetition makes,
    are computed once: the instructions of an unrolled loop share them, and so do most waves.
    """

    def __init__(self, profile: Profile, alike: Alike, geometry: MemoryGeometry) -> None:
        self._profile, self._geometry, self._alike = profile, geometry, alike
        instruction = profile.accesses.instruction[alike.rows].astype(np.int64)
        self._groups = list(_groups(alike.rows, np.column_stack([instruction, alike.mover])))
        self._together = list(_groups(alike.rows, alike.mover[:, None]))
        self._allowed = _allocated(profile, geometry.sector_bytes)
        self._spans: list[list[int]] = self._allowed.tolist()
        self._bases: dict[tuple[int, int], _Base] = {}
        self._patterns: dict[tuple[bytes, bytes], Runs] = {}
        self._stages: dict[Stage, MovedFootprints] = {}

    def __call__(self, blocks: Sequence[int], stage: Stage | None = None) -> Footprint | None:
        """The footprint of some blocks, given as linear indices, in one stage of their runs or in all."""
        if stage is not None:
            if stage not in self._stages:
                some = stage.among(self._profile, self._alike.rows)
                part = _InStage(self._alike, self._alike.rows[some], self._alike.mover[some])
                self._stages[stage] = MovedFootprints(self._profile, part, self._geometry)
            return self._stages[stage](blocks)
        moves = self._alike.moves(np.asarray(blocks, np.int64))
        shifts = {group.mover: self._shifts(moves[:, group.mover]) for group in self._together}
        held = sum(len(b.pattern) * len(s.steps) for group in self._groups for b, s in self._moved(group, shifts))
        if held > MOST_RUNS:
            return None
        return Footprint(lambda: self._by_instruction(shifts), lambda: self._whole(shifts))

    def _by_instruction(self, shifts: Mapping[int, Sequence[_Shift]]) -> dict[int, Moved]:
        parts: dict[int, list[Moved]] = {}
        for group in self._groups:
            assert group.instruction is not None
            for base, shift in self._moved(group, shifts):
                parts.setdefault(group.instruction, []).append(self._repeated(base, shift))
        return {
            index: self._within(Moved(union(*(part.whole() for part in p))) if len(p) > 1 else p[0])
            for index, p in sorted(parts.items())
        }

    def _whole(self, shifts: Mapping[int, Sequence[_Shift]]) -> Runs:
        parts = [self._repeated(*moved).whole() for group in self._together for moved in self._moved(group, shifts)]
        return self._within(Moved(union(EMPTY, *parts))).whole()

    def _shifts(self, moved: Ints) -> list[_Shift]:
        """Distinct shifts in bytes as whole sectors, grouped by the remaining bytes."""
        whole, rest = np.divmod(np.unique(moved), self._geometry.sector_bytes)
        found = []
        for residue in np.unique(rest).tolist():
            moves = whole[rest == residue]
            steps = moves - moves[0]
            found.append(_Shift(residue, int(moves[0]), steps, steps.tobytes()))
        return found

    def _moved(self, group: _Group, shifts: Mapping[int, Sequence[_Shift]]) -> Iterator[tuple[_Base, _Shift]]:
        """What a group touches, and by how many sectors it moves, for each remainder of bytes."""
        for shift in shifts[group.mover]:
            if (id(group), shift.residue) not in self._bases:
                self._find_bases(group, shift.residue)
            yield self._bases[id(group), shift.residue], shift

    def _find_bases(self, group: _Group, residue: int) -> None:
        """What this group touches, computed together with all groups in the same query that move alike."""
        kind = self._together if group.instruction is None else self._groups
        alike = [g for g in kind if g.mover == group.mover and (id(g), residue) not in self._bases]
        found = distinct_by_group(self._profile, [g.rows for g in alike], self._geometry, residue)
        for one, runs in zip(alike, found, strict=True):
            start = int(runs[0, 0]) if len(runs) else 0
            pattern = runs - start
            self._bases[id(one), residue] = _Base(pattern, start, pattern.tobytes())

    def _repeated(self, base: _Base, shift: _Shift) -> Moved:
        """The union of `base` moved by each shift."""
        if not len(base.pattern):
            return Moved(EMPTY)
        key = (base.key, shift.key)
        if key not in self._patterns:
            grown = shifted(base.pattern, shift.steps, MOST_RUNS)
            assert grown is not None, "no more than were counted"
            self._patterns[key] = grown
        return Moved(self._patterns[key], base.start + shift.first)

    def _within(self, part: Moved) -> Moved:
        """The part that lies in buffers; often it lies entirely in one."""
        runs, by = part
        if not len(runs):
            return part
        first, end = int(runs[0, 0]) + by, int(runs[-1, 1]) + by
        if any(start <= first and end <= stop for start, stop in self._spans):
            return part
        return Moved(intersection(part.whole(), self._allowed))


def _groups(rows: npt.NDArray[np.intp], keys: Ints) -> Iterator[_Group]:
    """The rows grouped by equal keys. The key's last column is the mover; an earlier column is the instruction."""
    if not len(keys):
        return
    unique, number = distinct_rows(keys)
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number))
    for key, some in zip(unique, np.split(rows[order], ends[:-1]), strict=True):
        yield _Group(int(key[0]) if len(key) > 1 else None, int(key[-1]), some)


def _allocated(profile: Profile, sector: int) -> Runs:
    """The sectors of all buffers."""
    spans = [(a // sector, (a + max(n, 1) - 1) // sector + 1) for a, n in profile.allocations.values()]
    return merged(np.array(spans, np.int64).reshape(-1, 2))
