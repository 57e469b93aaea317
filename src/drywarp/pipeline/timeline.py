"""The launches and ends of all warps of a run in which parts recur: a folded timeline.

A part that recurs a few times is written out. If it recurs more often, windows of one period each are omitted from
the middle: from a fold's tick on, the number of active warps repeats with the period.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .result import SimulationResult, Ticks


@dataclass(frozen=True)
class Fold:
    """`times` omitted windows of `period` ticks; `tick` is where the first begins, in the run's own time."""

    tick: int
    period: int
    times: int


@dataclass(frozen=True)
class Timeline:
    """Launches (+1) and ends (-1) by tick and partition, and the omitted parts of the time; folds in order."""

    ticks: Ticks
    partitions: Ticks
    changes: Ticks
    folds: tuple[Fold, ...]

    def folded(self, ticks: Ticks) -> tuple[Ticks, list[Ticks]]:
        """Positions of moments of the run on the line, and how many windows of each fold precede them."""
        here, left_out = ticks.copy(), []
        for fold in self.folds:
            gone = np.clip((ticks - fold.tick) // fold.period, 0, fold.times)
            here -= gone * fold.period
            left_out.append(gone)
        return here, left_out


def timeline(result: SimulationResult, most: int) -> Timeline:
    """The line of a completed simulation; a part that recurs more than about `most` times is folded."""
    blocks = len(result.block_starts)
    per_block = len(result.warp_ends) // blocks if blocks else 0
    starts = np.repeat(result.block_starts, per_block)
    ends = result.warp_ends.copy()
    slots = result.block_slots[:, None] * per_block + np.arange(per_block)
    partition = slots.ravel() % result.partitions
    lines = [(starts, partition, 1), (ends, partition, -1)]
    latest = 0
    folds = []
    for part in result.recurrences:
        if part.period == 0:
            continue  # what starts and ends at one moment
        launched = (part.blocks[:, None] * per_block + np.arange(per_block)).ravel()
        known = int(part.blocks[-1] + 1) * per_block
        before = np.zeros(len(starts), dtype=np.bool_)
        before[:known] = True
        after_end = ~before
        after_end[part.running] = True
        # All earlier launches and ends are complete when a window begins.
        latest = max(latest, int(result.warp_ends[~after_end].max(initial=0)), part.tick)
        settling = -(-(latest - part.tick) // part.period)
        kept = part.times
        if part.times > settling + 2 + most:
            kept = settling + 2
            folds.append(Fold(latest, part.period, part.times - kept))
        left_out = (part.times - kept) * part.period
        again = np.arange(1, kept + 1)[:, None] * part.period
        for ticks, which, change in ((starts, launched, 1), (ends, part.warps, -1)):
            lines.append(((ticks[which] + again).ravel(), np.tile(partition[which], kept), change))
        latest = max(latest, int(result.warp_ends[part.warps].max(initial=0)) + part.times * part.period)
        starts = np.where(before, starts, starts - left_out)
        ends = np.where(after_end, ends - left_out, ends)
        lines[0], lines[1] = (starts, partition, 1), (ends, partition, -1)
    return Timeline(
        np.concatenate([ticks for ticks, _, _ in lines]),
        np.concatenate([partitions for _, partitions, _ in lines]),
        np.concatenate([np.full(len(ticks), change) for ticks, _, change in lines]),
        tuple(folds),
    )
