"""Local memory beyond the L1: what of it the L2 holds, and what goes on to DRAM.

Every resident thread has local memory of its own, and the next block in its place takes the same addresses again. So
the footprint is that of the resident blocks, however long the kernel runs. Where it exceeds the L2, that serves the
share that it holds. A store stays in the L2 until it is evicted: either it is overwritten there before, or it goes to
DRAM. How likely that is follows from what a wave writes over what the L2 holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..kernel.profile import SPACE_LOCAL, Profile
from .geometry import MemoryGeometry
from .stream import split_lines
from .table import active_lanes, interleave_local


@dataclass(frozen=True, slots=True)
class LocalShares:
    """Fractions 0..1 of the local sectors that reach the L2: loads that miss it, and stores that go on to DRAM."""

    missed: float
    written: float


def local_sectors(profile: Profile, geometry: MemoryGeometry) -> float:
    """Distinct sectors of local memory that a block touches, in the mean."""
    log, warps = profile.accesses, profile.launch.warps_per_block
    rows = np.flatnonzero(log.space == SPACE_LOCAL)
    if not len(rows):
        return 0.0
    widths = np.array([i.memory.width if i.memory else 4 for i in profile.kernel.instructions], np.int64)
    width = widths[log.instruction[rows]]
    same = np.stack([log.warp[rows].astype(np.int64), log.base[rows], log.pattern[rows].astype(np.int64), width])
    rows = rows[np.unique(same, axis=1, return_index=True)[1]]
    width = widths[log.instruction[rows]]
    found = []
    for size in np.unique(width).tolist():
        chosen = rows[width == size]
        addresses, active = interleave_local(*active_lanes(log, chosen), size)
        request, line, mask = split_lines(addresses, active, geometry)
        found.append(np.stack([log.warp[chosen][request].astype(np.int64), line, mask]))
    warp, line, mask = np.concatenate(found, axis=1)
    per_line = geometry.line_bytes // geometry.sector_bytes
    access, bit = np.nonzero((mask[:, None] >> np.arange(per_line)) & 1)
    distinct = np.unique(np.stack([warp[access], line[access] * per_line + bit]), axis=1)
    weights = np.array([sample.weight for sample in profile.blocks])
    return float(weights[distinct[0] // warps].sum() / profile.launch.blocks)


def local_shares(blocks: int, sectors: float, geometry: MemoryGeometry, written: Mapping[int, float]) -> LocalShares:
    """What becomes of local memory at an L2 of this size, where each of `blocks` touches so many sectors of it.

    `written` are sectors of global memory over the whole grid, by instruction.
    """
    resident = min(blocks, geometry.wave_blocks)
    capacity = geometry.l2_bytes / geometry.sector_bytes
    footprint = resident * sectors
    dirty = footprint + sum(written.values()) * resident / blocks
    return LocalShares(
        missed=max(0.0, 1 - capacity / footprint) if footprint else 0.0,
        written=min(1.0, dirty / capacity) if capacity else 1.0,
    )
