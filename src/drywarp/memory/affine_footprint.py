"""The sectors that whole waves of blocks touch, derived from one block whose requests move with the block index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..kernel.profile import Profile
from .affine import AffineBlocks
from .footprint import Footprint, distinct_sectors
from .geometry import MemoryGeometry
from .intervals import EMPTY, Runs, intersection, merged, shifted, union

MOST_RUNS = 20_000_000
"""Runs of sectors that the footprint of one wave may take before it is given up as too large."""

_Moves = npt.NDArray[np.int64]
_Shift = tuple[int, _Moves]
"""Bytes that are left over, fewer than a sector, and whole sectors, ascending."""


@dataclass(frozen=True)
class _Group:
    """Requests that move alike: `rows` of the log, and for `instruction` alone or (None) for all that do so."""

    instruction: int | None
    coefficient: npt.NDArray[np.int64]
    rows: npt.NDArray[np.intp]


class AffineFootprints:
    """The footprint of any range of whole blocks, derived from the reference block.

    Requests that move alike are shifted together, and equal shifts are taken once, so that the cost
    follows the distinct data and not the number of blocks. Sectors outside every buffer (a border
    block that does less than the reference) are left out. None where it would take too much memory.
    What requests touch, and the pattern that it makes when it is repeated, are worked out once: the instructions of
    an unrolled loop have them in common, and so have most waves.
    """

    def __init__(self, profile: Profile, affine: AffineBlocks, geometry: MemoryGeometry) -> None:
        self._profile, self._geometry = profile, geometry
        self._origin = np.array(profile.blocks[affine.reference].coordinates)
        instruction = profile.accesses.instruction[affine.rows].astype(np.int64)
        self._groups = list(_groups(affine, np.column_stack([instruction, affine.coefficients])))
        self._together = list(_groups(affine, affine.coefficients))
        self._allowed = _allocated(profile, geometry.sector_bytes)
        self._bases: dict[tuple[int, int], Runs] = {}
        self._patterns: dict[tuple[bytes, bytes], Runs] = {}

    def __call__(self, blocks: range) -> Footprint | None:
        """The footprint of the blocks of a range of linear indices."""
        x, y, _ = self._profile.launch.grid
        linear = np.arange(blocks.start, blocks.stop)
        coordinates = np.stack([linear % x, linear // x % y, linear // (x * y)], axis=1)
        steps = coordinates - self._origin
        shifts = {group.coefficient.tobytes(): self._shifts(steps @ group.coefficient) for group in self._together}
        held = sum(len(base) * len(whole) for group in self._groups for base, whole in self._moved(group, shifts))
        if held > MOST_RUNS:
            return None
        return Footprint(lambda: self._by_instruction(shifts), lambda: self._whole(shifts))

    def _by_instruction(self, shifts: Mapping[bytes, Sequence[_Shift]]) -> dict[int, Runs]:
        parts: dict[int, list[Runs]] = {}
        for group in self._groups:
            assert group.instruction is not None
            for base, whole in self._moved(group, shifts):
                parts.setdefault(group.instruction, []).append(self._repeated(base, whole))
        return {index: self._within(union(*p) if len(p) > 1 else p[0]) for index, p in sorted(parts.items())}

    def _whole(self, shifts: Mapping[bytes, Sequence[_Shift]]) -> Runs:
        parts = [self._repeated(*moved) for group in self._together for moved in self._moved(group, shifts)]
        return self._within(union(EMPTY, *parts))

    def _shifts(self, moved: npt.NDArray[np.int64]) -> list[_Shift]:
        """Distinct shifts in bytes as whole sectors, by what is left over."""
        sector = self._geometry.sector_bytes
        distinct = np.unique(moved)
        rest = distinct % sector
        return [(residue, distinct[rest == residue] // sector) for residue in np.unique(rest).tolist()]

    def _moved(self, group: _Group, shifts: Mapping[bytes, Sequence[_Shift]]) -> Iterator[tuple[Runs, _Moves]]:
        """What a group touches, and by how many sectors it moves, for each rest of bytes."""
        for residue, moves in shifts[group.coefficient.tobytes()]:
            key = (id(group), residue)
            if key not in self._bases:
                self._bases[key] = distinct_sectors(self._profile, group.rows, self._geometry, residue)
            yield self._bases[key], moves

    def _repeated(self, base: Runs, moves: _Moves) -> Runs:
        """The union of `base` moved by each of `moves`, which ascend."""
        if not len(base) or not len(moves):
            return EMPTY
        start, first = base[0, 0], moves[0]
        pattern, steps = base - start, moves - first
        key = (pattern.tobytes(), steps.tobytes())
        if key not in self._patterns:
            grown = shifted(pattern, steps, MOST_RUNS)
            assert grown is not None, "there are no more than were counted"
            self._patterns[key] = grown
        repeated: Runs = self._patterns[key] + (start + first)
        return repeated

    def _within(self, runs: Runs) -> Runs:
        """The part that lies in buffers; often all of it lies in one."""
        if not len(runs):
            return runs
        at = np.searchsorted(self._allowed[:, 0], runs[0, 0], side="right") - 1
        if at >= 0 and runs[-1, 1] <= self._allowed[at, 1]:
            return runs
        return intersection(runs, self._allowed)


def _groups(affine: AffineBlocks, keys: npt.NDArray[np.int64]) -> Iterator[_Group]:
    """The rows by equal keys; a first column before the three coefficients is the instruction."""
    if not len(keys):
        return
    unique, number = np.unique(keys, axis=0, return_inverse=True)
    number = number.reshape(-1)
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number))
    for key, rows in zip(unique, np.split(affine.rows[order], ends[:-1]), strict=True):
        yield _Group(int(key[0]) if len(key) > 3 else None, np.ascontiguousarray(key[-3:]), rows)


def _allocated(profile: Profile, sector: int) -> Runs:
    """The sectors of all buffers."""
    spans = [(a // sector, (a + max(n, 1) - 1) // sector + 1) for a, n in profile.allocations.values()]
    return merged(np.array(spans, np.int64).reshape(-1, 2))
