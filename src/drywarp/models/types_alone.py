"""Times of instruction types, each as if it ran alone on the SM, and the models that merge them.

Volkov, "Understanding latency hiding on GPUs" (2016), §4.11: arithmetic time (n) = max(alu_lat / n, 1 / alu_thru),
memory time (n) = max(mem_lat / n, 1 / mem_thru), cycles per instruction of one SM with n warps of nothing else. Units:
cycles per warp of one SM at n warps per SM. Merged they are

    zhang_owens:      Time (n) = max(α · arithmetic time (n), memory time (n))
    kothapalli_sum:   Time (n) = α · arithmetic time (n) + memory time (n)
    kothapalli_max:   as zhang_owens, but everything inside the SM counts as arithmetic, shared memory too

Zhang and Owens, "A quantitative performance analysis model for GPU architectures" (HPCA 2011), as Volkov reduces it,
§4.11 and §7.3: the slowest of instruction pipeline, shared memory and global memory. The original takes these times
from microbenchmarks at the same occupancy; here λ and Λ give them, as in §4.11.

Kothapalli, Mukherjee, Rehman, Patidar, Narayanan and Srinathan, "A performance prediction model for the CUDA GPGPU
platform" (HiPC 2009), as Volkov states it, §4.12. The original has no occupancy; its own equations are neither in the
thesis nor here. On a kernel without shared memory its maximum is the same as `zhang_owens`.

Assumed: components overlap fully, or not at all where they are added. Left out: that a warp executes one instruction at
a time (what Volkov criticises), the barrier-by-barrier procedure of Zhang and Owens, whose equations are not in the
thesis.
"""

from __future__ import annotations

from collections.abc import Callable

from ..workload.cost import TICKS_PER_CYCLE, CostedNode, CostedWorkload
from .base import NotApplicable
from .cycles_per_run import Run, Runs, run_model
from .inputs_parts import kind_of, scoped, weighed
from .throughput import path_weights


def instruction_time(latency: float, lambda_: float, occupancy: float) -> float:
    """max(Λ / n, λ): cycles per instruction of one type, executed alone by n warps."""
    return max(latency / occupancy, lambda_)


def component_times(workload: CostedWorkload, occupancy: float) -> dict[str, float]:
    """Cycles per warp of the ``instructions``, ``shared`` and ``memory`` of a mean warp, each type alone.

    A memory instruction's λ is that of its slowest level; no type issues faster than the issue limit.
    Barriers count with λ and Λ among the instructions.
    """
    times = {"instructions": 0.0, "shared": 0.0, "memory": 0.0}
    for component, count, latency, lambda_ in workload.once("components", lambda: _components(workload)):
        times[component] += count * instruction_time(latency, lambda_, occupancy)
    return {name: time for name, time in times.items() if time}


def _components(workload: CostedWorkload) -> list[tuple[str, float, float, float]]:
    """For every node: its component, how often a mean warp runs it, and Λ and λ in cycles at any occupancy."""
    issue = workload.issue_ticks / TICKS_PER_CYCLE / workload.partitions
    found = []
    for node, count in weighed(workload, path_weights(workload)):
        kind = kind_of(workload, node)
        component = kind if kind in ("shared", "memory") else "instructions"
        found.append(
            (component, count, node.latency_ticks / TICKS_PER_CYCLE, max(issue * node.issues, _lambda(workload, node)))
        )
    return found


def _lambda(workload: CostedWorkload, node: CostedNode) -> float:
    levels = (level.lambda_ticks / TICKS_PER_CYCLE for level in node.levels)
    return max(scoped(workload, node, node.lambda_ticks), *levels, 0.0)


def adds_per_cycle(alpha: float, alu: float, mem: float) -> float:
    """Throughput = min(alu (n), α · mem (n)), §7.3: of throughputs in operations per cycle and SM."""
    return min(alu, alpha * mem)


def time_added(alpha: float, arithmetic_time: float, memory_time: float) -> float:
    """Time (n) = α · arithmetic time (n) + memory time (n), §4.12."""
    return alpha * arithmetic_time + memory_time


def _check(workload: CostedWorkload) -> None:
    if not component_times(workload, 1):
        raise NotApplicable("no instruction of this kernel takes any time")


@run_model("zhang_owens", "slowest of instructions, shared and global memory, each taken alone (Zhang and Owens 2011)")
def zhang_owens(workload: CostedWorkload) -> Runs:
    """The slowest component, each executed alone."""
    _check(workload)

    def run_of(occupancy: int) -> Run:
        times = component_times(workload, occupancy)
        slowest = max(times, key=lambda name: times[name])
        return Run(occupancy * times[slowest], "memory" if slowest == "memory" else "computation")

    return Runs(run_of)


def _merged(workload: CostedWorkload, merge: Callable[[float, float], float]) -> Runs:
    _check(workload)

    def run_of(occupancy: int) -> Run:
        times = component_times(workload, occupancy)
        memory = times.pop("memory", 0.0)
        arithmetic = sum(times.values())
        return Run(occupancy * merge(arithmetic, memory), "memory" if memory > arithmetic else "computation")

    return Runs(run_of)


@run_model(
    "kothapalli_sum",
    "sum of the arithmetic and memory times, each taken alone (Kothapalli et al. 2009, via Volkov 4.12)",
)
def kothapalli_sum(workload: CostedWorkload) -> Runs:
    """Arithmetic and memory times added."""
    return _merged(workload, lambda arithmetic, memory: time_added(1, arithmetic, memory))


@run_model(
    "kothapalli_max",
    "the longer of arithmetic and memory times, each taken alone (Kothapalli et al. 2009, via Volkov 4.12)",
)
def kothapalli_max(workload: CostedWorkload) -> Runs:
    """The longer of arithmetic and memory times."""
    return _merged(workload, max)
