"""Zhang and Owens: the slowest of instruction pipeline, shared memory and global memory.

Zhang and Owens, "A quantitative performance analysis model for GPU architectures" (HPCA 2011), as Volkov
reduces it, "Understanding latency hiding on GPUs" (2016), §4.11 and §7.3:

    Time (n) = max(α · arithmetic time (n), memory time (n))

each being the time of those instructions if they were alone. Units: cycles per warp of one SM at n warps
per SM. The original takes these times from microbenchmarks at the same occupancy; here λ and Λ give them, as in
§4.11. Assumed: components overlap fully. Left out: that a warp executes one instruction at a time (what
Volkov criticises), the barrier-by-barrier procedure of the original, whose equations are not in the thesis.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..workload.cost import CostedWorkload
from .base import NotApplicable, Prediction, register
from .comparison import component_times
from .cycles_per_run import Run, predict_runs


def time_overlapped(alpha: float, arithmetic_time: float, memory_time: float) -> float:
    """Time (n) = max(α · arithmetic time (n), memory time (n)), §4.11."""
    return max(alpha * arithmetic_time, memory_time)


def adds_per_cycle(alpha: float, alu: float, mem: float) -> float:
    """Throughput = min(alu (n), α · mem (n)), §7.3: of throughputs in operations per cycle and SM."""
    return min(alu, alpha * mem)


@register("zhang_owens")
class ZhangOwens:
    """The slowest component, each executed alone."""

    name = "zhang_owens"
    summary = "slowest of instructions, shared and global memory, each taken alone (Zhang and Owens 2011)"

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        if not component_times(workload, 1):
            raise NotApplicable("no instruction of this kernel takes any time")

        def run_of(occupancy: int) -> Run:
            times = component_times(workload, occupancy)
            slowest = max(times, key=lambda name: times[name])
            return Run(occupancy * times[slowest], "memory" if slowest == "memory" else "computation")

        return predict_runs(self.name, workload, occupancies, run_of)
