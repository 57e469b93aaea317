"""A grid that ends on all SMs at once, without a partial last wave.

Whole waves are simulated, at least one, with all SMs active, and their time is scaled to the blocks that an SM has in
the mean. Where the grid is less than a wave, that is the same work cut into enough blocks to fill the GPU.
"""

from __future__ import annotations

from dataclasses import replace

from ...bound import BoundWorkload
from ..setting import Setting
from .base import WhatIf


def even_grid() -> WhatIf:
    """The same blocks, spread so that each SM has as many, in whole waves."""

    def apply(setting: Setting) -> Setting | None:
        bound = setting.bound
        each, rest = divmod(bound.blocks, bound.sm_count)
        if bound.runs or (rest == 0 and each % bound.blocks_per_sm == 0):
            return None
        wave = bound.blocks_per_sm * bound.sm_count
        waves = -(-bound.blocks // wave)

        def change(workload: BoundWorkload) -> BoundWorkload:
            return replace(workload, runs=waves)

        return replace(setting.then(change), part=setting.part * bound.blocks / (waves * wave))

    return WhatIf("no tail of the grid", "launch", apply)
