"""From a model that gives warps per cycle over occupancy to a whole prediction.

Shared by the models whose papers give a throughput only. The grid's time is the warps of the largest share
over the WPC at its occupancy; partial waves are not told apart. CPR is ω / WPC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..bound import BoundWorkload
from ..pipeline.blocks import share_of
from .base import CurvePoint, Prediction
from .throughput import resident_blocks


def predict_rate(
    name: str,
    workload: BoundWorkload,
    occupancies: Sequence[int],
    warps_per_cycle: Callable[[int], float],
    bound: Callable[[int], str],
    notes: tuple[str, ...] = (),
) -> Prediction:
    """The prediction of a model that says `warps_per_cycle`, and what limits, at an occupancy in warps per SM."""
    points = tuple(_point(workload, occupancy, warps_per_cycle, bound) for occupancy in occupancies)
    own = _point(workload, workload.warps_per_sm, warps_per_cycle, bound)
    return Prediction(
        model=name,
        cycles=own.time_s * workload.clock_hz,
        time_s=own.time_s,
        limiter=own.bound,
        curve=points,
        notes=notes,
    )


def _point(
    workload: BoundWorkload,
    occupancy: int,
    warps_per_cycle: Callable[[int], float],
    bound: Callable[[int], str],
) -> CurvePoint:
    share = share_of(workload, resident_blocks(workload, occupancy))
    resident = min(share.resident, share.blocks) * workload.warps_per_block
    cycles = share.blocks * workload.warps_per_block / warps_per_cycle(resident)
    wpc = warps_per_cycle(occupancy)
    return CurvePoint(occupancy, wpc, cycles / workload.clock_hz, bound(occupancy), occupancy / wpc)
