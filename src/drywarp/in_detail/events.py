"""Single issues of the launch: the execution profile of the analysis paper, with what each instruction waited for."""

from __future__ import annotations

import numpy as np

from ..bound import TICKS_PER_CYCLE, BoundWorkload
from ..detail import EventNode, Events, Lane
from ..pipeline.awaited import awaited
from ..pipeline.blocks import share_of
from ..pipeline.extrapolate import instructions
from ..pipeline.first_issues import first_issues
from ..pipeline.reasons import REASONS

MOST_EVENTS = 1_000_000
"""The most that are ever written down."""


def issue_events(bound: BoundWorkload, most: int) -> Events | None:
    """The first `most` issues of one SM's share of the grid, exactly as the launch simulates them; None for 0."""
    if most < 1:
        return None
    share = share_of(bound, bound.blocks_per_sm)
    profile = first_issues(bound, share, most)
    if not len(profile.table):
        return None
    kept = [bound.paths[path].nodes[node] for path, node in profile.paths_nodes]
    busy: dict[int, float] = {}
    for number, count in enumerate(np.bincount(profile.column("node"), minlength=len(kept)).tolist()):
        if count:
            node = kept[number]
            instances = bound.partitions if bound.subsystems[node.subsystem].scope == "partition" else 1
            busy[node.subsystem] = busy.get(node.subsystem, 0.0) + count * node.lambda_ticks / instances
    used = sorted(busy, key=lambda subsystem: (-busy[subsystem], subsystem))  # what is busy longest comes first
    lane_of = {subsystem: lane for lane, subsystem in enumerate(used)}
    lanes = [bound.subsystems[subsystem] for subsystem in used]
    return Events(
        issue=profile.column("issue"),
        completion=profile.column("completion"),
        warp=profile.column("warp"),
        block=profile.column("block"),
        node=profile.column("node"),
        reason=profile.column("reason"),
        awaited=awaited(bound, profile),
        nodes=tuple(EventNode(n.instruction, lane_of.get(n.subsystem, 0), n.lambda_ticks) for n in kept),
        lanes=tuple(Lane(s.name, bound.partitions if s.scope == "partition" else 1) for s in lanes),
        reasons=REASONS,
        partitions=bound.partitions,
        warps_per_block=bound.warps_per_block,
        ticks_per_cycle=TICKS_PER_CYCLE,
        total=max(len(profile.table), instructions(bound, share.blocks)),
    )
