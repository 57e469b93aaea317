"""Warps that are spread evenly over the partitions of an SM at every moment.

One partition with the rates of all: whatever warp is ready issues, as if it could choose its scheduler.
"""

from __future__ import annotations

from dataclasses import replace

from ...bound import BoundNode, BoundWorkload
from ..setting import Setting, change_nodes
from .base import WhatIf


def balanced_partitions() -> WhatIf:
    """All partitions as one that is as fast as they are together."""

    def merge(bound: BoundWorkload) -> BoundWorkload:
        several = bound.partitions
        inside = {n for n, subsystem in enumerate(bound.subsystems) if subsystem.scope == "partition"}

        def change(node: BoundNode) -> BoundNode:
            even, odd = (round(ticks / several) for ticks in node.register_ticks)
            own = round(node.lambda_ticks / several) if node.subsystem in inside else node.lambda_ticks
            return replace(node, lambda_ticks=own, register_ticks=(even, odd))

        merged = replace(bound, partitions=1, issue_ticks=round(bound.issue_ticks / several))
        return change_nodes(merged, change)

    def apply(setting: Setting) -> Setting | None:
        return setting.then(merge) if setting.bound.partitions > 1 else None

    return WhatIf("warps spread evenly over the schedulers", "code", apply)
