"""Warps that wait at barriers for the slowest warp of their block."""

from __future__ import annotations

from dataclasses import replace

from ....kernel.isa.nvidia.opcodes import is_barrier
from ....workload.cost import CostedPath, CostedWorkload, Item, Repeat
from ..case import Case, Setting
from ..whatif import WhatIf
from .base import Suspicion, can_be_hidden, register

# Every second block-wide barrier removed, counted along each warp's path: the saving of double buffering.
#
# All warps of a block pass the same barriers, so the same ones remain for every warp, however its path was folded
# into loops. Where a loop has an odd number of barriers per iteration, two iterations are merged into one.


def half_the_barriers() -> WhatIf:
    """Keep the first, third, fifth … barrier of each warp."""

    def change(costed: CostedWorkload) -> CostedWorkload:
        return replace(costed, paths=tuple(_halved(path) for path in costed.paths))

    def apply(setting: Setting) -> Setting | None:
        some = any(node.barrier for path in setting.costed.paths for node in path.nodes)
        return setting.then(change) if some else None

    return WhatIf("half the barriers", "code", apply)


def _halved(path: CostedPath) -> CostedPath:
    barriers = {n for n, node in enumerate(path.nodes) if node.barrier}
    program, _ = _walk(path.program, barriers, False)
    return replace(path, program=program)


def _walk(program: tuple[Item, ...], barriers: set[int], drop: bool) -> tuple[tuple[Item, ...], bool]:
    """The program with every second barrier (the first is dropped if `drop`), and whether to drop the next one."""
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
        if after == drop:  # an even number of barriers: every iteration is alike
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


_LEAST_STALLS = 0.03


@register
class BarrierWaits:
    """Time spent waiting at barriers."""

    name = "barrier-waits"

    def look(self, case: Case) -> Suspicion | None:
        """The barriers, longest waits first."""
        share = case.stall_share("barrier")
        if share < _LEAST_STALLS or not can_be_hidden(case):
            return None
        code = case.setting.instructions
        barriers = [n for n, ins in enumerate(code) if is_barrier(ins) and case.setting.executions[n]]
        # The simulation books the time under the instruction after the barrier.
        order = sorted(barriers, key=lambda n: -case.waiting(n + 1, "barrier") - case.waiting(n, "barrier"))
        return Suspicion(
            half_the_barriers(),
            case.setting.places(order),
            f"{share:.0%} of warp time is spent at barriers; the code has {len(barriers)}",
            "use fewer barriers (double buffering, __syncwarp), or smaller blocks so that other blocks fill the gap",
            share / 2,
        )
