"""At which occupancies a model is asked: the points of an answer's curve."""

from __future__ import annotations

from collections.abc import Sequence

from .bound import BoundWorkload
from .errors import UsageError
from .pipeline.extrapolate import CURVE_BUDGET, instructions

MOST_CURVE_POINTS = 16
"""Occupancies on a curve; where more are possible they are spread evenly."""

FEWEST_CURVE_POINTS, CURVE_STEPS = 5, 4_000_000
"""Points that a curve has at least where the GPU allows them, and warp instructions that all may take."""


def curve_occupancies(bound: BoundWorkload, wanted: Sequence[int] | None) -> list[int]:
    """Warps per SM in whole blocks; the launch's own occupancy is always among them.

    Of a range the whole blocks are taken; numbers that are named one by one must be whole blocks. Unless
    told, the more a point costs to simulate the fewer there are.
    """
    warps = bound.warps_per_block
    if isinstance(wanted, range):
        whole = [w for w in wanted if 0 < w <= bound.max_blocks_per_sm * warps and w % warps == 0]
        return sorted({*whole, bound.warps_per_sm})
    if wanted is not None:
        for occupancy_warps in wanted:
            if occupancy_warps % warps or not 0 < occupancy_warps <= bound.max_blocks_per_sm * warps:
                raise UsageError(
                    f"occupancy {occupancy_warps}: expected a multiple of {warps} warps (one block) "
                    f"up to {bound.max_blocks_per_sm * warps}"
                )
        return sorted({*wanted, bound.warps_per_sm})
    most = bound.max_blocks_per_sm
    cost = min(instructions(bound, -(-bound.blocks // bound.sm_count)), CURVE_BUDGET)
    affordable = max(FEWEST_CURVE_POINTS, CURVE_STEPS // max(1, cost))
    count = min(most, MOST_CURVE_POINTS, affordable)
    blocks = {round(1 + i * (most - 1) / max(1, count - 1)) for i in range(count)}
    return [b * warps for b in sorted(blocks | {bound.blocks_per_sm})]
