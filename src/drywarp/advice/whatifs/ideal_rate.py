"""A subsystem, or the issue limit, that takes no time: λ = 0. What waits for it still waits Λ."""

from __future__ import annotations

from dataclasses import replace

from ...bound import BoundNode, BoundWorkload
from ...models.throughput import ISSUE
from ..setting import Setting, change_nodes
from .base import WhatIf


def ideal_rate(name: str) -> WhatIf:
    """λ = 0 for one subsystem by its name, or for ``issue``."""

    def apply(setting: Setting) -> Setting | None:
        return setting.then(lambda bound: without_lambda(bound, name)) if used(setting.bound, name) else None

    return WhatIf(f"λ of {name} = 0", "ideal", apply)


def used(bound: BoundWorkload, name: str) -> bool:
    """Whether anything takes time of the subsystem."""
    if name == ISSUE:
        return bound.issue_ticks > 0
    number = [subsystem.name for subsystem in bound.subsystems].index(name)
    return any(
        (node.subsystem == number and node.lambda_ticks > 0) or any(level.subsystem == number for level in node.levels)
        for path in bound.paths
        for node in path.nodes
    )


def without_lambda(bound: BoundWorkload, name: str) -> BoundWorkload:
    """The workload where nothing takes time of the subsystem."""
    if name == ISSUE:
        return replace(bound, issue_ticks=0)
    number = [subsystem.name for subsystem in bound.subsystems].index(name)

    def change(node: BoundNode) -> BoundNode:
        levels = tuple(
            replace(level, lambda_ticks=0, tail_ticks=0) if level.subsystem == number else level
            for level in node.levels
        )
        if node.subsystem != number:
            return replace(node, levels=levels)
        # Operands are read while the instruction goes through the pipe, where nothing else is known.
        read = 0 if node.read_ticks == node.lambda_ticks else node.read_ticks
        return replace(node, levels=levels, lambda_ticks=0, read_ticks=read)

    return change_nodes(bound, change)
