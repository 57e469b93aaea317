"""What whole waves of blocks fetch from DRAM: the L2 of the GPU, judged wave by wave in launch order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from .footprint import Footprint
from .geometry import MemoryGeometry
from .intervals import EMPTY, Runs, count, difference, last, new_in_turn, union

WAVES_FOLLOWED = 6
"""Waves at the beginning that are worked out one by one."""
WINDOWS = 12
"""Places among later waves at which one of them is worked out, where blocks differ in where they reach."""


@dataclass
class WaveTotals:
    """Sectors over the whole grid: `fetched` from DRAM and `written` to it, by instruction index.

    `last` is what the last whole wave that was followed moved: its blocks, sectors that it fetched and did not write,
    and sectors that it wrote. Where not all could be followed, `fetches` are the least and the most sectors that may
    be fetched in all, and `fetched` is a figure between them.
    """

    fetched: dict[int, float] = field(default_factory=dict)
    written: dict[int, float] = field(default_factory=dict)
    last: tuple[int, float, float] = (1, 0.0, 0.0)
    fetches: tuple[float, float] | None = None


class Part(NamedTuple):
    """Blocks that are worked out as one wave, which stand for `stands_for` blocks of the grid, themselves included.

    None of them where the wave is there for what it leaves in the L2 alone.
    """

    blocks: range
    stands_for: int


def plan_waves(blocks: int, size: int, windows: int = 0) -> list[Part]:
    """Which waves of a grid are worked out: the first ones, then some spread over the rest, each behind another.

    Without windows the last of the first ones stands for all behind it.
    """

    def wave(number: int) -> range:
        return range(number * size, min(blocks, (number + 1) * size))

    waves = -(-blocks // size)
    if waves <= WAVES_FOLLOWED + 2 * windows:
        windows, head = 0, waves if windows else min(waves, WAVES_FOLLOWED)
    else:
        head = WAVES_FOLLOWED
    parts = [Part(wave(number), len(wave(number))) for number in range(head)]
    if not windows:
        rest = blocks - parts[-1].blocks.stop
        parts[-1] = Part(parts[-1].blocks, parts[-1].stands_for + rest)
        return parts
    for number in range(windows):
        begin, end = (head + (waves - head) * k // windows for k in (number, number + 1))
        middle = (begin + end) // 2
        whole = min(blocks, end * size) - begin * size
        parts += [Part(wave(middle - 1), 0), Part(wave(middle), whole)]
    return parts


def follow_waves(
    footprint_of: Callable[[range], Footprint | None],
    blocks: int,
    geometry: MemoryGeometry,
    reads: frozenset[int],
    writes: frozenset[int],
    warm: bool,
    windows: int = 0,
) -> WaveTotals | None:
    """Go through the waves in launch order with an L2 that keeps the most recently used waves' sectors.

    `footprint_of` gives the footprint of a range of blocks; None says that it cannot, and ends the
    walk (the result is None where that happens at once).
    A sector is fetched by the first instruction, in program order, that reads it while it is not in
    the L2; `reads` and `writes` say which instructions do what. With `warm` the L2 holds what the
    kernel would have left there from a run before. Every sector that a wave writes goes to DRAM once.
    `windows` as in `plan_waves`.
    """
    capacity = geometry.l2_bytes // geometry.sector_bytes
    size = geometry.wave_blocks
    recent: list[Runs] = []
    if warm:
        recent = _left_behind(footprint_of, blocks, size, capacity)
    done: list[_Wave] = []
    for part, stands_for in plan_waves(blocks, size, windows):
        footprint = footprint_of(part)
        if footprint is None:
            break
        present = union(EMPTY, *recent)
        fetched, written, stored = _traffic(footprint, present, reads, writes)
        every = footprint.union()
        read = count(difference(difference(every, stored), present))
        if stands_for:
            done.append(_Wave(len(part), stands_for, fetched, written, read, count(stored)))
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
    """One wave: its blocks and those it stands for; sectors fetched and written by instruction; new ones only read.

    `stored` are the sectors written.
    """

    blocks: int
    stands_for: int
    fetched: dict[int, int]
    written: dict[int, int]
    read_only: int
    stored: int


def _totals(done: list[_Wave], blocks: int) -> WaveTotals:
    """Add up the waves; where not all could be followed, the last that was stands for the blocks of all after it."""
    whole = [wave for wave in done if wave.blocks == done[0].blocks][-1]
    totals = WaveTotals(last=(whole.blocks, whole.read_only, whole.stored))
    rest = blocks - sum(wave.stands_for for wave in done)
    if rest:
        # The rest may find all its data in the L2, or as little as the wave that found least.
        known = sum(wave.stands_for / wave.blocks * sum(wave.fetched.values()) for wave in done)
        totals.fetches = known, known + rest * max(sum(wave.fetched.values()) / wave.blocks for wave in done)
    for number, wave in enumerate(done):
        times = (wave.stands_for + (rest if number == len(done) - 1 else 0)) / wave.blocks
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
