"""Do instruction times add or overlap? The two answers of Kothapalli et al., by the thesis.

Kothapalli, Mukherjee, Rehman, Patidar, Narayanan and Srinathan, "A performance prediction model for the CUDA
GPGPU platform" (HiPC 2009), as Volkov states it, "Understanding latency hiding on GPUs" (2016), §4.12:

    sum: Time (n) = α · arithmetic time (n) + memory time (n)
    max: Time (n) = max(α · arithmetic time (n), memory time (n))

Units: cycles per warp of one SM at n warps per SM. Everything inside the SM counts as arithmetic, shared
memory too. The original knows no occupancy; its own equations are not in the thesis and not here. Left out:
as in `zhang_owens`, which on a kernel without shared memory is the same as the maximum.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..bound import BoundWorkload
from .base import NotApplicable, Prediction, register
from .isolation import component_times
from .rate import predict_rate


def time_added(alpha: float, arithmetic_time: float, memory_time: float) -> float:
    """Time (n) = α · arithmetic time (n) + memory time (n), §4.12."""
    return alpha * arithmetic_time + memory_time


def _two(workload: BoundWorkload, occupancy: int) -> dict[str, float]:
    times = component_times(workload, occupancy)
    if not times:
        raise NotApplicable("no instruction of this kernel takes any time")
    memory = times.pop("memory", 0.0)
    return {"arithmetic": sum(times.values()), "memory": memory}


def _longer(workload: BoundWorkload, occupancy: int) -> str:
    times = _two(workload, occupancy)
    return max(times, key=lambda name: times[name])


@register("kothapalli_sum")
class KothapalliSum:
    """Arithmetic and memory times added."""

    name = "kothapalli_sum"
    summary = "arithmetic and memory times, each taken alone, add up (Kothapalli et al. 2009, by Volkov 4.12)"

    def predict(self, workload: BoundWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        return predict_rate(
            self.name,
            workload,
            occupancies,
            lambda occupancy: 1 / sum(_two(workload, occupancy).values()),
            lambda occupancy: _longer(workload, occupancy),
        )


@register("kothapalli_max")
class KothapalliMax:
    """The longer of arithmetic and memory times."""

    name = "kothapalli_max"
    summary = "the longer of arithmetic and memory times, each taken alone (Kothapalli et al. 2009, by Volkov 4.12)"

    def predict(self, workload: BoundWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        return predict_rate(
            self.name,
            workload,
            occupancies,
            lambda occupancy: 1 / max(_two(workload, occupancy).values()),
            lambda occupancy: _longer(workload, occupancy),
        )
