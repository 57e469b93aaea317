"""Warps that wait at barriers for the slowest of their block."""

from __future__ import annotations

from ...kernel.classes import is_barrier
from ..case import Case
from ..whatifs.half_the_barriers import half_the_barriers
from .base import Documentation, Suspicion, register
from .hiding import can_be_hidden

_LEAST_STALLS = 0.03


@register
class BarrierWaits:
    """Time in barrier."""

    name = "barrier-waits"
    title = "warps wait for each other at barriers"
    documentation = Documentation(
        what="Finds kernels whose warps spend time at __syncthreads().",
        why="Between two barriers all warps of a block do the same phase: all load, then all compute. What one "
        "phase uses idles in the other, and with few blocks per SM nothing else fills the gap.",
        evidence="The share of the warps' time at barriers, and which ones. The gain is that of simulating the kernel "
        "with every second barrier left out, as double buffering does; --advice shows what no waiting at all "
        "would give.",
        change="Fewer barriers (two buffers need one per tile instead of two; warps that share nothing need none; "
        "__syncwarp() where only a warp shares), smaller blocks with more of them per SM, or a pipeline that "
        "loads the next tile while computing on this one.",
        before="load(tile); __syncthreads(); compute(tile); __syncthreads();",
        after="load(tile[(t + 1) % 2]); compute(tile[t % 2]); __syncthreads();",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The barriers, those with most waiting first."""
        share = case.stall_share("barrier")
        if share < _LEAST_STALLS or not can_be_hidden(case):
            return None
        code = case.setting.instructions
        barriers = [n for n, ins in enumerate(code) if is_barrier(ins) and case.setting.executions[n]]
        # The simulation books the time under the instruction after the barrier.
        order = sorted(barriers, key=lambda n: -case.waiting(n + 1, "barrier") - case.waiting(n, "barrier"))
        return Suspicion(
            half_the_barriers(),
            case.setting.places(order),
            f"{share:.0%} of the warps' time is spent at barriers, of which the code has {len(barriers)}",
            "use fewer barriers (double buffering, __syncwarp), or smaller blocks so that others fill the gap",
            share / 2,
        )
