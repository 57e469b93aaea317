"""Volkov's model: an occupancy roofline from a latency bound and a throughput bound.

Volkov, "Understanding latency hiding on GPUs" (2016), §3.5-3.8, and Lemeire, Cornelis and
Konstantinidis, "Analysis of the analytical performance models for GPUs", §2.2, Eqs. 2 and 3:

    WPC = min(ω / Λ_app, WPC_roof)

Λ_app, in cycles, is the time that a warp takes alone: each warp is scheduled on a machine of its own
(no issue limit, no queueing at memory levels; barriers still join the warps of a block), rounded up
to the longest warp of its block, averaged over the blocks, plus the time to replace a block (§3.7).
As in Eq. 2 a warp's own instructions keep their λ between each other where one subsystem takes both:
it is the latency that Volkov calls ILP latency. Left out: all interference between warps, the
gradual saturation of §6.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from ..pipeline.blocks import Share, share_of
from ..pipeline.extrapolate import LAUNCH_BUDGET, simulate
from ..pipeline.simulate import Program
from ..workload.cost import TICKS_PER_CYCLE, BlockType, CostedNode, CostedWorkload, Level
from .base import CurvePoint, Prediction, register
from .throughput import demand, resident_blocks, share_cycles, utilization_at


def wpc_volkov(occupancy: float, latency_app: float, roof: float) -> float:
    """WPC^volkov = min(WPC^roof, ω / Λ_app), Eq. 3."""
    return min(roof, occupancy / latency_app) if latency_app > 0 else roof


def latency_bound(workload: CostedWorkload, budget: int = LAUNCH_BUDGET) -> float:
    """Λ_app in cycles, the replacement of the block included."""
    return workload.once(("Λ_app", budget), lambda: _latency_bound(workload, budget))


def _latency_bound(workload: CostedWorkload, budget: int) -> float:
    total = sum(kind.weight for kind in workload.block_types)
    # Without barriers a warp is not affected by the others of its block: each path is scheduled once.
    joined = workload.synchronises or any(node.barrier for path in workload.paths for node in path.nodes)

    @cache
    def lone(paths: tuple[int, ...]) -> int:
        return _lone_ticks(workload, paths, budget)

    mean = 0.0
    for kind in workload.block_types:
        paths = tuple(sorted(set(kind.paths)))
        longest = lone(paths) if joined else max(lone((path,)) for path in paths)
        mean += kind.weight / total * longest
    return (mean + workload.launch_ticks) / TICKS_PER_CYCLE


def _lone_ticks(workload: CostedWorkload, paths: tuple[int, ...], budget: int) -> int:
    """Ticks until the last of a block's warps ends, each with its own partition and its own copy of all subsystems.

    Warps on the same path then do the same at the same time: one of each path represents all.
    """
    if workload.in_order and sum(workload.paths[path].length for path in paths) <= budget:
        # So few are simulated under any budget: no second attempt is needed.
        return workload.once(("alone", paths), lambda: lone_ticks_whole(workload, paths))
    return lone_ticks_within(workload, paths, budget)


def lone_ticks_within(workload: CostedWorkload, paths: tuple[int, ...], budget: int) -> int:
    """The ticks of a block's warps with everything to themselves, simulated within a budget."""
    # Only the paths that run: the simulation's tables grow with the number of paths.
    alone = _machines(workload, paths)
    shared = {id(node): node for path in alone.paths for node in path.nodes}
    bare = {key: _without_queues(node) for key, node in shared.items()}
    paths_alone = (replace(path, nodes=tuple(bare[id(node)] for node in path.nodes)) for path in alone.paths)
    alone = replace(alone, paths=tuple(paths_alone))
    return simulate(alone, Share(1, 1, 1), budget, stalls=False).total_ticks


def lone_ticks_whole(workload: CostedWorkload, paths: tuple[int, ...]) -> int:
    """The same if all of it is simulated, from tables that the workload already has."""
    alone = _machines(workload, paths)
    program = Program(workload).alone(alone, paths)
    return simulate(alone, Share(1, 1, 1), LAUNCH_BUDGET, stalls=False, program=program).total_ticks


def _machines(workload: CostedWorkload, paths: tuple[int, ...]) -> CostedWorkload:
    """One warp per path, and a machine per warp; visits to memory levels queue as before."""
    return replace(
        workload,
        paths=tuple(workload.paths[number] for number in paths),
        block_types=(BlockType(tuple(range(len(paths))), 1.0),),
        subsystems=tuple(replace(subsystem, scope="partition") for subsystem in workload.subsystems),
        partitions=len(paths),
        warps_per_block=len(paths),
        issue_ticks=0,
        launch_ticks=0,
    )


def _without_queues(node: CostedNode) -> CostedNode:
    if not (node.levels or node.held_ticks):
        return node
    return replace(node, levels=tuple(Level(level.subsystem, 0, 0) for level in node.levels), held_ticks=0)


def latency_cycles(workload: CostedWorkload, share: Share, latency_app: float) -> float:
    """Cycles of a share if latency were the only limit: whole waves of Λ_app, the last not replaced."""
    waves = -(-share.blocks // share.resident)
    return waves * latency_app - workload.launch_ticks / TICKS_PER_CYCLE


@register("volkov")
class Volkov:
    """Latency bound at low, throughput bound at high occupancy.

    The time of the grid is the longer of two: the throughput bound of the largest share (as in the Roofline), and as
    many waves of Λ_app as that share needs, at least one.
    """

    name = "volkov"
    summary = "occupancy roofline: latency of a lone warp or the busiest subsystem (Volkov 2016)"

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        needs = demand(workload)
        latency_app = latency_bound(workload)
        points = []
        for occupancy in occupancies:
            share = share_of(workload, resident_blocks(workload, occupancy))
            wpc = wpc_volkov(occupancy, latency_app, needs.warps_per_cycle)
            bound = "latency" if wpc < needs.warps_per_cycle else needs.bound
            cycles = max(latency_cycles(workload, share, latency_app), *share_cycles(workload, needs, share).values())
            points.append(CurvePoint(occupancy, wpc, workload.duration_s(cycles), bound, occupancy / wpc))
        share = share_of(workload, workload.blocks_per_sm)
        headroom = share_cycles(workload, needs, share)
        headroom["latency"] = latency_cycles(workload, share, latency_app)
        limiter = max(headroom, key=lambda name: headroom[name])
        cycles, warps = headroom[limiter], share.blocks * workload.warps_per_block
        return Prediction(
            model=self.name,
            cycles=cycles,
            time_s=workload.duration_s(cycles),
            limiter=limiter,
            curve=tuple(points),
            utilization=utilization_at(needs, warps / cycles if cycles else 0.0),
            headroom=headroom,
            notes=(f"Λ_app {latency_app:.6g} cycles",),
        )
