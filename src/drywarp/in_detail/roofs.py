"""The instruction roofline of a launch, from what each part of the machine alone would take."""

from __future__ import annotations

from ..detail import Roof, Roofline
from ..kernel.profile import SPACE_SHARED
from ..models.base import Prediction
from ..models.throughput import ISSUE, demand, share_cycles
from ..pipeline.blocks import share_of
from ..ready import BoundKernel

_LEAST = 1e-3
"""A part that alone would take less of the time than this makes a roof out of sight."""


def roofline_of(ready: BoundKernel, believed: Prediction) -> Roofline | None:
    """Rate and roofs in warp instructions per cycle of one SM; None where nothing takes time.

    The roof of a part is the share's instructions over the cycles that the part alone would need for them; bytes are
    those of the whole grid between L2 and DRAM, and between L1 and L2 (sectors that miss the L1, and stores).
    """
    bound = ready.bound
    share = share_of(bound, bound.blocks_per_sm)
    needs = demand(bound)
    instructions = needs.instructions * share.blocks * bound.warps_per_block
    if not (instructions and believed.cycles):
        return None
    total = sum(ready.profile.executions().tolist())
    moved = {"dram": ready.behaviour.dram_bytes, "l2": _l2_bytes(ready)}
    roofs = []
    for name, cycles in share_cycles(bound, needs, share).items():
        if cycles < _LEAST * believed.cycles:
            continue
        bytes_ = moved.get(name, 0.0)
        roofs.append(Roof(name, instructions / cycles, total / bytes_ if bytes_ else None))
    roofs.sort(key=lambda roof: (roof.name != ISSUE, roof.instructions_per_cycle))
    return Roofline(instructions / believed.cycles, tuple(roofs))


def _l2_bytes(ready: BoundKernel) -> float:
    gpu = ready.gpu
    sector = gpu.machine_code.transaction_bytes if gpu.machine_code else gpu.memory.sector_bytes
    accesses = [access for access in ready.behaviour.accesses.values() if access.space != SPACE_SHARED]
    return sector * sum(access.executions * access.units * (1 - access.l1_hit) for access in accesses)
