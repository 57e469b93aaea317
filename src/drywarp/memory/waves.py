"""What whole waves of blocks fetch from DRAM: the GPU's L2, modelled wave by wave in launch order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .footprint import EMPTY, Footprint, Runs, Stage, count, difference, intersection, last, lines, new_in_turn, union
from .table import MemoryGeometry

WAVES_FOLLOWED = 6
"""Waves at the beginning that are computed one by one."""
MOST_STAGES = 16
"""Parts, a power of two, into which a wave's runs are cut if it touches more than the L2 holds."""
AGAIN = 1.1
"""Ratio of L2 requests to the sectors that a wave touches above which it is known to reuse some."""
WINDOWS = 12
"""Number of places among later waves at which one is computed, if blocks differ in where they access."""

_ROUNDS = 200
"""Steps towards the time in which the L2 serves a wave whose reads are merged; it settles much sooner."""


@dataclass
class WaveTotals:
    """Sectors over the whole grid: `fetched` from DRAM and `written` to it, by instruction index.

    `last` is the traffic of the last whole wave that was followed: its blocks, sectors that it fetched and did not
    write, and sectors that it wrote. If not all waves could be followed, `fetches` holds the least and the most sectors
    that may be fetched in total, and `fetched` lies between them. `read` are, by instruction, the distinct sectors
    that the first wave reads and those that its first block does, where reads may be merged; `away` is the share of the
    distinct sectors that each instruction reads in a wave and that the L2 does not hold when the wave begins.
    """

    fetched: dict[int, float] = field(default_factory=dict)
    written: dict[int, float] = field(default_factory=dict)
    last: tuple[int, float, float] = (1, 0.0, 0.0)
    fetches: tuple[float, float] | None = None
    read: dict[int, tuple[float, float]] = field(default_factory=dict)
    away: dict[int, float] = field(default_factory=dict)


class FootprintOf(Protocol):
    """Gives the footprint of a range of blocks, in one stage of their runs or in all; None if it cannot."""

    def __call__(self, blocks: range, stage: Stage | None = None, /) -> Footprint | None:
        """See above."""


class Part(NamedTuple):
    """Blocks computed as one wave, which represent `stands_for` blocks of the grid, themselves included.

    `stands_for` is 0 if the wave matters only for what it leaves in the L2.
    """

    blocks: range
    stands_for: int


