"""Do instruction times add or overlap? The two answers of Kothapalli et al., according to the thesis.

Kothapalli, Mukherjee, Rehman, Patidar, Narayanan and Srinathan, "A performance prediction model for the CUDA
GPGPU platform" (HiPC 2009), as Volkov states it, "Understanding latency hiding on GPUs" (2016), §4.12:

    sum: Time (n) = α · arithmetic time (n) + memory time (n)
    max: Time (n) = max(α · arithmetic time (n), memory time (n))

Units: cycles per warp of one SM at n warps per SM. Everything inside the SM counts as arithmetic, shared
memory too. The original has no occupancy; its own equations are neither in the thesis nor here. Left out:
as in `zhang_owens`, which on a kernel without shared memory is the same as the maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..workload.cost import CostedWorkload
from .base import NotApplicable, Prediction, register
from .comparison import component_times
from .cycles_per_run import Run, predict_runs


def time_added(alpha: float, arithmetic_time: float, memory_time: float) -> float:
    """Time (n) = α · arithmetic time (n) + memory time (n), §4.12."""
    return alpha * arithmetic_time + memory_time


def _predict(
    name: str, merge: Callable[[float, float], float], workload: CostedWorkload, occupancies: Sequence[int]
) -> Prediction:
    if not component_times(workload, 1):
        raise NotApplicable("no instruction of this kernel takes any time")

    def run_of(occupancy: int) -> Run:
        times = component_times(workload, occupancy)
        memory = times.pop("memory", 0.0)
        arithmetic = sum(times.values())
        return Run(occupancy * merge(arithmetic, memory), "memory" if memory > arithmetic else "computation")

    return predict_runs(name, workload, occupancies, run_of)


@register("kothapalli_sum")
class KothapalliSum:
    """Arithmetic and memory times added."""

    name = "kothapalli_sum"
    summary = "sum of the arithmetic and memory times, each taken alone (Kothapalli et al. 2009, via Volkov 4.12)"

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        return _predict(self.name, lambda arithmetic, memory: time_added(1, arithmetic, memory), workload, occupancies)


@register("kothapalli_max")
class KothapalliMax:
    """The longer of arithmetic and memory times."""

    name = "kothapalli_max"
    summary = "the longer of arithmetic and memory times, each taken alone (Kothapalli et al. 2009, via Volkov 4.12)"

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        return _predict(self.name, max, workload, occupancies)
