"""Registers that keep further blocks off the SM."""

from __future__ import annotations

from ..case import Case
from ..register_steps import register_steps
from ..whatifs.occupancy import resident_blocks
from .base import Documentation, Suspicion, register
from .more_blocks import WAITING, lone_limit

_LEAST_CAP = 0.8
"""Share of its registers that a kernel must keep for the gain to be believed before it has been compiled again."""


@register
class OccupancyRegisters:
    """Occupancy that registers alone limit."""

    name = "occupancy-registers"
    title = "registers per thread allow too few warps to hide latency"
    documentation = Documentation(
        what="Finds kernels whose blocks per SM are limited by registers alone, and that would run faster with "
        "more of them.",
        why="The register file of an SM is dealt out to resident warps. Many registers per thread leave few "
        "warps, and few warps leave latency uncovered.",
        evidence="Registers per thread, blocks per SM now and with a cap of no less than 0.8 of them. The gain is that "
        "of simulating the same code at the higher occupancy; with --advice the kernel is compiled again with "
        "a cap at each step of the occupancy, spills and all, and the best of them is the gain.",
        change="State what is wanted with __launch_bounds__(threads, blocks), keep fewer values alive at once, "
        "unroll less, or use smaller blocks where a step of the occupancy is just missed.",
        before="__global__ void f(float* x)",
        after="__global__ void __launch_bounds__(256, 4) f(float* x)",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Blocks that would fit but for registers."""
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
            f"cap them with __launch_bounds__({launch.threads_per_block}, {target}); --advice compiles it and "
            "says what each cap is worth",
            case.stall_share(*WAITING) / 2,
        )
