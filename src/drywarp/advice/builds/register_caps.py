"""A cap on registers at each step of the occupancy that it allows."""

from __future__ import annotations

from ...ready import BoundKernel
from ..register_steps import register_steps
from ..rules.more_blocks import without_limit
from .base import Build


def register_caps(ready: BoundKernel) -> list[Build]:
    """One build for each number of blocks per SM above the present one that registers stand against."""
    if "registers" not in ready.fits.limiting:
        return [Build("fewer registers", "build", reason="registers do not limit the occupancy")]
    most = without_limit(ready.fits, "registers")
    steps = register_steps(ready.gpu.occupancy, ready.kernel, ready.launch, most)
    if not steps:
        return [Build("fewer registers", "build", reason="another resource allows no more blocks either")]
    return [_capped(ready, blocks, registers) for blocks, registers in steps.items()]


def _capped(ready: BoundKernel, blocks: int, registers: int) -> Build:
    def refuse(made: BoundKernel) -> str:
        taken = made.kernel.resources.registers
        return f"it still takes {taken}: given machine code, or bounds in the source" if taken > registers else ""

    bounds = f"__launch_bounds__({ready.launch.threads_per_block}, {blocks})"
    return Build(
        f"at most {registers} registers: {blocks} blocks per SM",
        "build",
        {"max_registers": registers},
        rule="occupancy-registers",
        remedy=f"cap registers at {registers}, as with {bounds}: compiled and predicted so",
        refuse=refuse,
    )
