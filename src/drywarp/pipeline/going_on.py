"""Many blocks from the rate of a few waves, where no state recurs.

Warps that drift among each other need not come back to a state: their issues repeat in the mean only. So a few waves
are simulated, with the grid's beginning and its end, and what is left out in between goes on at the rate of
the instructions between two launches a whole number of waves apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..bound import BoundWorkload
from .apportion import apportion
from .blocks import Share
from .result import Mark, SimulationResult, Ticks
from .simulate import Program, per_instance, run_share
from .state import Steady

MARKS = 50
"""Moments of a wave that are noted, about."""


def waves_and_rate(
    workload: BoundWorkload,
    share: Share,
    waves: int,
    total: int,
    stalls: bool,
    program: Program | None = None,
    exactly: Callable[[], SimulationResult | None] = lambda: None,
) -> SimulationResult:
    """An estimate of `share`, of `total` warp instructions, from `waves` waves and a partial last one.

    One more where the last is not partial. The exact result where that is all of it; and what `exactly` gives
    where a state recurs in these waves.
    """
    resident, rest = share.resident, share.blocks % share.resident
    blocks = (max(2, waves) + (rest == 0)) * resident + rest
    if share.blocks <= 1.5 * blocks:
        return run_share(workload, share, stalls=stalls, steady=Steady(), program=program)
    each = max(1, total * resident // share.blocks // MARKS)
    few = run_share(workload, share.shortened(blocks), stalls=stalls, steady=Steady(mark=each), program=program)
    if few.jumped and (exact := exactly()):
        return exact
    between = _window(few, resident)
    if between is None:
        longer = share.shortened(blocks + resident * max(1, waves))
        more = run_share(workload, longer, stalls=stalls, steady=Steady(), program=program)
        return along_the_line(few, more, total, share.blocks)
    return _go_on(workload, few, between, total, share.blocks)


def _window(run: SimulationResult, resident: int) -> tuple[Mark, Mark] | None:
    """Two marks with as many waves in between as there are after the first; None where there are no such."""
    waves = (len(run.block_starts) - 1) // resident
    first = max(1, waves // 3)
    if run.recurrences or waves <= first:
        return None  # a run with jumps has no rows for each block
    starts = run.block_starts[[first * resident, waves * resident]]
    ticks = np.array([mark.tick for mark in run.marks])
    begin, end = np.searchsorted(ticks, starts)
    if end >= len(ticks) or run.marks[end].issued == run.marks[begin].issued:
        return None
    return run.marks[begin], run.marks[end]


def _go_on(
    workload: BoundWorkload, run: SimulationResult, between: tuple[Mark, Mark], total: int, blocks: int
) -> SimulationResult:
    """The run with what it lacks to `total` instructions, at the rate between two marks."""
    begin, end = between
    ahead, span = total - run.issued, end.issued - begin.issued

    def more(amount: int) -> int:
        return (amount * ahead + span // 2) // span

    active = _active(run, begin.tick, end.tick)
    warp_ticks = run.warp_ticks + more(active)
    rate = ahead / span
    busy = zip(run.busy_ticks, per_instance(workload, end.busy - begin.busy), strict=True)
    return replace(
        run,
        total_ticks=run.total_ticks + more(end.tick - begin.tick),
        issued=total,
        blocks=blocks,
        busy_ticks=tuple(done + further * rate for done, further in busy),
        issue_busy_ticks=run.issue_busy_ticks * (total / run.issued),
        warp_ticks=warp_ticks,
        stall_ticks=apportion(run.stall_ticks + (end.stalls - begin.stalls) * rate, warp_ticks),
        extrapolated=True,
    )


def _active(run: SimulationResult, begin: int, end: int) -> int:
    """The time of all warps together between two ticks."""
    per_block = len(run.warp_ends) // len(run.block_starts)
    starts: Ticks = np.clip(np.repeat(run.block_starts, per_block), begin, end)
    return int((np.clip(run.warp_ends, begin, end) - starts).sum())


def along_the_line(few: SimulationResult, more: SimulationResult, total: int, blocks: int) -> SimulationResult:
    """The line through two runs, at `total` instructions."""
    span, ahead = more.issued - few.issued, total - more.issued

    def line(first: float, second: float) -> float:
        return second + (second - first) * ahead / span

    def whole_line(first: int, second: int) -> int:
        return second + ((second - first) * ahead + span // 2) // span

    warp_ticks = whole_line(few.warp_ticks, more.warp_ticks)
    stalls = more.stall_ticks + (more.stall_ticks - few.stall_ticks) * (ahead / span)
    return replace(
        more,
        total_ticks=whole_line(few.total_ticks, more.total_ticks),
        issued=total,
        blocks=blocks,
        busy_ticks=tuple(line(a, b) for a, b in zip(few.busy_ticks, more.busy_ticks, strict=True)),
        issue_busy_ticks=line(few.issue_busy_ticks, more.issue_busy_ticks),
        warp_ticks=warp_ticks,
        stall_ticks=apportion(stalls, warp_ticks),
        extrapolated=True,
    )
