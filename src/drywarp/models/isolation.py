"""Times of instruction types that are each taken to run alone on the SM.

Volkov, "Understanding latency hiding on GPUs" (2016), §4.11: arithmetic time (n) = max(alu_lat / n, 1 / alu_thru),
memory time (n) = max(mem_lat / n, 1 / mem_thru), cycles per instruction of one SM with n warps of nothing else.
Shared by `zhang_owens` and `kothapalli`, which merge such times in their own ways.
"""

from __future__ import annotations

from ..bound import TICKS_PER_CYCLE, BoundNode, BoundWorkload
from .inputs_parts import kind_of, scoped, weighed
from .throughput import path_weights


def instruction_time(latency: float, lambda_: float, occupancy: float) -> float:
    """max(Λ / n, λ): cycles per instruction of one type, executed alone by n warps."""
    return max(latency / occupancy, lambda_)


def component_times(workload: BoundWorkload, occupancy: float) -> dict[str, float]:
    """Cycles per warp of the ``instructions``, ``shared`` and ``memory`` of a mean warp, each type alone.

    A memory instruction's λ is that of its slowest level; no type issues faster than the issue limit.
    Barriers count with λ and Λ among the instructions.
    """
    times = {"instructions": 0.0, "shared": 0.0, "memory": 0.0}
    for component, count, latency, lambda_ in workload.once("components", lambda: _components(workload)):
        times[component] += count * instruction_time(latency, lambda_, occupancy)
    return {name: time for name, time in times.items() if time}


def _components(workload: BoundWorkload) -> list[tuple[str, float, float, float]]:
    """Of every node its component, how often a mean warp runs it, and Λ and λ in cycles, at whatever occupancy."""
    issue = workload.issue_ticks / TICKS_PER_CYCLE / workload.partitions
    found = []
    for node, count in weighed(workload, path_weights(workload)):
        kind = kind_of(workload, node)
        component = kind if kind in ("shared", "memory") else "instructions"
        found.append((component, count, node.latency_ticks / TICKS_PER_CYCLE, max(issue, _lambda(workload, node))))
    return found


def _lambda(workload: BoundWorkload, node: BoundNode) -> float:
    levels = (level.lambda_ticks / TICKS_PER_CYCLE for level in node.levels)
    return max(scoped(workload, node, node.lambda_ticks), *levels, 0.0)
