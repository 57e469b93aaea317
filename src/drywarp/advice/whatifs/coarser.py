"""Threads that take several times the elements each, in so many times fewer blocks.

The loads are issued that many times, one after the other, before anything waits for them; what follows happens once.
The few instructions that would combine the further elements are left out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ...bound import BoundPath, BoundWorkload, Item, Repeat
from ..setting import Setting
from .base import WhatIf


def coarser(loads: Collection[int], times: int) -> WhatIf:
    """Each of these loads `times` times, in blocks / times blocks."""

    def change(bound: BoundWorkload) -> BoundWorkload:
        paths = tuple(_repeated(path, loads, times) for path in bound.paths)
        return replace(bound, paths=paths, blocks=-(-bound.blocks // times))

    def apply(setting: Setting) -> Setting | None:
        return setting.then(change) if loads else None

    return WhatIf(f"{times} times the elements per thread", "code", apply)


def _repeated(path: BoundPath, loads: Collection[int], times: int) -> BoundPath:
    again = {n for n, node in enumerate(path.nodes) if node.instruction in loads}
    return replace(path, program=_program(path.program, again, times))


def _program(program: tuple[Item, ...], again: Collection[int], times: int) -> tuple[Item, ...]:
    items: list[Item] = []
    for item in program:
        if isinstance(item, Repeat):
            items.append(Repeat(item.count, _program(item.body, again, times)))
        else:
            items.extend([item] * (times if item in again else 1))
    return tuple(items)
