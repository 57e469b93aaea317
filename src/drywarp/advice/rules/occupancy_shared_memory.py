"""Shared memory that keeps further blocks off the SM."""

from __future__ import annotations

from ..case import Case
from ..whatifs.occupancy import resident_blocks
from .base import Documentation, Suspicion, register
from .more_blocks import WAITING, lone_limit


@register
class OccupancySharedMemory:
    """Occupancy that shared memory alone limits."""

    name = "occupancy-shared-memory"
    title = "shared memory per block allows too few warps to hide latency"
    documentation = Documentation(
        what="Finds kernels whose blocks per SM are limited by shared memory alone, and that would run faster with "
        "more of them.",
        why="An SM deals out its shared memory to the resident blocks. What a block reserves, used or not, keeps "
        "other blocks away, and few warps leave latency uncovered.",
        evidence="Bytes per block, blocks per SM now and without that limit. The gain is that of simulating the same "
        "code with as many blocks as the other resources allow.",
        change="Smaller tiles, smaller types, reuse of one array for several purposes, or larger blocks that share "
        "the same tile.",
        before="__shared__ float a[64][64], b[64][64];   // 32 KiB",
        after="__shared__ float a[64][16], b[16][64];   // 8 KiB: a slice of the tile at a time",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Blocks that would fit but for shared memory."""
        fits = case.setting.fits
        target = lone_limit(case, "shared_memory")
        if target is None:
            return None
        stores = case.setting.indices("shared_store", "async_copy", "shared_load")
        return Suspicion(
            resident_blocks(target),
            case.setting.places(stores),
            f"{fits.shared_bytes_per_block} B of shared memory per block allow {fits.blocks_per_sm} blocks per SM "
            f"({fits.fraction:.0%} of the warps), without that limit {target}",
            "use smaller tiles or types, or one array for several purposes",
            case.stall_share(*WAITING) / 2,
        )
