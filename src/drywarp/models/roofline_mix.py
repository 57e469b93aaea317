"""The Roofline over a mix of instructions of different throughputs.

Konstantinidis and Cotronis, "A practical performance model for compute and memory bound GPU kernels" (PDP
2015) and "A quantitative roofline model for GPU kernel performance estimation" (JPDC 2017), as Lemeire,
Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs", §2.1 extend Eq. 1
by them: a mix of instruction types with different throughputs. As warps per cycle, with α_c instructions
of type c:

    WPC = 1 / max(Σ_c α_c · λ_c, α_mem · λ_mem)

Units: cycles of one SM. Assumed: all computing instructions share one subsystem, so that their λ add up
(as analysis Eq. 43); memory overlaps with it fully, all latencies are hidden. Left out, since no paper at
hand prints it: the efficiencies and the quadrants by which they draw a kernel. `roofline` keeps the
subsystems apart instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..bound import BoundWorkload
from .base import NotApplicable, Prediction, register
from .cycles_per_run import Run, predict_runs
from .inputs import inputs_of


def mix_cycles(alpha: Mapping[str, float], lambda_: Mapping[str, float]) -> float:
    """Σ_c α_c · λ_c: the cycles of a mix on one subsystem."""
    return sum(count * lambda_[name] for name, count in alpha.items())


def wpc_mix(computation: float, memory: float) -> float:
    """1 / max(Σ α_c λ_c, α_mem λ_mem)."""
    return 1 / max(computation, memory)


@register("roofline_mix")
class RooflineMix:
    """One computing subsystem that all types of instructions share, and memory."""

    name = "roofline_mix"
    summary = "roofline over the instruction mix: computations share one subsystem (Konstantinidis, Cotronis 2015)"

    def predict(self, workload: BoundWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        inputs = inputs_of(workload)
        computation = inputs.mixed_cycles
        memory = inputs.memory.count * inputs.memory.lambda_
        if not computation and not memory:
            raise NotApplicable("no instruction takes any throughput")
        rate = wpc_mix(computation, memory)
        bound = "memory" if memory > computation else "computation"
        return predict_runs(self.name, workload, occupancies, lambda warps: Run(warps / rate, bound))
