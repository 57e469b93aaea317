"""Warps with unequal work that meet in one partition."""

from __future__ import annotations

from ...bound import BoundWorkload
from ..case import Case
from ..whatifs.balanced import balanced_partitions
from .base import Documentation, Suspicion, register
from .hiding import can_be_hidden

_LEAST_IMBALANCE = 0.05


@register
class SchedulerImbalance:
    """Instructions by partition, for the warps that are on the SM at once."""

    name = "scheduler-imbalance"
    title = "some schedulers of an SM have more to issue than others"
    documentation = Documentation(
        what="Finds kernels whose resident warps ask unequally much of the four partitions of an SM.",
        why="A warp stays in the partition that it starts in: its number modulo four. If warp 0 of each block "
        "does more than the others, or the warps are no multiple of four, one partition is busy while others "
        "idle.",
        evidence="Instructions of the mean partition under those of the busiest. The gain is that of simulating one "
        "partition as fast as all together, which any warp may use.",
        change="Give all warps of a block the same work, let the warp with the extra work change from block to "
        "block, or make the warps per block a multiple of four.",
        before="if (threadIdx.x < 32) finish(block);             // always the same partition",
        after="if (threadIdx.x / 32 == blockIdx.x % 4) finish(block);",
    )

    def look(self, case: Case) -> Suspicion | None:
        """How uneven the partitions are."""
        bound = case.setting.bound
        uneven = imbalance(bound)
        if uneven < _LEAST_IMBALANCE or not can_be_hidden(case):
            return None
        return Suspicion(
            balanced_partitions(),
            (),
            f"the mean scheduler has {uneven:.0%} fewer instructions than the busiest, of {bound.warps_per_sm} warps",
            "give all warps of a block the same work, in blocks of a multiple of four warps",
            uneven,
        )


def imbalance(bound: BoundWorkload) -> float:
    """By how much the mean partition has fewer instructions than the busiest, 0..1, where blocks fill their slots."""
    total = sum(kind.weight for kind in bound.block_types)
    resident = min(bound.blocks_per_sm, -(-bound.blocks // bound.sm_count))
    load = [0.0] * bound.partitions
    for kind in bound.block_types:
        for warp in range(resident * len(kind.paths)):
            length = bound.paths[kind.paths[warp % len(kind.paths)]].length
            load[warp % bound.partitions] += kind.weight / total * length
    return 1 - sum(load) / len(load) / max(load) if max(load) else 0.0
