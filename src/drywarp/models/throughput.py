"""Sums per subsystem: the demand of one warp, or of one SM's share of the grid, on each.

Shared by the models that bound a kernel's rate by its busiest subsystem. Units are SM cycles. A subsystem that each of
p partitions has counts 1/p: the warps are distributed evenly over the partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UsageError
from ..pipeline.blocks import Share
from ..workload.cost import TICKS_PER_CYCLE, CostedNode, CostedPath, CostedWorkload

ISSUE = "issue"
"""The issue limit's name among the subsystems."""

LAUNCH = "launch"
"""The name of the limit on how soon one block can start after another."""


@dataclass(frozen=True)
class Demand:
    """Cycles that one mean warp keeps each subsystem of an SM busy, Σλ; ``issue`` is the valve.

    Of a dual-issued pair the valve sees one instruction, a reissued one several times (Volkov 2016, §3.6).

    `tail` is the same while only the SMs of the partial last wave are active.
    """

    cycles: dict[str, float]
    tail: dict[str, float]
    instructions: float

    @property
    def bound(self) -> str:
        """The subsystem with the highest demand, the first if several."""
        return max(self.cycles, key=lambda name: self.cycles[name], default=ISSUE)

    @property
    def warps_per_cycle(self) -> float:
        """The roof: WPC that the busiest subsystem allows (infinite if nothing costs anything)."""
        longest = max(self.cycles.values(), default=0.0)
        return 1.0 / longest if longest > 0 else float("inf")


def path_weights(workload: CostedWorkload) -> list[float]:
    """Mean share of the grid's warps that follow each path; the shares sum to 1."""
    total = sum(kind.weight for kind in workload.block_types)
    if total <= 0:
        raise UsageError("the weights of the block types must add up to more than zero")
    weights = [0.0] * len(workload.paths)
    for kind in workload.block_types:
        for path in kind.paths:
            weights[path] += kind.weight / total / len(kind.paths)
    return weights


def node_counts(path: CostedPath) -> list[tuple[CostedNode, int]]:
    """Each node of the path with how often one warp runs it."""
    return [(node, count) for node, count in zip(path.nodes, path.counts(), strict=True) if count]


def demand(workload: CostedWorkload) -> Demand:
    """Σλ per subsystem and warp: Volkov's throughput CPIs added up (§3.6, Table 3.4)."""
    return workload.once("demand", lambda: _demand(workload))


def _demand(workload: CostedWorkload) -> Demand:
    size = len(workload.subsystems)
    busy, tail, held = [0.0] * size, [0.0] * size, [0.0] * size
    instructions = events = 0.0
    for path, weight in zip(workload.paths, path_weights(workload), strict=True):
        if weight == 0.0:
            continue
        for node, count in node_counts(path):
            times = weight * count
            instructions += times
            events += times * node.issues
            busy[node.subsystem] += times * node.lambda_ticks
            tail[node.subsystem] += times * node.lambda_ticks
            held[node.subsystem] += times * max(node.latency_ticks, node.lambda_ticks)
            for level in node.levels:
                busy[level.subsystem] += times * level.lambda_ticks
                tail[level.subsystem] += times * level.tail_ticks
    issue = events * workload.issue_ticks
    return Demand(_per_sm(workload, busy, held, issue), _per_sm(workload, tail, held, issue), instructions)


def _per_sm(workload: CostedWorkload, busy: Sequence[float], held: Sequence[float], issue: float) -> dict[str, float]:
    cycles: dict[str, float] = {}
    for subsystem, ticks, places in zip(workload.subsystems, busy, held, strict=True):
        instances = workload.partitions if subsystem.scope == "partition" else 1
        if subsystem.outstanding:  # Little's law: each instruction occupies a place for Λ
            ticks = max(ticks, places / subsystem.outstanding)
        cycles[subsystem.name] = ticks / instances / TICKS_PER_CYCLE
    if workload.issue_ticks:
        cycles[ISSUE] = issue / workload.partitions / TICKS_PER_CYCLE
    return cycles


def share_cycles(workload: CostedWorkload, needs: Demand, share: Share) -> dict[str, float]:
    """Cycles that each subsystem is busy with one SM's share of the grid.

    The full part runs while all SMs are active; the remainder belongs to the partial last wave.
    """
    full = share.full * workload.warps_per_block
    rest = (share.blocks - share.full) * workload.warps_per_block
    return {name: full * cost + rest * needs.tail[name] for name, cost in needs.cycles.items()}


def utilization_at(needs: Demand, warps_per_cycle: float) -> dict[str, float]:
    """The fraction of the time that each subsystem is busy at a given WPC."""
    return {name: min(1.0, cost * warps_per_cycle) for name, cost in needs.cycles.items()}


def resident_blocks(workload: CostedWorkload, occupancy_warps: int) -> int:
    """Blocks per SM at an occupancy in warps. Raises UsageError unless it is a whole number of blocks."""
    blocks, rest = divmod(occupancy_warps, workload.warps_per_block)
    if blocks < 1 or rest:
        raise UsageError(
            f"an occupancy of {occupancy_warps} warps is not a whole number of blocks of"
            f" {workload.warps_per_block} warps"
        )
    return blocks
