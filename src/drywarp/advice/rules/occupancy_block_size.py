"""Blocks whose size wastes places for warps, or lanes."""

from __future__ import annotations

from dataclasses import replace

from ...bound import BoundWorkload
from ..case import Case
from ..setting import Setting
from ..whatifs.base import WhatIf
from ..whatifs.occupancy import resident_blocks
from .base import Documentation, Suspicion, register
from .more_blocks import WAITING, lone_limit

_LEAST_WASTE = 0.03


@register
class OccupancyBlockSize:
    """The limit of blocks per SM, and last warps that are not full."""

    name = "occupancy-block-size"
    title = "the size of the blocks wastes places for warps, or lanes of warps"
    documentation = Documentation(
        what="Finds launches whose blocks are so small that the number of blocks, not of warps, is what limits the "
        "occupancy, and blocks that are no whole number of warps.",
        why="An SM takes 16 to 32 blocks at once, however small they are: blocks of one warp fill a quarter to a "
        "half of its places. And a block's last warp costs as much with one lane as with all.",
        evidence="Blocks per SM now and without that limit, or the share of lanes that do not exist. The gain is that "
        "of simulating the same blocks with as many of them as the other resources allow, or the same threads "
        "in full warps.",
        change="Use blocks of 128 to 256 threads, a multiple of the warp size.",
        before="kernel<<<n / 32, 32>>>(x);",
        after="kernel<<<n / 128, 128>>>(x);",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Small blocks first, then partly filled warps."""
        setting = case.setting
        launch, fits = setting.workload.launch, setting.fits
        target = lone_limit(case, "blocks")
        if target is not None:
            return Suspicion(
                resident_blocks(target),
                (),
                f"blocks of {launch.threads_per_block} threads: the limit of {fits.blocks_per_sm} blocks per SM leaves "
                f"{1 - fits.fraction:.0%} of the places for warps empty",
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
            f"blocks of {launch.threads_per_block} threads leave {waste:.0%} of the lanes of their warps empty",
            f"use a multiple of {launch.warp_size} threads per block",
            waste,
        )


def full_warps(share: float) -> WhatIf:
    """The same threads in so much fewer, full blocks."""

    def fewer(bound: BoundWorkload) -> BoundWorkload:
        return replace(bound, blocks=max(1, round(bound.blocks * share)))

    def apply(setting: Setting) -> Setting | None:
        return setting.then(fewer)

    return WhatIf("all warps full", "launch", apply)
