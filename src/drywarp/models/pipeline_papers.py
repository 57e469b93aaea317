"""The Pipeline model as the papers run it: the SM as one, one issue valve, loose round robin.

Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs", §4.2: the issue limit
IL of Table 4 is a common valve, which the GPU files of `papers/*` give. On a GPU with p partitions the valve lets p
times one partition's through, and λ of a subsystem that each partition has counts 1/p. Units: cycles of one SM. Left
out: that a warp belongs to one partition. Whether a warp issues in program order still depends on the workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..workload.cost import CostedNode, CostedWorkload, Level
from .base import Prediction, register
from .pipeline import Pipeline

POLICY = "loose_round_robin"


def as_one(workload: CostedWorkload) -> CostedWorkload:
    """The workload on an unpartitioned SM with the same throughputs."""
    share = workload.partitions
    if share == 1:
        return replace(workload, policy=POLICY)
    inside = [subsystem.scope == "partition" for subsystem in workload.subsystems]

    def level(one: Level) -> Level:
        if not inside[one.subsystem]:
            return one
        return replace(one, lambda_ticks=_part(one.lambda_ticks, share), tail_ticks=_part(one.tail_ticks, share))

    def node(one: CostedNode) -> CostedNode:
        own = _part(one.lambda_ticks, share) if inside[one.subsystem] else one.lambda_ticks
        levels = tuple(level(item) for item in one.levels)
        return replace(one, lambda_ticks=own, levels=levels, held_ticks=_part(one.held_ticks, share))

    return replace(
        workload,
        paths=tuple(replace(path, nodes=tuple(node(one) for one in path.nodes)) for path in workload.paths),
        subsystems=tuple(
            replace(one, scope="sm", outstanding=one.outstanding * (share if one.scope == "partition" else 1))
            for one in workload.subsystems
        ),
        partitions=1,
        issue_ticks=_part(workload.issue_ticks, share),
        policy=POLICY,
    )


def _part(ticks: int, share: int) -> int:
    """A λ divided, rounded up: never faster than the machine."""
    return -(-ticks // share)


@register("pipeline_papers")
class PipelinePapers(Pipeline):
    """Simulates the launch on an unpartitioned SM."""

    name = "pipeline_papers"
    summary = "the simulation with one partition, one issue valve and loose round robin (Lemeire et al.)"

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        return super().predict(as_one(workload), occupancies)