def plan_waves(blocks: int, size: int, windows: int = 0) -> list[Part]:
    """Which waves of a grid are computed: the first ones, then some spread over the rest, each preceded by another.

    Without windows, the last of the first ones represents all after it.
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


class _L2:
    """A cache that keeps the most recently used lines; a sector occupies the space of its whole line."""

    def __init__(self, geometry: MemoryGeometry) -> None:
        self.capacity = max(1, geometry.l2_bytes // geometry.line_bytes)
        self._sectors = geometry.line_bytes // geometry.sector_bytes

    def lines(self, sectors: Runs) -> int:
        """Number of lines that contain some sectors."""
        return lines(sectors, self._sectors)

    def keep(self, recent: list[Runs]) -> list[Runs]:
        """The most recent waves whose lines together fit; of the oldest, only the part that still fits."""
        kept: list[Runs] = []
        held = EMPTY
        for sectors in reversed(recent):
            room = self.capacity - self.lines(held)
            if room <= 0:
                break
            new = difference(sectors, held)
            needed = self.lines(new)
            kept.append(sectors if needed <= room else last(new, count(new) * room // needed))
            held = union(held, kept[-1])
        return kept[::-1]


def follow_waves(
    footprint_of: FootprintOf,
    blocks: int,
    geometry: MemoryGeometry,
    reads: frozenset[int],
    writes: frozenset[int],
    warm: bool,
    windows: int = 0,
    asked: float = 0.0,
) -> WaveTotals | None:
    """Process the waves in launch order with an L2 that keeps the lines of the most recently used waves.

    `footprint_of` gives the footprint of a range of blocks; None means that it cannot, and ends the walk (the result is
    None if that happens at once). A sector is fetched by the first instruction, in program order, that reads it while
    it is not in the L2; `reads` and `writes` say which instructions do what. With `warm` the L2 starts with what an
    earlier run of the kernel would have left there. Every sector that a wave writes goes to DRAM once, unless it is
    displaced in between. `windows` as in `plan_waves`. `asked` is the mean number of sectors that a block requests from
    the L2. A wave that touches more than the L2 holds, and requests some of it again, is processed in stages, so
    displaced sectors are fetched again, and sectors written afterwards are written again.
    """
    l2, size = _L2(geometry), geometry.wave_blocks
    recent: list[Runs] = []
    if warm:
        recent = _left_behind(footprint_of, blocks, size, l2)
    done: list[_Wave] = []
    read: dict[int, tuple[float, float]] = {}
    for part, stands_for in plan_waves(blocks, size, windows):
        footprint = footprint_of(part)
        if footprint is None:
            break
        wave, stored = _Wave(len(part), stands_for), EMPTY
        for piece in _pieces(footprint, part, footprint_of, l2, asked):
            present = union(EMPTY, *recent)
            dirty = intersection(stored, present) if len(stored) else EMPTY
            fetched, written, now = _traffic(piece, present, reads, writes, dirty)
            every = piece.union()
            wave.add(fetched, written, count(difference(difference(every, now), present)))
            wave.add_away(_away(piece, present, reads))
            stored = union(stored, now)
            recent = l2.keep([*recent, every])
        wave.stored = count(stored)
        if geometry.merge_cycles and not done:
            read = _read(footprint, footprint_of(part[:1]), reads)
        if stands_for:
            done.append(wave)
    return replace(_totals(done, blocks), read=read) if done else None


def _away(footprint: Footprint, present: Runs, reads: frozenset[int]) -> dict[int, tuple[int, int]]:
    """For each instruction that reads, the sectors that are not present, and all of them.

    Of instructions whose sectors are those of another one, moved a little, as many are present as of the first one's.
    """
    alike: dict[int, tuple[int, int]] = {}
    found = {}
    for index, part in footprint.parts.items():
        if index in reads:
            if id(part.runs) not in alike:
                alike[id(part.runs)] = count(difference(part.whole(), present)), count(part.runs)
            found[index] = alike[id(part.runs)]
    return found


def _read(wave: Footprint, block: Footprint | None, reads: frozenset[int]) -> dict[int, tuple[float, float]]:
    """Distinct sectors that each instruction reads in a wave and in one of its blocks."""
    if block is None:
        return {}
    alone = {index: count(part.runs) for index, part in block.parts.items()}
    return {
        index: (count(part.runs), alone[index])
        for index, part in wave.parts.items()
        if index in reads and alone.get(index)
    }


def merged_shares(
    asked: npt.NDArray[np.float64], blocks: int, read: Mapping[int, tuple[float, float]], geometry: MemoryGeometry
) -> dict[int, float]:
    """The fraction of each instruction's reads that reach the L2, as others are merged with them on the way.

    `asked` are the sectors that instructions request in a wave of `blocks`, `read` as in `WaveTotals`. Blocks are taken
    to be at any place of what they read, independently of each other: while the L2 serves a wave's requests in time T,
    a sector that other blocks read n times is read n/T times a cycle, so that 1 + w n/T of its reads reach the L2 as
    one, w being `merge_cycles`. Blocks that keep step have more of them merged; how many more is not known. T depends
    on the result. Where the L2 does not limit, blocks take longer, and fewer reads are merged: that makes no difference
    to their time.
    """
    others, most = np.zeros(len(asked)), np.ones(len(asked))
    for index, (wave, block) in read.items():
        # A block that reads something again does not meet itself.
        again = max(1.0, asked[index] / blocks / block)
        others[index] = max(0.0, asked[index] / wave - again)
        most[index] = min(geometry.merged_reads, 1 + others[index] / again)
    time = float(asked.sum()) * geometry.sector_bytes / geometry.l2_rate
    merged = np.ones(len(asked))
    for _ in range(_ROUNDS):
        merged = np.minimum(most, 1 + geometry.merge_cycles * others / time)
        time = float((asked / merged).sum()) * geometry.sector_bytes / geometry.l2_rate
    return {index: float(1 / merged[index]) for index in np.flatnonzero(others).tolist()}


def _pieces(footprint: Footprint, part: range, footprint_of: FootprintOf, l2: _L2, asked: float) -> list[Footprint]:
    """What a wave touches, stage by stage if it displaces what it needs again."""
    every, stages = footprint.union(), 1
    needed = l2.lines(every)
    if needed > l2.capacity and asked * len(part) > AGAIN * count(every):
        while stages < min(MOST_STAGES, 2 * needed / l2.capacity):
            stages *= 2
    if stages == 1:
        return [footprint]
    pieces = (footprint_of(part, Stage(number, stages)) for number in range(stages))
    return [piece for piece in pieces if piece is not None]


def traffic_of(
    footprint: Footprint, present: Runs, reads: frozenset[int], writes: frozenset[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Sectors that each instruction fetches if `present` ones are already in the L2, and those it writes first."""
    fetched, written, _ = _traffic(footprint, present, reads, writes)
    return fetched, written


