"""Warps with unequal work that pile up in one partition."""

from __future__ import annotations

from dataclasses import replace

from ....workload.cost import CostedNode, CostedWorkload
from ..case import Case, Setting, change_nodes
from ..whatif import WhatIf
from .base import Documentation, Suspicion, can_be_hidden, register

# Warps spread evenly over the partitions of an SM at all times.
#
# One partition with the combined rates: any ready warp can issue, as if it could choose its scheduler.


def balanced_partitions() -> WhatIf:
    """Merge all partitions into one with their combined rate."""

    def merge(costed: CostedWorkload) -> CostedWorkload:
        several = costed.partitions
        inside = {n for n, subsystem in enumerate(costed.subsystems) if subsystem.scope == "partition"}

        def change(node: CostedNode) -> CostedNode:
            even, odd = (round(ticks / several) for ticks in node.register_ticks)
            own = round(node.lambda_ticks / several) if node.subsystem in inside else node.lambda_ticks
            return replace(node, lambda_ticks=own, register_ticks=(even, odd))

        merged = replace(costed, partitions=1, issue_ticks=round(costed.issue_ticks / several))
        return change_nodes(merged, change)

    def apply(setting: Setting) -> Setting | None:
        return setting.then(merge) if setting.costed.partitions > 1 else None

    return WhatIf("warps spread evenly over the schedulers", "code", apply)


_LEAST_IMBALANCE = 0.05


@register
class SchedulerImbalance:
    """Instructions by partition, for the resident warps."""

    name = "scheduler-imbalance"
    title = "some schedulers of an SM have more to issue than others"
    documentation = Documentation(
        what="Finds kernels whose resident warps load the four partitions of an SM unequally.",
        why="A warp stays in the partition where it starts: its number modulo four. If warp 0 of each block does "
        "more than the others, or the number of warps is not a multiple of four, one partition is busy while "
        "others idle.",
        evidence="Instructions of the average partition, compared with the busiest. The gain comes from simulating one "
        "partition with the combined rate of all, which any warp may use.",
        change="Give all warps of a block the same work, rotate the warp with the extra work from block to block, or "
        "make the warps per block a multiple of four.",
        before="if (threadIdx.x < 32) finish(block);             // always the same partition",
        after="if (threadIdx.x / 32 == blockIdx.x % 4) finish(block);",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The imbalance between partitions, where it is large enough."""
        costed = case.setting.costed
        uneven = imbalance(costed)
        if uneven < _LEAST_IMBALANCE or not can_be_hidden(case):
            return None
        return Suspicion(
            balanced_partitions(),
            (),
            f"the average scheduler has {uneven:.0%} fewer instructions than the busiest, with {costed.warps_per_sm} "
            "warps per SM",
            "give all warps of a block the same work, in blocks of a multiple of four warps",
            uneven,
        )


def imbalance(costed: CostedWorkload) -> float:
    """How far the average partition's instructions are below the busiest one's, 0..1, with all block slots filled."""
    total = sum(kind.weight for kind in costed.block_types)
    resident = min(costed.blocks_per_sm, -(-costed.blocks // costed.sm_count))
    load = [0.0] * costed.partitions
    for kind in costed.block_types:
        for warp in range(resident * len(kind.paths)):
            length = costed.paths[kind.paths[warp % len(kind.paths)]].length
            load[warp % costed.partitions] += kind.weight / total * length
    return 1 - sum(load) / len(load) / max(load) if max(load) else 0.0
