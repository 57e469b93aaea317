"""How many warps are active over time on an SM, as Volkov tracks it on real ones (2016, §5.6-5.9).

The launches and ends of all warps are sorted; between two of them the number of active warps is constant. The area
under that line is the total time of all warps, so Little's law holds exactly: mean occupancy = mean warp latency ·
warps per time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..workload.cost import TICKS_PER_CYCLE, CostedWorkload
from .blocks import Share, share_of
from .extrapolate import LAUNCH_BUDGET, simulate
from .result import SimulationResult, Ticks

TRACE_POINTS = 1024
"""Default maximum number of intervals of a trace."""


@dataclass(frozen=True)
class OccupancyTrace:
    """Active warps of one SM, piecewise constant: interval k lasts from `ticks[k]` to `ticks[k + 1]`.

    `warp_ticks` has a row per interval and a column per partition: active warps times the interval's length, whole
    numbers. So a mean over any number of intervals stays exact even if the trace was decimated: its intervals then have
    equal length and hold means. `busiest_ticks` is the area under the partition with the most warps at each moment,
    before decimation; `peak` is the maximum number of active warps. `extrapolated` says that the trace covers only the
    simulated part.
    """

    ticks: Ticks
    warp_ticks: Ticks
    busiest_ticks: int
    peak: int
    decimated: bool
    extrapolated: bool

    @property
    def cycles(self) -> npt.NDArray[np.float64]:
        """The bounds of the intervals in cycles, one more than the number of intervals."""
        return self.ticks / TICKS_PER_CYCLE

    @property
    def by_partition(self) -> npt.NDArray[np.float64]:
        """Active warps: a row per interval, a column per partition."""
        warps: npt.NDArray[np.float64] = self.warp_ticks / np.diff(self.ticks)[:, None]
        return warps

    @property
    def active(self) -> npt.NDArray[np.float64]:
        """Active warps of the SM in each interval."""
        warps: npt.NDArray[np.float64] = self.warp_ticks.sum(axis=1) / np.diff(self.ticks)
        return warps

    @property
    def mean(self) -> float:
        """Achieved occupancy: active warps weighted by time."""
        total = int(self.ticks[-1] - self.ticks[0])
        return int(self.warp_ticks.sum()) / total if total else 0.0

    @property
    def imbalance(self) -> float:
        """How far the mean partition is below the busiest in active warps at each moment, 0..1.

        0: balanced. 17 warps on four partitions (5, 4, 4 and 4) give 1 - 17/20 = 15 %: the loss of throughput that
        Volkov measures (§5.8) when issue is the limiter.
        """
        partitions = self.warp_ticks.shape[1]
        return 1 - int(self.warp_ticks.sum()) / (partitions * self.busiest_ticks) if self.busiest_ticks else 0.0


def occupancy_trace(
    workload: CostedWorkload, share: Share | None = None, *, points: int = TRACE_POINTS, budget: int = LAUNCH_BUDGET
) -> OccupancyTrace:
    """Simulate the launch's share (or `share`) and trace its occupancy over at most `points` intervals."""
    return trace_of(
        simulate(workload, share or share_of(workload, workload.blocks_per_sm), budget, stalls=False), points
    )


def trace_of(result: SimulationResult, points: int = TRACE_POINTS) -> OccupancyTrace:
    """The trace of a completed simulation; of its simulated part if it was extrapolated."""
    line = timeline(result, points)
    # Each launch and end changes the count in one partition; those at the same tick are merged.
    bounds = np.array([0, result.simulated_ticks], dtype=np.int64)
    outside, _ = line.folded(bounds)
    ticks, place = np.unique(np.concatenate([line.ticks, outside]), return_inverse=True)
    change = np.zeros((len(ticks), result.partitions), dtype=np.int64)
    np.add.at(change, (place[: len(line.ticks)], line.partitions), line.changes)
    active = np.cumsum(change, axis=0)[:-1]
    lengths = np.diff(ticks)
    peak = int(active.sum(axis=1).max(initial=0))
    area = active * lengths[:, None]
    steps = np.column_stack([active, active.max(axis=1, initial=0)])
    busiest = int(_between(line, ticks, steps, bounds)[0, -1]) if len(lengths) else 0
    decimated = len(area) > points or bool(line.folds)
    if decimated:
        bounds = np.unique(np.array([result.simulated_ticks * k // points for k in range(points + 1)], dtype=np.int64))
        ticks, area = bounds, _between(line, ticks, active, bounds)
    return OccupancyTrace(ticks, area, busiest, peak, decimated, result.extrapolated)


def _between(line: Timeline, ticks: Ticks, steps: Ticks, bounds: Ticks) -> Ticks:
    """The area under `steps`, constant between `ticks` of the line, between each pair of the run's `bounds`."""
    before = np.concatenate(
        [np.zeros((1, steps.shape[1]), dtype=np.int64), np.cumsum(steps * np.diff(ticks)[:, None], axis=0)]
    )

    def until(moments: Ticks) -> Ticks:
        at = np.minimum(np.searchsorted(ticks, moments, side="right") - 1, len(steps) - 1)
        areas: Ticks = before[at] + steps[at] * (moments - ticks[at])[:, None]
        return areas

    here, left_out = line.folded(bounds)
    total = until(here)
    for fold, windows in zip(line.folds, left_out, strict=True):
        begins, _ = line.folded(np.array([fold.tick], dtype=np.int64))
        window = until(begins + fold.period) - until(begins)
        total += windows[:, None] * window
    return np.diff(total, axis=0)


# The launches and ends of all warps of a run in which parts recur: a folded timeline.
#
# A part that recurs a few times is written out. If it recurs more often, windows of one period each are omitted from
# the middle: from a fold's tick on, the number of active warps repeats with the period.


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
