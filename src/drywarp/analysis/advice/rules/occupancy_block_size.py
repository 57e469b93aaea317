"""Block sizes that waste warp slots or lanes."""

from __future__ import annotations

from dataclasses import replace

from ....workload.cost import BoundWorkload
from ..case import Case, Setting
from ..whatif import WhatIf, resident_blocks
from .base import WAITING, Documentation, Suspicion, lone_limit, register

_LEAST_WASTE = 0.03


@register
class OccupancyBlockSize:
    """The limit on blocks per SM, and partly filled last warps."""

    name = "occupancy-block-size"
    title = "the block size wastes warp slots, or lanes of warps"
    documentation = Documentation(
        what="Finds launches with blocks so small that the limit on resident blocks, not warps, determines the "
        "occupancy, and blocks that are not a whole number of warps.",
        why="An SM holds at most 16 to 32 blocks, however small they are: one-warp blocks fill a quarter to a half "
        "of its warp slots. And a block's last warp costs as much with one lane as with all.",
        evidence="Blocks per SM with and without that limit, or the share of missing lanes. The gain comes from "
        "simulating as many of the same blocks as the other resources allow, or the same threads in full "
        "warps.",
        change="Use blocks of 128 to 256 threads, a multiple of the warp size.",
        before="kernel<<<n / 32, 32>>>(x);",
        after="kernel<<<n / 128, 128>>>(x);",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Check for small blocks first, then for partly filled warps."""
        setting = case.setting
        launch, fits = setting.workload.launch, setting.fits
        target = lone_limit(case, "blocks")
        if target is not None:
            return Suspicion(
                resident_blocks(target),
                (),
                f"blocks of {launch.threads_per_block} threads: the limit of {fits.blocks_per_sm} blocks per SM leaves "
                f"{1 - fits.fraction:.0%} of the warp slots empty",
                "use blocks of 128 to 256 threads",
                case.stall_share(*WAITING) / 2,
            )
        lanes = launch.warps_per_block * launch.warp_size
        waste = 1 - launch.threads_per_block / lanes
        if waste < _LEAST_WASTE:
            return None
        return Suspicion(
            full_warps(launch.threads_per_block / lanes),
            (),
            f"blocks of {launch.threads_per_block} threads leave {waste:.0%} of their warps' lanes empty",
            f"use a multiple of {launch.warp_size} threads per block",
            waste,
        )


def full_warps(share: float) -> WhatIf:
    """The same threads in correspondingly fewer, full blocks."""

    def fewer(bound: BoundWorkload) -> BoundWorkload:
        return replace(bound, blocks=max(1, round(bound.blocks * share)))

    def apply(setting: Setting) -> Setting | None:
        return setting.then(fewer)

    return WhatIf("all warps full", "launch", apply)
