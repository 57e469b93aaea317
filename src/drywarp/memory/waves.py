"""What whole waves of blocks fetch from DRAM: the L2 of the GPU, judged wave by wave in launch order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .footprint import Footprint
from .geometry import MemoryGeometry
from .requests import Ints

WAVES_FOLLOWED = 6
"""Waves that are worked out one by one; later ones do as the last of them."""


@dataclass
class WaveTotals:
    """Sectors over the whole grid: `fetched` from DRAM and `written` to it, by instruction index."""

    fetched: dict[int, float] = field(default_factory=dict)
    written: dict[int, float] = field(default_factory=dict)


def follow_waves(
    footprint_of: Callable[[range], Footprint | None],
    blocks: int,
    geometry: MemoryGeometry,
    reads: frozenset[int],
    writes: frozenset[int],
    warm: bool,
) -> WaveTotals | None:
    """Go through the waves in launch order with an L2 that keeps the most recently used waves' sectors.

    `footprint_of` gives the footprint of a range of blocks; None says that it cannot, and ends the
    walk (the result is None where that happens at once).
    A sector is fetched by the first instruction, in program order, that reads it while it is not in
    the L2; `reads` and `writes` say which instructions do what. With `warm` the L2 holds what the
    kernel would have left there from a run before. Every sector that a wave writes goes to DRAM once.
    """
    capacity = geometry.l2_bytes // geometry.sector_bytes
    size = geometry.wave_blocks
    waves = -(-blocks // size)
    followed = [range(w * size, min(blocks, (w + 1) * size)) for w in range(min(waves, WAVES_FOLLOWED))]
    recent: list[Ints] = []
    if warm:
        left = [footprint_of(part) for part in _left_behind(blocks, size, waves)]
        recent = _within([f.union() for f in left if f is not None], capacity)
    done: list[tuple[int, dict[int, int], dict[int, int]]] = []
    for part in followed:
        footprint = footprint_of(part)
        if footprint is None:
            break
        present = np.unique(np.concatenate(recent)) if recent else np.zeros(0, np.int64)
        fetched, written = {}, {}
        for index, sectors in footprint.sectors.items():
            new = np.setdiff1d(sectors, present, assume_unique=True)
            if index in writes:
                written[index] = len(sectors)
            if index in reads:
                fetched[index] = len(new)
            present = np.union1d(present, new)
        done.append((len(part), fetched, written))
        recent = _within([*recent, footprint.union()], capacity)
    return _totals(done, blocks) if done else None


def _totals(done: list[tuple[int, dict[int, int], dict[int, int]]], blocks: int) -> WaveTotals:
    """Add up the waves; the last that was followed stands for the blocks of all after it."""
    totals = WaveTotals()
    rest = blocks - sum(count for count, _, _ in done)
    for number, (count, fetched, written) in enumerate(done):
        times = (count + rest) / count if number == len(done) - 1 else 1.0
        for index, sectors in fetched.items():
            totals.fetched[index] = totals.fetched.get(index, 0.0) + times * sectors
        for index, sectors in written.items():
            totals.written[index] = totals.written.get(index, 0.0) + times * sectors
    return totals


def _left_behind(blocks: int, size: int, waves: int) -> list[range]:
    """The last waves of an earlier run, which are what a warm L2 still holds."""
    first = max(0, waves - WAVES_FOLLOWED)
    return [range(w * size, min(blocks, (w + 1) * size)) for w in range(first, waves)]


def _within(recent: list[Ints], capacity: int) -> list[Ints]:
    """The most recent waves whose sectors together fit the L2; of the oldest only what still fits."""
    kept: list[Ints] = []
    held = np.zeros(0, np.int64)
    for sectors in reversed(recent):
        new = np.setdiff1d(sectors, held, assume_unique=True)
        room = capacity - len(held)
        if room <= 0:
            break
        kept.append(sectors if len(new) <= room else new[-room:])
        held = np.union1d(held, new[-room:] if len(new) > room else new)
    return kept[::-1]
