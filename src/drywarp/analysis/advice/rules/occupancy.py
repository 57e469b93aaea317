"""Occupancy that one resource limits: the block size, registers, or shared memory."""

from __future__ import annotations

from dataclasses import replace

from ....workload.cost import CostedWorkload
from ..case import Case, Setting
from ..resimulate import register_steps
from ..whatif import WhatIf, resident_blocks
from .base import WAITING, Suspicion, lone_limit, rule

_LEAST_WASTE = 0.03


@rule("occupancy-block-size")
def occupancy_block_size(case: Case) -> Suspicion | None:
    """The limit on blocks per SM first, then partly filled last warps."""
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

    def fewer(costed: CostedWorkload) -> CostedWorkload:
        return replace(costed, blocks=max(1, round(costed.blocks * share)))

    def apply(setting: Setting) -> Setting | None:
        return setting.then(fewer)

    return WhatIf("all warps full", "launch", apply)


_LEAST_CAP = 0.8
"""A gain is trusted without recompiling only if the kernel keeps at least this share of its registers."""


@rule("occupancy-registers")
def occupancy_registers(case: Case) -> Suspicion | None:
    """The blocks that would fit with fewer registers, where these alone limit the occupancy."""
    fits, setting = case.setting.fits, case.setting
    kernel, launch = setting.workload.kernel, setting.workload.launch
    most = lone_limit(case, "registers")
    steps = register_steps(setting.gpu.occupancy, kernel, launch, most) if most else {}
    near = [blocks for blocks, cap in steps.items() if cap >= _LEAST_CAP * kernel.resources.registers]
    if not near:
        return None
    target = max(near)
    return Suspicion(
        resident_blocks(target),
        (),
        f"{kernel.resources.registers} registers per thread allow {fits.blocks_per_sm} blocks per SM "
        f"({fits.fraction:.0%} of the warps), {steps[target]} would allow {target}",
        f"cap them with __launch_bounds__({launch.threads_per_block}, {target}); --advice recompiles and "
        "predicts the gain of each cap",
        case.stall_share(*WAITING) / 2,
    )


@rule("occupancy-shared-memory")
def occupancy_shared_memory(case: Case) -> Suspicion | None:
    """The blocks that would fit with less shared memory, where that alone limits the occupancy."""
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
