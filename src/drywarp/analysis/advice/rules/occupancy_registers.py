"""Register usage that keeps more blocks from being resident."""

from __future__ import annotations

from ..case import Case
from ..resimulate import register_steps
from ..whatif import resident_blocks
from .base import WAITING, Documentation, Suspicion, lone_limit, register

_LEAST_CAP = 0.8
"""A gain is trusted without recompiling only if the kernel keeps at least this share of its registers."""


@register
class OccupancyRegisters:
    """Occupancy limited by registers alone."""

    name = "occupancy-registers"
    title = "register usage allows too few warps to hide latency"
    documentation = Documentation(
        what="Finds kernels whose blocks per SM are limited by registers alone, and that would run faster with "
        "more of them.",
        why="An SM's register file is shared by its resident warps. Many registers per thread leave few warps, and "
        "few warps leave latency exposed.",
        evidence="Registers per thread, and blocks per SM now and with a cap at 0.8 of them or more. The gain comes "
        "from simulating the same code at the higher occupancy. With --advice the kernel is recompiled with a "
        "cap at each occupancy step, spills included, and the best result is the gain.",
        change="State the target with __launch_bounds__(threads, blocks), keep fewer values live at once, unroll less, "
        "or use smaller blocks where the next occupancy step is just missed.",
        before="__global__ void f(float* x)",
        after="__global__ void __launch_bounds__(256, 4) f(float* x)",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The blocks that would fit with fewer registers."""
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
