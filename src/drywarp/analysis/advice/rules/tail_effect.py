"""A partial last wave of blocks that does not fill the GPU."""

from __future__ import annotations

from dataclasses import replace

from ....workload.cost import CostedWorkload
from ..case import Case, Setting
from ..whatif import WhatIf
from .base import Documentation, Suspicion, register

# A grid that finishes on all SMs at once, without a partial last wave.
#
# At least one whole wave is simulated, with all SMs active, and the time is scaled to the average number of blocks
# per SM. Where the grid is less than one wave, this is the same work split into enough blocks to fill the GPU.


def even_grid() -> WhatIf:
    """The same blocks, spread evenly over the SMs in whole waves."""

    def apply(setting: Setting) -> Setting | None:
        costed = setting.costed
        each, rest = divmod(costed.blocks, costed.sm_count)
        if costed.runs or (rest == 0 and each % costed.blocks_per_sm == 0):
            return None
        wave = costed.blocks_per_sm * costed.sm_count
        waves = -(-costed.blocks // wave)

        def change(workload: CostedWorkload) -> CostedWorkload:
            return replace(workload, runs=waves)

        return replace(setting.then(change), part=setting.part * costed.blocks / (waves * wave))

    return WhatIf("no tail of the grid", "launch", apply)


_LEAST_LOSS = 1.03
_SHARED = ("l2", "l3", "dram", "atomics")


@register
class TailEffect:
    """The grid's waves, compared with whole waves."""

    name = "tail-effect"
    title = "the last wave of blocks leaves most of the GPU idle"
    documentation = Documentation(
        what="Finds grids of less than one wave, or with a partial last wave.",
        why="The SMs run the grid in waves of as many blocks as fit at once. A kernel of 1.1 waves takes nearly as "
        "long as one of 2: most SMs have nothing to do in the second.",
        evidence="The number of waves: blocks divided by (SMs times blocks per SM). The gain comes from simulating "
        "whole waves, scaled to the average number of blocks per SM.",
        change="Make blocks smaller or give each less work, so that the last wave is short; make the grid a multiple "
        "of SMs times blocks per SM with a grid-stride loop; or split the work along another dimension as well "
        "(split-K).",
        before="kernel<<<rows, 256>>>(x);                       // 120 blocks on 108 SMs",
        after="kernel<<<dim3(rows, 4), 256>>>(x);              // a quarter row each",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Compare the grid with whole waves."""
        costed = case.setting.costed
        if costed.runs:
            return None
        waves = costed.blocks / (costed.sm_count * costed.blocks_per_sm)
        loads = -(-costed.blocks // costed.sm_count) * costed.sm_count / costed.blocks
        # The busiest unit needs its time for an average SM's share in any case.
        busiest = max(case.prediction.utilization.values(), default=0.0)
        most = loads / busiest if busiest else float("inf")
        # Balancing the SMs does not speed up what they share.
        shared = max((case.prediction.utilization.get(name, 0.0) for name in _SHARED), default=0.0)
        most = min(most, 1 / shared) if shared else most
        if min(most, max(loads, -(-waves // 1) / waves)) < _LEAST_LOSS:
            return None
        return Suspicion(
            even_grid(),
            (),
            f"{costed.blocks} blocks are {waves:.2f} waves of {costed.sm_count * costed.blocks_per_sm}",
            "use smaller blocks or less work in each, or a grid of whole waves with a grid-stride loop"
            if waves >= 1
            else "split the work into more blocks, along another dimension as well if necessary",
            1 - waves / -(-waves // 1),
        )
