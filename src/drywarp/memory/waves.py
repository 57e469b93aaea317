"""What whole waves of blocks fetch from DRAM: the L2 of the GPU, judged wave by wave in launch order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .footprint import Footprint
from .geometry import MemoryGeometry
from .intervals import EMPTY, Runs, count, difference, last, new_in_turn, union

WAVES_FOLLOWED = 6
"""Waves that are worked out one by one; later ones do as the last of them."""


@dataclass
class WaveTotals:
    """Sectors over the whole grid: `fetched` from DRAM and `written` to it, by instruction index.

    `last` is what the last whole wave that was followed moved: its blocks, sectors that it fetched and did not write,
    and sectors that it wrote.
    """

    fetched: dict[int, float] = field(default_factory=dict)
    written: dict[int, float] = field(default_factory=dict)
    last: tuple[int, float, float] = (1, 0.0, 0.0)


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
    recent: list[Runs] = []
    if warm:
        recent = _left_behind(footprint_of, blocks, size, capacity)
    done: list[_Wave] = []
    for part in followed:
        footprint = footprint_of(part)
        if footprint is None:
            break
        present = union(EMPTY, *recent)
        fetched, written, stored = _traffic(footprint, present, reads, writes)
        every = footprint.union()
        read = count(difference(difference(every, stored), present))
        done.append(_Wave(len(part), fetched, written, read, count(stored)))
        recent = _within([*recent, every], capacity)
    return _totals(done, blocks) if done else None


def traffic_of(
    footprint: Footprint, present: Runs, reads: frozenset[int], writes: frozenset[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Sectors that each instruction fetches, where `present` are in the L2 before, and those it writes first."""
    fetched, written, _ = _traffic(footprint, present, reads, writes)
    return fetched, written


def _traffic(
    footprint: Footprint, present: Runs, reads: frozenset[int], writes: frozenset[int]
) -> tuple[dict[int, int], dict[int, int], Runs]:
    """What `traffic_of` gives, and all that is written."""
    new, _ = new_in_turn(list(footprint.parts.values()), present)
    fetched = {index: number for index, number in zip(footprint.parts, new, strict=True) if index in reads}
    storing = {index: part for index, part in footprint.parts.items() if index in writes}
    fresh, stored = new_in_turn(list(storing.values()), EMPTY)
    return fetched, dict(zip(storing, fresh, strict=True)), stored


@dataclass(frozen=True)
class _Wave:
    """One wave: its blocks; sectors fetched and written by instruction; those only read that were new, and written."""

    blocks: int
    fetched: dict[int, int]
    written: dict[int, int]
    read_only: int
    stored: int


def _totals(done: list[_Wave], blocks: int) -> WaveTotals:
    """Add up the waves; the last that was followed stands for the blocks of all after it."""
    whole = [wave for wave in done if wave.blocks == done[0].blocks][-1]
    totals = WaveTotals(last=(whole.blocks, whole.read_only, whole.stored))
    rest = blocks - sum(wave.blocks for wave in done)
    for number, wave in enumerate(done):
        times = (wave.blocks + rest) / wave.blocks if number == len(done) - 1 else 1.0
        for index, sectors in wave.fetched.items():
            totals.fetched[index] = totals.fetched.get(index, 0.0) + times * sectors
        for index, sectors in wave.written.items():
            totals.written[index] = totals.written.get(index, 0.0) + times * sectors
    return totals


def _left_behind(
    footprint_of: Callable[[range], Footprint | None], blocks: int, size: int, capacity: int
) -> list[Runs]:
    """What an earlier run left in the L2: from its last wave back, until the L2 is full.

    After some waves one by one, ever longer parts of the grid are taken as one.
    """
    recent: list[Runs] = []
    end, taken = blocks, 0
    while end > 0 and count(union(EMPTY, *recent)) < capacity:
        # Waves start at multiples of their size.
        waves = 1 if taken < WAVES_FOLLOWED else taken
        start = max(0, ((end - 1) // size + 1 - waves) * size)
        footprint = footprint_of(range(start, end))
        if footprint is None:
            break
        recent.insert(0, footprint.union())
        end, taken = start, taken + waves
    return _within(recent, capacity)


def _within(recent: list[Runs], capacity: int) -> list[Runs]:
    """The most recent waves whose sectors together fit the L2; of the oldest only what still fits."""
    kept: list[Runs] = []
    held = EMPTY
    for sectors in reversed(recent):
        room = capacity - count(held)
        if room <= 0:
            break
        new = difference(sectors, held)
        fits = count(new) <= room
        kept.append(sectors if fits else last(new, room))
        held = union(held, kept[-1])
    return kept[::-1]
