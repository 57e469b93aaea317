"""From a formula for the cycles of a run to a whole `Prediction`, for models without a simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..bound import BoundWorkload
from ..pipeline.blocks import share_of
from .base import CurvePoint, Prediction
from .throughput import resident_blocks

SLACK = 1 + 1e-9
"""Tolerance of comparisons with the roof, for binary fractions."""


def predict_runs(
    model: str,
    workload: BoundWorkload,
    occupancies: Sequence[int],
    cycles_per_run: Callable[[int], float],
    bound: Callable[[int], str],
    notes: tuple[str, ...] = (),
) -> Prediction:
    """A model that knows CPR, the cycles in which ω warps run, and what limits them.

    The time of the grid is as many runs as the largest share of an SM needs, counted in fractions, as
    MWP-CWP's repetitions are; a share below the occupancy is one run of its own warps.
    """

    def cycles(resident: int) -> float:
        share = share_of(workload, resident)
        at_once = min(resident, share.blocks)
        return cycles_per_run(at_once * workload.warps_per_block) * share.blocks / at_once

    points = []
    for warps in occupancies:
        run, time = cycles_per_run(warps), cycles(resident_blocks(workload, warps)) / workload.clock_hz
        points.append(CurvePoint(warps, warps / run if run else float("inf"), time, bound(warps), run))
    total = cycles(workload.blocks_per_sm)
    return Prediction(
        model=model,
        cycles=total,
        time_s=total / workload.clock_hz,
        limiter=bound(workload.warps_per_sm),
        curve=tuple(points),
        notes=notes,
    )


def limit_name(warps_per_cycle: float, roof: float, roof_bound: str) -> str:
    """``latency`` below the roof, else what makes the roof."""
    return roof_bound if warps_per_cycle * SLACK >= roof else "latency"
