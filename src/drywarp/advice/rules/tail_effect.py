"""A last wave of blocks that does not fill the GPU."""

from __future__ import annotations

from ..case import Case
from ..whatifs.even_grid import even_grid
from .base import Documentation, Suspicion, register

_LEAST_LOSS = 1.03


@register
class TailEffect:
    """Whole waves against those that the grid has."""

    name = "tail-effect"
    title = "the last wave of blocks leaves most of the GPU idle"
    documentation = Documentation(
        what="Finds grids that are less than a wave, or that end with a partial one.",
        why="The SMs work through the grid in waves of as many blocks as fit at once. A kernel of 1.1 waves takes "
        "nearly as long as one of 2: most SMs have nothing to do in the second.",
        evidence="The waves of the grid: blocks over SMs times blocks per SM. The gain is that of simulating whole "
        "waves, scaled to the blocks that an SM has in the mean.",
        change="Make blocks smaller or let each do less, so that the last wave is short; choose the grid as a "
        "multiple of SMs times blocks per SM with a grid-stride loop; or cut the work along another dimension "
        "as well (split-k).",
        before="kernel<<<rows, 256>>>(x);                       // 120 blocks on 108 SMs",
        after="kernel<<<dim3(rows, 4), 256>>>(x);              // a quarter of a row each",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The grid against whole waves."""
        bound = case.setting.bound
        if bound.runs:
            return None
        waves = bound.blocks / (bound.sm_count * bound.blocks_per_sm)
        loads = -(-bound.blocks // bound.sm_count) * bound.sm_count / bound.blocks
        # The busiest part of the machine needs its time for the mean share of an SM in any case.
        busiest = max(case.prediction.utilization.values(), default=0.0)
        most = loads / busiest if busiest else float("inf")
        if min(most, max(loads, -(-waves // 1) / waves)) < _LEAST_LOSS:
            return None
        return Suspicion(
            even_grid(),
            (),
            f"{bound.blocks} blocks are {waves:.2f} waves of {bound.sm_count * bound.blocks_per_sm}",
            "smaller blocks or less work in each, or a grid of whole waves with a grid-stride loop"
            if waves >= 1
            else "cut the work into more blocks, along another dimension as well if need be",
            1 - waves / -(-waves // 1),
        )
