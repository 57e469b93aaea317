"""Another split of an SM's memory into L1 and shared memory, with as many blocks as then fit."""

from __future__ import annotations

from dataclasses import replace

from ...emulator import Limits
from ...fit import geometry_of
from ...hardware import Occupancy
from ...memory.behaviour import analyse_memory
from ...whole_blocks import WholeBlocks
from ..setting import Setting
from .base import WhatIf


def splits(setting: Setting) -> list[WhatIf]:
    """Every other size of shared memory that holds a block; none where the two are separate memories."""
    fits, limits = setting.fits, setting.gpu.occupancy
    if setting.gpu.machine_code is not None or not limits.unified_bytes_per_sm or setting.gpu.memory.l1.bytes:
        return []
    found = []
    for carveout in limits.carveout_bytes:
        blocks = fits.blocks_per_sm
        if fits.shared_bytes_per_block:
            blocks = min(blocks, carveout // fits.shared_bytes_per_block)
        if carveout != fits.carveout_bytes and blocks > 0:
            found.append(split(carveout, blocks, limits.unified_bytes_per_sm - carveout))
    return found


def split(carveout: int, blocks: int, l1_bytes: int) -> WhatIf:
    """So many bytes of shared memory per SM, so many blocks, and an L1 of the rest."""

    def apply(setting: Setting) -> Setting | None:
        launch = setting.workload.launch
        fits: Occupancy = replace(
            setting.fits,
            blocks_per_sm=blocks,
            warps_per_sm=blocks * launch.warps_per_block,
            carveout_bytes=carveout,
            l1_bytes=l1_bytes,
        )
        further = WholeBlocks(setting.profile, Limits())
        behaviour = analyse_memory(
            setting.profile,
            geometry_of(setting.gpu, fits),
            warm_l2=setting.warm_l2,
            emulate_blocks=further,
            looks=further.briefly(),
        )
        if blocks == setting.binding.blocks_per_sm and behaviour.accesses == setting.behaviour.accesses:
            return None
        binding = replace(setting.binding, blocks_per_sm=blocks)
        return replace(setting, fits=fits, behaviour=behaviour, binding=binding)

    return WhatIf(f"{carveout // 1024} KiB shared, {l1_bytes // 1024} KiB L1: {blocks} blocks per SM", "launch", apply)
