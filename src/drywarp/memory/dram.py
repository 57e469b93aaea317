"""Traffic between L2 and DRAM over the whole grid, local memory and instruction fetches beyond the L1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..kernel.profile import SPACE_LOCAL, Profile
from .affine import AffineBlocks
from .followed import EmulateBlocks, FollowedBlocks, Look
from .footprint import EMPTY, Footprint, Stage, count, sampled_footprint, union
from .moved_footprint import MovedFootprints
from .requests import interleave_local
from .stream import split_lines
from .table import MemoryGeometry, active_lanes
from .waves import WINDOWS, FootprintOf, WaveTotals, follow_waves, plan_waves, traffic_of

_WRITING = ("store", "atomic", "reduction", "bulk_store", "bulk_reduction")
SETTLED_DEPARTURE = 0.01
"""Largest departure of requests from affine blocks, as a fraction, before every block of a wave is examined."""


def follow(
    profile: Profile, looks: Iterable[Look], emulate_blocks: EmulateBlocks | None, geometry: MemoryGeometry
) -> FollowedBlocks | None:
    """The blocks of the first waves, examined one by one; None if that does not reveal what they do."""
    parts = plan_waves(profile.launch.blocks, geometry.wave_blocks, WINDOWS)
    first = sorted({block for part in parts for block in part.blocks})
    for look in looks:
        found = FollowedBlocks(profile, look, emulate_blocks, geometry)
        if found.look(first):
            return found
    return None


def dram_traffic(
    profile: Profile,
    blocks_alike: FollowedBlocks | AffineBlocks | None,
    geometry: MemoryGeometry,
    warm: bool,
    emulate_blocks: EmulateBlocks | None,
    asked: float = 0.0,
) -> tuple[WaveTotals, str]:
    """What waves fetch and write, and the method that determined it (see `MemoryBehaviour`).

    `asked` is the mean number of sectors that a block requests from the L2.
    """
    kinds = {i: ins.memory.kind for i, ins in enumerate(profile.kernel.instructions) if ins.memory}
    reads = frozenset(i for i, kind in kinds.items() if kind not in ("store", "bulk_store"))
    writes = frozenset(i for i, kind in kinds.items() if kind in _WRITING)
    blocks = profile.launch.blocks
    sampled = {sample.linear: number for number, sample in enumerate(profile.blocks)}

    @lru_cache(maxsize=1)
    def run_of(part: range) -> Profile | None:
        return emulate_blocks(part) if emulate_blocks else None

    def from_samples(part: range, stage: Stage | None = None) -> Footprint | None:
        if all(block in sampled for block in part):
            return sampled_footprint(profile, [sampled[block] for block in part], geometry, stage)
        run = run_of(part)
        if run is None:
            return None
        place = {sample.linear: number for number, sample in enumerate(run.blocks)}
        return sampled_footprint(run, [place[block] for block in part], geometry, stage)

    if blocks_alike is not None:
        footprint_of: FootprintOf
        if isinstance(blocks_alike, AffineBlocks):
            footprint_of, method, windows = MovedFootprints(profile, blocks_alike, geometry), "affine", 0
        else:
            footprint_of, method, windows = blocks_alike, "followed", WINDOWS
        totals = follow_waves(footprint_of, blocks, geometry, reads, writes, warm, windows, asked)
        if totals is not None:
            if isinstance(blocks_alike, AffineBlocks) and blocks_alike.departure > SETTLED_DEPARTURE:
                fetched, factor = sum(totals.fetched.values()), 1 + blocks_alike.departure
                totals.fetches = fetched / factor, fetched * factor
            return totals, method
    totals = follow_waves(from_samples, blocks, geometry, reads, writes, warm, WINDOWS, asked)
    if totals is not None:
        return totals, "emulated"
    return _bounded(profile, geometry, reads, writes, warm), "bounded"


def _bounded(
    profile: Profile, geometry: MemoryGeometry, reads: frozenset[int], writes: frozenset[int], warm: bool
) -> WaveTotals:
    """Upper bound: blocks share nothing. Lower bound: the sectors that the sampled blocks touch, each fetched once."""
    totals = WaveTotals()
    for number, sample in enumerate(profile.blocks):
        footprint = sampled_footprint(profile, [number], geometry)
        counts = traffic_of(footprint, EMPTY, reads, writes)
        for kept, found in zip((totals.fetched, totals.written), counts, strict=True):
            for index, sectors in found.items():
                kept[index] = kept.get(index, 0.0) + sample.weight * sectors
    together = sampled_footprint(profile, range(len(profile.blocks)), geometry).sectors
    least = float(count(union(EMPTY, *(runs for index, runs in together.items() if index in reads))))
    if warm:
        least = max(0.0, least - geometry.l2_bytes // geometry.sector_bytes)
    most = sum(totals.fetched.values())
    if least < most:
        totals.fetches = least, most
        # On a scale of factors, the geometric mean is equally far from both ends.
        share = math.sqrt(least / most) if least else 0.5
        totals.fetched = {index: sectors * share for index, sectors in totals.fetched.items()}
    totals.last = (profile.launch.blocks, sum(totals.fetched.values()), sum(totals.written.values()))
    return totals


# Data that a kernel wrote and that the L2 still holds at its end: a write-back cache, which nothing flushes.


def dirty_at_the_end(read: float, written: float, waves: float, geometry: MemoryGeometry) -> float:
    """Sectors written but not yet in DRAM, for a kernel whose waves read and write this many each.

    The L2 holds what was used last: the writes of the last wave, its reads, the writes of the wave before, and so on
    until it is full. No more of it than `geometry.dirty_share` can be dirty.
    """
    capacity = geometry.l2_bytes / geometry.sector_bytes
    if written <= 0:
        return 0.0
    whole = min(waves, capacity // (read + written))
    room = capacity - whole * (read + written)
    dirty = whole * written + min((min(waves, whole + 1) - whole) * written, room)
    return min(dirty, geometry.dirty_share * capacity)


# Local memory beyond the L1: which part of it the L2 holds, and what goes to DRAM.
#
# Every resident thread has its own local memory, and the next block in its slot reuses the same addresses. So the
# footprint is that of the resident blocks, however long the kernel runs. If it exceeds the L2, the L2 serves the share
# that it holds. A store stays in the L2 until it is evicted to DRAM, unless it is overwritten first. What enters the L2
# in the meantime evicts: global memory, and the local stores that were evicted before. Each takes the place of any of
# the dirty sectors alike; `dirty_share` of the L2 has room for them. So a loop that keeps writing to a stack that fits
# costs DRAM nothing, as measured on an RTX 3080 (shmembench, romberg); of the kernels on an RTX 2080 Ti that spill, the
# command of docs/accuracy.md prints how far their writes are off.


@dataclass(frozen=True, slots=True)
class LocalShares:
    """Fractions 0..1 of the local sectors that reach the L2: loads that miss it, and stores that reach DRAM."""

    missed: float
    written: float


def local_sectors(profile: Profile, geometry: MemoryGeometry) -> float:
    """Mean number of distinct local-memory sectors that a block touches."""
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


def local_shares(
    blocks: int, sectors: float, stored: float, geometry: MemoryGeometry, totals: WaveTotals
) -> LocalShares:
    """Fate of local memory with an L2 of this size, if each of `blocks` touches this many sectors of it.

    `stored` are sectors that local stores write, `totals` has those of global memory; both are of the whole grid.
    """
    if not sectors:
        return LocalShares(0.0, 0.0)
    resident = min(blocks, geometry.wave_blocks)
    capacity = geometry.l2_bytes / geometry.sector_bytes
    footprint = resident * sectors
    room, missed = geometry.dirty_share * capacity, max(0.0, 1 - capacity / footprint)
    if not room:
        return LocalShares(missed, 1.0)
    entering = (sum(totals.fetched.values()) + sum(totals.written.values())) * resident / blocks
    times = max(1.0, stored / (blocks * sectors))
    return LocalShares(missed, _evicted(entering / times / room, footprint / room))


def _evicted(entering: float, footprint: float) -> float:
    """The largest solution m of m = 1 - exp(-(entering + m * footprint)): evicted between two stores to a sector."""
    share = 1.0
    for _ in range(100):  # Newton's method from above, where the function is convex
        left = math.exp(-entering - share * footprint)
        step = (share - 1 + left) / (1 - footprint * left)
        share = max(0.0, share - step)
        if abs(step) < 1e-12:
            break
    return share


# Instruction fetches from the L2: code too large for the instruction cache next to the SMs.

INSTRUCTION_BYTES = 16


def fetched_sectors(profile: Profile, cache_bytes: int, share: float, sector_bytes: int) -> float:
    """Sectors of code that the L2 serves over the whole grid; 0 if the executed code fits the cache.

    The cache keeps the most frequently executed code. The rest is fetched again for each thread block: its warps
    proceed together, and SMs that share the cache reuse what one of them has just fetched. `share` is the fraction that
    then remains for the L2. First touches are ignored: they amount to the code itself, once for each cache.
    """
    executions = profile.executions()
    starts = np.array([block.start for block in profile.cfg.blocks], np.int64)
    size = np.array([block.end - block.start for block in profile.cfg.blocks], np.int64) * INSTRUCTION_BYTES
    # Passes of thread blocks over the code, over the grid.
    visits = executions[starts] / profile.launch.warps_per_block
    order = np.argsort(-visits, kind="stable")
    order = order[visits[order] > 0]
    reach = np.cumsum(size[order])
    beyond = np.clip(reach - cache_bytes, 0, size[order])
    return float(share * (beyond * visits[order]).sum() / sector_bytes)
