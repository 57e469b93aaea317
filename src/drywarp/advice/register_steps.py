"""The caps on registers at which one more block fits on an SM."""

from __future__ import annotations

from ..errors import UsageError
from ..hardware.occupancy import OccupancyLimits, occupancy
from ..kernel.kernel import Kernel
from ..kernel.launch import Launch

FEWEST = 16
"""The lowest cap that the compiler takes."""


def register_steps(limits: OccupancyLimits, kernel: Kernel, launch: Launch, most: int) -> dict[int, int]:
    """By blocks per SM above the present number, up to `most`: the most registers per thread that allow them."""
    shared = kernel.resources.shared_bytes + launch.dynamic_shared
    scalar = kernel.resources.scalar_registers

    def blocks(registers: int) -> int:
        try:
            return occupancy(limits, registers, shared, launch.threads_per_block, scalar).blocks_per_sm
        except UsageError:
            return 0

    now = blocks(kernel.resources.registers)
    steps: dict[int, int] = {}
    for registers in range(kernel.resources.registers - 1, FEWEST - 1, -1):
        fit = min(blocks(registers), most)
        if fit > max(steps, default=now):
            steps[fit] = registers
    return steps
