"""The distinct sectors that a set of thread blocks touches in global memory, by instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..kernel.profile import Profile
from .affine import AffineBlocks, global_rows
from .geometry import MemoryGeometry
from .intervals import EMPTY, Runs, from_points, intersection, merged, union
from .stream import split_lines
from .table import active_lanes

MOST_RUNS = 20_000_000
"""Runs of sectors that the footprint of one wave may take before it is given up as too large."""


@dataclass(frozen=True)
class Footprint:
    """Distinct sectors, as runs of sector numbers, by instruction index, in program order."""

    sectors: Mapping[int, Runs]

    def union(self) -> Runs:
        """All distinct sectors."""
        return union(EMPTY, *self.sectors.values())


def sampled_footprint(profile: Profile, samples: Sequence[int], geometry: MemoryGeometry) -> Footprint:
    """The footprint of some emulated blocks."""
    rows = [global_rows(profile, sample) for sample in samples]
    joined = np.concatenate(rows) if rows else np.zeros(0, np.intp)
    found = {}
    instruction = profile.accesses.instruction[joined]
    for index in np.unique(instruction):
        found[int(index)] = _distinct(profile, joined[instruction == index], geometry)
    return Footprint(found)


def _distinct(profile: Profile, rows: npt.NDArray[np.intp], geometry: MemoryGeometry, shift: int = 0) -> Runs:
    parts = []
    for start in range(0, len(rows), 1 << 15):
        addresses, active = active_lanes(profile.accesses, rows[start : start + (1 << 15)])
        _, line, mask = split_lines(addresses + shift, active, geometry)
        per_line = geometry.line_bytes // geometry.sector_bytes
        which, bit = np.nonzero((mask[:, None] >> np.arange(per_line)) & 1)
        parts.append(from_points(line[which] * per_line + bit))
    return union(EMPTY, *parts)


def affine_footprint(
    profile: Profile, affine: AffineBlocks, blocks: range, geometry: MemoryGeometry
) -> Footprint | None:
    """The footprint of whole blocks `blocks`, derived from the reference block.

    Requests that move alike are shifted together, and equal shifts are taken once, so that the cost
    follows the distinct data and not the number of blocks. Sectors outside every buffer (a border
    block that does less than the reference) are left out. None where it would take too much memory.
    """
    sector = geometry.sector_bytes
    x, y, _ = profile.launch.grid
    linear = np.arange(blocks.start, blocks.stop)
    coordinates = np.stack([linear % x, linear // x % y, linear // (x * y)], axis=1)
    steps = coordinates - np.array(profile.blocks[affine.reference].coordinates)
    instruction = profile.accesses.instruction[affine.rows]
    parts: dict[int, list[Runs]] = {}
    held = 0
    unique, group = np.unique(
        np.column_stack([instruction.astype(np.int64), affine.coefficients]), axis=0, return_inverse=True
    )
    group = group.reshape(-1)
    for number, (index, *coefficient) in enumerate(unique.tolist()):
        shifts = np.unique(steps @ np.array(coefficient))
        rows = affine.rows[group == number]
        for residue in np.unique(shifts % sector):
            whole = shifts[shifts % sector == residue] // sector
            base = _distinct(profile, rows, geometry, int(residue))
            held += len(base) * len(whole)
            if held > MOST_RUNS:
                return None
            parts.setdefault(int(index), []).append(merged((base[None] + whole[:, None, None]).reshape(-1, 2)))
    allowed = _allocated(profile, sector)
    return Footprint({i: intersection(union(*p), allowed) for i, p in sorted(parts.items())})


def _allocated(profile: Profile, sector: int) -> Runs:
    """The sectors of all buffers."""
    spans = [(a // sector, (a + max(n, 1) - 1) // sector + 1) for a, n in profile.allocations.values()]
    return merged(np.array(spans, np.int64).reshape(-1, 2))
