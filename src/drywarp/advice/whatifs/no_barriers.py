"""Barriers of the whole block that nobody waits at. Those among some warps (mbarriers, named ones) stay."""

from __future__ import annotations

from dataclasses import replace

from ...bound import BoundNode
from ..setting import Setting, change_nodes
from .base import WhatIf


def no_barriers() -> WhatIf:
    """A barrier is an instruction like any other, which no warp waits at."""

    def apply(setting: Setting) -> Setting | None:
        def change(node: BoundNode) -> BoundNode:
            return replace(node, barrier=False, lambda_ticks=0, latency_ticks=0) if node.barrier else node

        some = any(node.barrier for path in setting.bound.paths for node in path.nodes)
        return setting.then(lambda bound: change_nodes(bound, change)) if some else None

    return WhatIf("no waiting at barriers", "code", apply)
