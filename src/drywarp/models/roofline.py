"""The Roofline model, for any number of subsystems, and over a mix of instructions.

Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs and
extracting the underlying Pipeline model", §2.1, Eq. 1, after Williams et al. (2009), extended to
several instruction types; written as warps per cycle:

    WPC_roof = 1 / max over subsystems s of Σ λ of a warp's instructions on s

Units: cycles of one SM. The issue limit counts as a subsystem, L2 and DRAM do too. Assumed: all
subsystems overlap fully and all latencies are hidden, so the curve over occupancy is flat. Left
out: latencies, dependences, occupancy, that a small share cannot fill all partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..pipeline.blocks import share_of
from ..workload.cost import CostedWorkload
from .base import CurvePoint, NotApplicable, Prediction, register
from .cycles_per_run import Run, Runs, run_model
from .inputs import inputs_of
from .throughput import demand, resident_blocks, share_cycles


def ipc_roof(ipc_comp: float, bw: float, ci: float) -> float:
    """IPC_app^roof = min(IPC_comp, BW · CI), Eq. 1: two subsystems, CI computations per memory access."""
    return min(ipc_comp, bw * ci)


@register("roofline")
class Roofline:
    """Throughput bound of the busiest subsystem.

    The time of the grid is that of the SM with the largest share, ceil(blocks / SMs); blocks of the
    partial last wave count with the λ of the tail.
    """

    name = "roofline"
    summary = "throughput bound: the busiest subsystem, all latencies hidden (Williams et al. 2009)"

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        needs = demand(workload)
        points = []
        for occupancy in occupancies:
            share = share_of(workload, resident_blocks(workload, occupancy))
            cycles = max(share_cycles(workload, needs, share).values(), default=0.0)
            run = cycles / workload.runs if workload.runs else None
            points.append(CurvePoint(occupancy, needs.warps_per_cycle, workload.duration_s(cycles), needs.bound, run))
        headroom = share_cycles(workload, needs, share_of(workload, workload.blocks_per_sm))
        cycles = max(headroom.values(), default=0.0)
        return Prediction(
            model=self.name,
            cycles=cycles,
            time_s=workload.duration_s(cycles),
            limiter=max(headroom, key=lambda name: headroom[name], default="latency"),
            curve=tuple(points),
            utilization={name: busy / cycles if cycles else 0.0 for name, busy in headroom.items()},
            headroom=headroom,
        )


# The Roofline over a mix of instructions of different throughputs.
#
# Konstantinidis and Cotronis, "A practical performance model for compute and memory bound GPU kernels" (PDP
# 2015) and "A quantitative roofline model for GPU kernel performance estimation" (JPDC 2017), as Lemeire,
# Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs", §2.1 extend Eq. 1
# by them: a mix of instruction types with different throughputs. As warps per cycle, with α_c instructions
# of type c:
#
#     WPC = 1 / max(Σ_c α_c · λ_c, α_mem · λ_mem)
#
# Units: cycles of one SM. Assumed: all computing instructions share one subsystem, so that their λ add up
# (as analysis Eq. 43); memory overlaps with it fully, all latencies are hidden. Left out, since no paper at
# hand prints it: the efficiencies and the quadrants by which they draw a kernel. `roofline` keeps the
# subsystems apart instead.


def mix_cycles(alpha: Mapping[str, float], lambda_: Mapping[str, float]) -> float:
    """Σ_c α_c · λ_c: the cycles of a mix on one subsystem."""
    return sum(count * lambda_[name] for name, count in alpha.items())


def wpc_mix(computation: float, memory: float) -> float:
    """1 / max(Σ α_c λ_c, α_mem λ_mem)."""
    return 1 / max(computation, memory)


@run_model(
    "roofline_mix",
    "roofline over the instruction mix: computations share one subsystem (Konstantinidis, Cotronis 2015)",
)
def roofline_mix(workload: CostedWorkload) -> Runs:
    """One computing subsystem that all types of instructions share, and memory."""
    inputs = inputs_of(workload)
    computation = inputs.mixed_cycles
    memory = inputs.memory.count * inputs.memory.lambda_
    if not computation and not memory:
        raise NotApplicable("no instruction uses any throughput")
    rate = wpc_mix(computation, memory)
    bound = "memory" if memory > computation else "computation"
    return Runs(lambda warps: Run(warps / rate, bound))
