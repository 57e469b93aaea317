"""The distinct sectors that a set of thread blocks touches in global memory, by instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..kernel.profile import Profile
from .affine import AffineBlocks, global_rows
from .geometry import MemoryGeometry
from .requests import Ints
from .stream import split_lines
from .table import active_lanes

MOST_SECTORS = 60_000_000
"""Sector numbers that the footprint of one wave may take before it is given up as too large."""


@dataclass(frozen=True)
class Footprint:
    """Distinct sectors (sorted numbers) by instruction index, in program order."""

    sectors: Mapping[int, Ints]

    def union(self) -> Ints:
        """All distinct sectors, sorted."""
        parts = list(self.sectors.values())
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def sampled_footprint(profile: Profile, samples: Sequence[int], geometry: MemoryGeometry) -> Footprint:
    """The footprint of some emulated blocks."""
    rows = [global_rows(profile, sample) for sample in samples]
    joined = np.concatenate(rows) if rows else np.zeros(0, np.intp)
    found = {}
    instruction = profile.accesses.instruction[joined]
    for index in np.unique(instruction):
        found[int(index)] = _distinct(profile, joined[instruction == index], geometry)
    return Footprint(found)


def _distinct(profile: Profile, rows: npt.NDArray[np.intp], geometry: MemoryGeometry, shift: int = 0) -> Ints:
    parts = []
    for start in range(0, len(rows), 1 << 15):
        addresses, active = active_lanes(profile.accesses, rows[start : start + (1 << 15)])
        _, line, mask = split_lines(addresses + shift, active, geometry)
        per_line = geometry.line_bytes // geometry.sector_bytes
        which, bit = np.nonzero((mask[:, None] >> np.arange(per_line)) & 1)
        parts.append(np.unique(line[which] * per_line + bit))
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def affine_footprint(
    profile: Profile, affine: AffineBlocks, blocks: range, geometry: MemoryGeometry
) -> Footprint | None:
    """The footprint of whole blocks `blocks`, derived from the reference block.

    Requests that move alike are shifted together, and equal shifts are taken once, so that the cost
    follows the distinct data and not the number of blocks. Sectors outside every buffer (a border
    block that does less than the reference) are left out. None where it would take too much memory.
    """
    sector = geometry.sector_bytes
    coordinates = np.array([profile.launch.coordinates(b) for b in blocks])
    steps = coordinates - np.array(profile.blocks[affine.reference].coordinates)
    instruction = profile.accesses.instruction[affine.rows]
    parts: dict[int, list[Ints]] = {}
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
            if held > MOST_SECTORS:
                return None
            parts.setdefault(int(index), []).append(np.unique((base[:, None] + whole[None, :]).ravel()))
    allowed = _allocated(profile, sector)
    return Footprint({i: _inside(np.unique(np.concatenate(p)), allowed) for i, p in sorted(parts.items())})


def _allocated(profile: Profile, sector: int) -> Ints:
    """First and last sector of every buffer, shape (buffers, 2), sorted."""
    spans = sorted((a // sector, (a + max(n, 1) - 1) // sector) for a, n in profile.allocations.values())
    return np.array(spans, np.int64).reshape(-1, 2)


def _inside(sectors: Ints, spans: Ints) -> Ints:
    if not len(spans):
        return sectors
    at = np.searchsorted(spans[:, 0], sectors, side="right") - 1
    inside: Ints = sectors[(at >= 0) & (sectors <= spans[np.maximum(at, 0), 1])]
    return inside
