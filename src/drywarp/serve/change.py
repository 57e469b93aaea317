"""λ and Λ of a bound workload multiplied: what a slider does.

λ goes by subsystem, in the issue of instructions and in the visits that memory transactions pay to L2 and DRAM;
``issue`` is the issue limit of a partition. Λ goes by groups, named after the stall reason of who waits for the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..advice.setting import change_nodes
from ..bound import TICKS_PER_CYCLE, BoundNode, BoundWorkload
from ..errors import UsageError
from ..pipeline.reasons import dependent_reason

ISSUE = "issue"
BARRIER, FIXED = "barrier", "wait"


def group_of(node: BoundNode) -> str:
    """The stall reason of an instruction that waits for this one's result."""
    return BARRIER if node.barrier or node.sync else dependent_reason(node.class_, bool(node.levels))


def lambdas(bound: BoundWorkload) -> dict[str, float]:
    """Busy subsystems with the mean λ of what issues there or visits them, in cycles, over one warp of each path."""
    times: dict[str, float] = {}
    counts: dict[str, float] = {}

    def add(name: str, ticks: float, count: float) -> None:
        if ticks > 0:
            times[name] = times.get(name, 0.0) + ticks * count
            counts[name] = counts.get(name, 0.0) + count

    for path in bound.paths:
        for node, count in zip(path.nodes, path.counts(), strict=True):
            add(bound.subsystems[node.subsystem].name, node.lambda_ticks, count)
            for level in node.levels:
                add(bound.subsystems[level.subsystem].name, level.lambda_ticks, count)
            if bound.issue_ticks:
                add(ISSUE, bound.issue_ticks, count)
    return {name: times[name] / counts[name] / TICKS_PER_CYCLE for name in times if counts[name]}


def latencies(bound: BoundWorkload) -> dict[str, float]:
    """Groups with the mean Λ of their instructions, in cycles; of fixed latencies the distance that the code keeps."""
    times: dict[str, float] = {}
    counts: dict[str, float] = {}
    for path in bound.paths:
        for node, count in zip(path.nodes, path.counts(), strict=True):
            group = group_of(node)
            ticks = node.stall_ticks if group == FIXED else node.latency_ticks
            # A store's Λ is waited for by nobody.
            if ticks > 0 and count and (group in (FIXED, BARRIER) or node.sets >= 0):
                times[group] = times.get(group, 0.0) + ticks * count
                counts[group] = counts.get(group, 0.0) + count
    return {group: times[group] / counts[group] / TICKS_PER_CYCLE for group in times}


def scaled(
    bound: BoundWorkload, lambda_factors: Mapping[str, float], latency_factors: Mapping[str, float]
) -> BoundWorkload:
    """The workload with λ and Λ multiplied, in whole ticks. Raises UsageError for a name that it has not."""
    _known(lambda_factors, lambdas(bound), "lambda")
    _known(latency_factors, latencies(bound), "latency")
    by_subsystem = [lambda_factors.get(subsystem.name, 1.0) for subsystem in bound.subsystems]
    # Instructions of one warp are a slot apart at least, whatever the code says.
    slot = bound.issue_ticks or TICKS_PER_CYCLE

    def change(node: BoundNode) -> BoundNode:
        group = group_of(node)
        later = latency_factors.get(group, 1.0)
        stall = node.stall_ticks
        if group == FIXED and later != 1.0:
            stall = stall if stall <= slot else max(slot, _ticks(stall, later))
        return replace(
            node,
            lambda_ticks=_ticks(node.lambda_ticks, by_subsystem[node.subsystem]),
            latency_ticks=_ticks(node.latency_ticks, later),
            stall_ticks=stall,
            levels=tuple(
                replace(
                    level,
                    lambda_ticks=_ticks(level.lambda_ticks, by_subsystem[level.subsystem]),
                    tail_ticks=_ticks(level.tail_ticks, by_subsystem[level.subsystem]),
                )
                for level in node.levels
            ),
        )

    issue = _ticks(bound.issue_ticks, lambda_factors.get(ISSUE, 1.0))
    return replace(change_nodes(bound, change), issue_ticks=issue)


def _ticks(ticks: int, factor: float) -> int:
    """Multiplied and rounded; what takes time goes on to take a tick at least."""
    return ticks if factor == 1.0 or ticks <= 0 else max(1, round(ticks * factor))


def _known(factors: Mapping[str, float], known: Mapping[str, float], what: str) -> None:
    for name in factors:
        if name not in known:
            raise UsageError(f"{what}: this kernel has no {name[:40]!r}; expected {', '.join(known) or 'none'}")
