"""The Roofline model, for any number of subsystems.

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
from .base import CurvePoint, Prediction, register
from .throughput import Demand, demand, resident_blocks, share_cycles


def ipc_roof(ipc_comp: float, bw: float, ci: float) -> float:
    """IPC_app^roof = min(IPC_comp, BW · CI), Eq. 1: two subsystems, CI computations per memory access."""
    return min(ipc_comp, bw * ci)


def wpc_roof(sum_lambda: Mapping[str, float]) -> float:
    """WPC_roof: the inverse of the largest Σλ per warp."""
    longest = max(sum_lambda.values(), default=0.0)
    return 1.0 / longest if longest > 0 else float("inf")


def utilization_at(needs: Demand, warps_per_cycle: float) -> dict[str, float]:
    """The fraction of the time that each subsystem is busy at a given WPC."""
    return {name: min(1.0, cost * warps_per_cycle) for name, cost in needs.cycles.items()}


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
