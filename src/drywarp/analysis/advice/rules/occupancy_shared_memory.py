"""Shared-memory usage that keeps more blocks from being resident."""

from __future__ import annotations

from ..case import Case
from ..whatif import resident_blocks
from .base import WAITING, Documentation, Suspicion, lone_limit, register


@register
class OccupancySharedMemory:
    """Occupancy limited by shared memory alone."""

    name = "occupancy-shared-memory"
    title = "shared memory per block allows too few warps to hide latency"
    documentation = Documentation(
        what="Finds kernels whose blocks per SM are limited by shared memory alone, and that would run faster with "
        "more of them.",
        why="An SM divides its shared memory among the resident blocks. What a block reserves, used or not, keeps "
        "other blocks out, and few warps leave latency exposed.",
        evidence="Bytes per block, and blocks per SM with and without that limit. The gain comes from simulating the "
        "same code with as many blocks as the other resources allow.",
        change="Use smaller tiles or smaller types, reuse one array for several purposes, or let larger blocks share "
        "the same tile.",
        before="__shared__ float a[64][64], b[64][64];   // 32 KiB",
        after="__shared__ float a[64][16], b[16][64];   // 8 KiB: a slice of the tile at a time",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The blocks that would fit with less shared memory."""
        fits = case.setting.fits
        target = lone_limit(case, "shared_memory")
        if target is None:
            return None
        stores = case.setting.indices("shared_store", "async_copy", "shared_load")
        return Suspicion(
            resident_blocks(target),
            case.setting.places(stores),
            f"{fits.shared_bytes_per_block} B of shared memory per block allow {fits.blocks_per_sm} blocks per SM "
            f"({fits.fraction:.0%} of the warps), {target} without that limit",
            "use smaller tiles or types, or one array for several purposes",
            case.stall_share(*WAITING) / 2,
        )