def _traffic(
    footprint: Footprint, present: Runs, reads: frozenset[int], writes: frozenset[int], dirty: Runs = EMPTY
) -> tuple[dict[int, int], dict[int, int], Runs]:
    """The result of `traffic_of` if some `dirty` sectors have already been written, and all that is written."""
    new, _ = new_in_turn(list(footprint.parts.values()), present)
    fetched = {index: number for index, number in zip(footprint.parts, new, strict=True) if index in reads}
    storing = {index: part for index, part in footprint.parts.items() if index in writes}
    fresh, stored = new_in_turn(list(storing.values()), dirty)
    return fetched, dict(zip(storing, fresh, strict=True)), stored


@dataclass
class _Wave:
    """One wave: its blocks and those it represents; sectors fetched and written by instruction; new ones only read.

    `stored` are the sectors written; `away` those read that were not in the L2, and all that were read.
    """

    blocks: int
    stands_for: int
    fetched: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    read_only: int = 0
    stored: int = 0
    away: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add_away(self, away: Mapping[int, tuple[int, int]]) -> None:
        """Count what one piece of it reads that is not in the L2."""
        for index, (absent, every) in away.items():
            before = self.away.get(index, (0, 0))
            self.away[index] = before[0] + absent, before[1] + every

    def add(self, fetched: Mapping[int, int], written: Mapping[int, int], read_only: int) -> None:
        """Count the traffic of one piece of it."""
        for kept, more in ((self.fetched, fetched), (self.written, written)):
            for index, sectors in more.items():
                kept[index] = kept.get(index, 0) + sectors
        self.read_only += read_only


def _totals(done: list[_Wave], blocks: int) -> WaveTotals:
    """Add up the waves; if not all could be followed, the last followed one represents all blocks after it."""
    whole = [wave for wave in done if wave.blocks == done[0].blocks][-1]
    totals = WaveTotals(last=(whole.blocks, whole.read_only, whole.stored))
    rest = blocks - sum(wave.stands_for for wave in done)
    if rest:
        # The rest may find all its data in the L2, or as little as the wave that found least.
        known = sum(wave.stands_for / wave.blocks * sum(wave.fetched.values()) for wave in done)
        totals.fetches = known, known + rest * max(sum(wave.fetched.values()) / wave.blocks for wave in done)
    away: dict[int, tuple[float, float]] = {}
    for number, wave in enumerate(done):
        times = (wave.stands_for + (rest if number == len(done) - 1 else 0)) / wave.blocks
        for index, sectors in wave.fetched.items():
            totals.fetched[index] = totals.fetched.get(index, 0.0) + times * sectors
        for index, sectors in wave.written.items():
            totals.written[index] = totals.written.get(index, 0.0) + times * sectors
        for index, (absent, every) in wave.away.items():
            before = away.get(index, (0.0, 0.0))
            away[index] = before[0] + times * absent, before[1] + times * every
    totals.away.update({index: absent / every for index, (absent, every) in away.items() if every})
    return totals


def _left_behind(footprint_of: FootprintOf, blocks: int, size: int, l2: _L2) -> list[Runs]:
    """What an earlier run left in the L2: from its last wave backwards, until the L2 is full.

    After some individual waves, ever longer parts of the grid are taken as one.
    """
    recent: list[Runs] = []
    end, taken = blocks, 0
    while end > 0 and l2.lines(union(EMPTY, *recent)) < l2.capacity:
        # Waves start at multiples of their size.
        waves = 1 if taken < WAVES_FOLLOWED else taken
        start = max(0, ((end - 1) // size + 1 - waves) * size)
        footprint = footprint_of(range(start, end))
        if footprint is None:
            break
        recent.insert(0, footprint.union())
        end, taken = start, taken + waves
    return l2.keep(recent)
