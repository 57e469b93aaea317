"""Warps that wait for results with too little in flight, or at barriers; and issue slots spent on mere overhead."""

from __future__ import annotations

from dataclasses import replace

from ....kernel.isa.nvidia.opcodes import is_barrier
from ....workload.cost import CostedPath, CostedWorkload, Item, Repeat
from ..case import Case, Setting
from ..whatif import WhatIf, dropped, more_independent_instructions, more_loads_in_flight
from .base import Suspicion, can_be_hidden, dependent_on, rule

_LEAST_STALLS = 0.15
_MEMORY, _ARITHMETIC = ("long_scoreboard",), ("wait", "short_scoreboard")


@rule("latency-bound")
def latency_bound(case: Case) -> Suspicion | None:
    """Waits for memory or for arithmetic, whichever are longer, while no unit is saturated."""
    memory, arithmetic = case.stall_share(*_MEMORY), case.stall_share(*_ARITHMETIC)
    if max(memory, arithmetic) < _LEAST_STALLS or not can_be_hidden(case):
        return None
    at = f"at {case.setting.costed.warps_per_sm} warps per SM"
    if memory >= arithmetic:
        return Suspicion(
            more_loads_in_flight(),
            dependent_on(case, *_MEMORY),
            f"{memory:.0%} of warp time is spent waiting for memory, {at}",
            "issue several independent loads before the first use: unroll, prefetch, or more elements per thread",
            memory / 2,
        )
    return Suspicion(
        more_independent_instructions(),
        dependent_on(case, *_ARITHMETIC),
        f"{arithmetic:.0%} of warp time is spent waiting for arithmetic and shared memory, {at}",
        "use several independent accumulators or elements per thread, or raise the occupancy",
        arithmetic / 2,
    )


@rule("unrolling")
def unrolling(case: Case) -> Suspicion | None:
    """None: only `--advice` finds it, because the gain is unknown without compiling."""
    return None


OVERHEAD = (
    *("int", "imad", "imad_wide", "shift", "move", "predicate", "uniform", "special_register", "branch"),
    *("convergence", "constant_load", "convert_fast", "nop"),
)
"""Classes of instructions for addresses, counters, conditions and branches."""
_LEAST_USE, _LEAST_SHARE, _MOST_SHARE = 0.5, 0.3, 0.85


@rule("issue-bound")
def issue_bound(case: Case) -> Suspicion | None:
    """The instructions for indices, conditions and loops, most often issued first, where the issue slots are busy."""
    setting = case.setting
    use = case.use("issue")
    share = case.share_of(lambda instruction: instruction.class_ in OVERHEAD)
    if use < _LEAST_USE or not _LEAST_SHARE <= share <= _MOST_SHARE:
        return None
    found = setting.indices(*OVERHEAD)
    return Suspicion(
        dropped(frozenset(found[::2]), "half the instructions for indices and loops"),
        setting.places(sorted(found, key=lambda index: -setting.executions[index])),
        f"{use:.0%} of the issue slots are used, {share:.0%} of them for indices, conditions and loops",
        "unroll, process several elements per thread, and load or store 16 bytes per instruction",
        use * share / 2,
    )


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


_LEAST_AT_BARRIERS = 0.03


@rule("barrier-waits")
def barrier_waits(case: Case) -> Suspicion | None:
    """The barriers that warps wait at, longest waits first."""
    share = case.stall_share("barrier")
    if share < _LEAST_AT_BARRIERS or not can_be_hidden(case):
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
