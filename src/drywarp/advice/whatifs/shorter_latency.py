"""Twice as much in flight at once: by Little's law that is as if each wait were half as long.

A thread with two independent loads (or two chains of arithmetic) where it had one waits once for both; that the
same work takes half of the waits is simulated as half of Λ each.
"""

from __future__ import annotations

from dataclasses import replace

from ...bound import BoundNode, to_ticks
from ...pipeline.reasons import dependent_reason
from ..setting import Setting, change_nodes
from .base import WhatIf

TWICE = 2


def more_loads_in_flight() -> WhatIf:
    """Λ of accesses to memory beyond the SM's shared memory, halved."""

    def change(node: BoundNode) -> BoundNode:
        waited = dependent_reason(node.class_, bool(node.levels)) == "long_scoreboard" and node.sets >= 0
        return replace(node, latency_ticks=node.latency_ticks // TWICE) if waited else node

    def apply(setting: Setting) -> Setting | None:
        return setting.then(lambda bound: change_nodes(bound, change))

    return WhatIf("twice the loads in flight", "code", apply)


def more_independent_instructions() -> WhatIf:
    """All other Λ halved, and stall counts down to one issue slot at least."""

    def apply(setting: Setting) -> Setting | None:
        slot = to_ticks(setting.gpu.scheduler.slot_cycles)

        def change(node: BoundNode) -> BoundNode:
            stall = min(node.stall_ticks, max(slot, node.stall_ticks // TWICE))
            if dependent_reason(node.class_, bool(node.levels)) == "long_scoreboard" or node.barrier or node.sync:
                return replace(node, stall_ticks=stall)
            return replace(node, stall_ticks=stall, latency_ticks=node.latency_ticks // TWICE)

        return setting.then(lambda bound: change_nodes(bound, change))

    return WhatIf("twice the independent arithmetic", "code", apply)
