"""Instructions that are not there, or that cost a part of what they do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ...bound import BoundNode, Item, Repeat
from ...workload import Path
from ..setting import Setting, change_nodes
from .base import WhatIf


def dropped(instructions: Collection[int], name: str) -> WhatIf:
    """Without these instructions: what waited for their results does not."""

    def apply(setting: Setting) -> Setting | None:
        paths = tuple(_without(path, instructions) for path in setting.workload.paths)
        if paths == setting.workload.paths:
            return None
        return replace(setting, workload=replace(setting.workload, paths=paths))

    return WhatIf(name, "code", apply)


def _without(path: Path, instructions: Collection[int]) -> Path:
    gone = {n for n, node in enumerate(path.nodes) if node.instruction in instructions and not node.sync}
    return replace(path, program=_kept(path.program, gone)) if gone else path


def _kept(program: tuple[Item, ...], gone: Collection[int]) -> tuple[Item, ...]:
    items: list[Item] = []
    for item in program:
        if isinstance(item, Repeat):
            if body := _kept(item.body, gone):
                items.append(Repeat(item.count, body))
        elif item not in gone:
            items.append(item)
    return tuple(items)


def lighter(instructions: Collection[int], share: float, name: str) -> WhatIf:
    """These instructions take only a share of their time in each subsystem: as if that many were enough."""

    def change(node: BoundNode) -> BoundNode:
        if node.instruction not in instructions:
            return node
        levels = tuple(
            replace(level, lambda_ticks=round(level.lambda_ticks * share), tail_ticks=round(level.tail_ticks * share))
            for level in node.levels
        )
        return replace(node, lambda_ticks=round(node.lambda_ticks * share), levels=levels)

    def apply(setting: Setting) -> Setting | None:
        present = any(node.instruction in instructions for path in setting.bound.paths for node in path.nodes)
        return setting.then(lambda bound: change_nodes(bound, change)) if present else None

    return WhatIf(name, "code", apply)
