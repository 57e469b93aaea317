"""Every second barrier of the whole block left out, counted along each warp's path: what two buffers save.

All warps of a block pass the same barriers, so that the same ones stay for each, however its path was folded into
loops. Where a loop has an odd number of barriers a turn, two turns are taken together.
"""

from __future__ import annotations

from dataclasses import replace

from ...bound import BoundPath, BoundWorkload, Item, Repeat
from ..setting import Setting
from .base import WhatIf


def half_the_barriers() -> WhatIf:
    """The first, third, fifth … barrier of each warp stays."""

    def change(bound: BoundWorkload) -> BoundWorkload:
        return replace(bound, paths=tuple(_halved(path) for path in bound.paths))

    def apply(setting: Setting) -> Setting | None:
        some = any(node.barrier for path in setting.bound.paths for node in path.nodes)
        return setting.then(change) if some else None

    return WhatIf("half the barriers", "code", apply)


def _halved(path: BoundPath) -> BoundPath:
    barriers = {n for n, node in enumerate(path.nodes) if node.barrier}
    program, _ = _walk(path.program, barriers, False)
    return replace(path, program=program)


def _walk(program: tuple[Item, ...], barriers: set[int], drop: bool) -> tuple[tuple[Item, ...], bool]:
    """The program with every second barrier, beginning by dropping one if `drop`; whether the next one is to go."""
    items: list[Item] = []
    for item in program:
        if not isinstance(item, Repeat):
            if item not in barriers:
                items.append(item)
                continue
            if not drop:
                items.append(item)
            drop = not drop
            continue
        first, after = _walk(item.body, barriers, drop)
        if after == drop:  # an even number of barriers: every turn is alike
            if first:
                items.append(Repeat(item.count, first))
            continue
        second, _ = _walk(item.body, barriers, after)
        pairs, rest = divmod(item.count, 2)
        if pairs and (both := first + second):
            items.append(Repeat(pairs, both))
        if rest:
            items.extend(first)
            drop = after
    return tuple(items), drop
