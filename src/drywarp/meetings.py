"""Where warps of a block meet without all meeting: who signals and who awaits which phase of a barrier.

The emulator records it (`Profile.syncs`); here it becomes, for each warp, a list of events that the simulation
goes through beside the warp's program (`BoundPath.events`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from .bound import SYNC_AWAITS, SYNC_SIGNALS
from .kernel.profile import (
    SYNC_BARRIER,
    SYNC_INSTRUCTION,
    SYNC_KIND,
    SYNC_PHASE,
    SYNC_SIGNAL,
    SYNC_STEP,
    SYNC_WAIT,
    SYNC_WARP,
    Profile,
)

Events = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Meetings:
    """What each instruction does to phases, and the events and signals of each warp of each sampled block."""

    sync: Mapping[int, int] = field(default_factory=dict)
    warps: Mapping[tuple[int, int], Events] = field(default_factory=dict)

    def of(self, block: int, warp: int) -> Events:
        """Events and signals of a warp, as `BoundPath` has them."""
        return self.warps.get((block, warp), ((), ()))


def find_meetings(profile: Profile) -> Meetings:
    """Read the record of a profile; empty where no warps meet but all of a block."""
    rows = profile.syncs
    if not len(rows):
        return Meetings()
    signals = rows[:, SYNC_KIND] == SYNC_SIGNAL
    waits = rows[:, SYNC_KIND] == SYNC_WAIT
    sync = {
        int(i): SYNC_SIGNALS * bool(signals[rows[:, SYNC_INSTRUCTION] == i].any())
        + SYNC_AWAITS * bool(waits[rows[:, SYNC_INSTRUCTION] == i].any())
        for i in np.unique(rows[:, SYNC_INSTRUCTION])
    }
    per_block = profile.launch.warps_per_block
    by_block = {
        index: [i for i in range(block.start, block.end) if i in sync]
        for index, block in enumerate(profile.cfg.blocks)
        if any(i in sync for i in range(block.start, block.end))
    }
    where = np.array(sorted(by_block))
    steps = [np.flatnonzero(np.isin(path.blocks, where)) for path in profile.paths]
    warps: dict[tuple[int, int], Events] = {}
    for block, sample in enumerate(profile.blocks):
        mine = rows[rows[:, SYNC_WARP] // per_block == block]
        numbers = _phase_numbers(mine)
        for warp, path in enumerate(sample.paths):
            told: dict[tuple[int, int], list[list[int]]] = {}
            for row in mine[mine[:, SYNC_WARP] == block * per_block + warp].tolist():
                told.setdefault((row[SYNC_STEP], row[SYNC_INSTRUCTION]), []).append(row)
            events: list[int] = []
            counts = [0] * len(numbers)
            for step in steps[path].tolist():
                for index in by_block[int(profile.paths[path].blocks[step])]:
                    _entry(told.get((step, index), []), sync[index], numbers, events, counts)
            warps[block, warp] = (tuple(events), tuple(counts))
    return Meetings(sync, warps)


def _phase_numbers(rows: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> dict[tuple[int, int], int]:
    """Numbers for the phases of a block's barriers that anybody signals."""
    signalled = rows[rows[:, SYNC_KIND] == SYNC_SIGNAL][:, [SYNC_BARRIER, SYNC_PHASE]]
    return {(barrier, phase): n for n, (barrier, phase) in enumerate(np.unique(signalled, axis=0).tolist())}


def _entry(
    rows: list[list[int]], sync: int, numbers: dict[tuple[int, int], int], events: list[int], counts: list[int]
) -> None:  # fmt: skip
    """Append the entry of one turn of one instruction; of several waits the latest phase counts."""
    signalled = [numbers[r[SYNC_BARRIER], r[SYNC_PHASE]] for r in rows if r[SYNC_KIND] == SYNC_SIGNAL]
    for number in signalled:
        counts[number] += 1
    events.extend((len(signalled), *signalled))
    if sync & SYNC_AWAITS:
        awaited = [numbers.get((r[SYNC_BARRIER], r[SYNC_PHASE]), -1) for r in rows if r[SYNC_KIND] == SYNC_WAIT]
        events.append(max(awaited, default=-1))
