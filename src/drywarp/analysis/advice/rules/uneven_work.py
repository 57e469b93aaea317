"""Work that is spread unevenly: over waves of blocks, and over the partitions of an SM."""

from __future__ import annotations

from dataclasses import replace

from ....workload.cost import CostedNode, CostedWorkload
from ..case import Case, Setting, change_nodes
from ..whatif import WhatIf
from .base import Suspicion, can_be_hidden, rule

# A grid that finishes on all SMs at once, without a partial last wave.
#
# At least one whole wave is simulated, with all SMs active, and the time is scaled to the average number of blocks
# per SM. Where the grid is less than one wave, this is the same work split into enough blocks to fill the GPU.


def even_grid() -> WhatIf:
    """The same blocks, spread evenly over the SMs in whole waves."""

    def apply(setting: Setting) -> Setting | None:
        costed = setting.costed
        each, rest = divmod(costed.blocks, costed.sm_count)
        if costed.runs or (rest == 0 and each % costed.blocks_per_sm == 0):
            return None
        wave = costed.blocks_per_sm * costed.sm_count
        waves = -(-costed.blocks // wave)

        def change(workload: CostedWorkload) -> CostedWorkload:
            return replace(workload, runs=waves)

        return replace(setting.then(change), part=setting.part * costed.blocks / (waves * wave))

    return WhatIf("no tail of the grid", "launch", apply)


_LEAST_LOSS = 1.03
_SHARED = ("l2", "l3", "dram", "host", "atomics")


@rule("tail-effect")
def tail_effect(case: Case) -> Suspicion | None:
    """The grid's waves, compared with whole waves."""
    costed = case.setting.costed
    if costed.runs:
        return None
    waves = costed.blocks / (costed.sm_count * costed.blocks_per_sm)
    loads = -(-costed.blocks // costed.sm_count) * costed.sm_count / costed.blocks
    # The busiest unit needs its time for an average SM's share in any case.
    busiest = max(case.prediction.utilization.values(), default=0.0)
    most = loads / busiest if busiest else float("inf")
    # Balancing the SMs does not speed up what they share.
    shared = max((case.prediction.utilization.get(name, 0.0) for name in _SHARED), default=0.0)
    most = min(most, 1 / shared) if shared else most
    if min(most, max(loads, -(-waves // 1) / waves)) < _LEAST_LOSS:
        return None
    return Suspicion(
        even_grid(),
        (),
        f"{costed.blocks} blocks are {waves:.2f} waves of {costed.sm_count * costed.blocks_per_sm}",
        "use smaller blocks or less work in each, or a grid of whole waves with a grid-stride loop"
        if waves >= 1
        else "split the work into more blocks, along another dimension as well if necessary",
        1 - waves / -(-waves // 1),
    )


# Warps spread evenly over the partitions of an SM at all times.
#
# One partition with the combined rates: any ready warp can issue, as if it could choose its scheduler.


def balanced_partitions() -> WhatIf:
    """Merge all partitions into one with their combined rate."""

    def merge(costed: CostedWorkload) -> CostedWorkload:
        several = costed.partitions
        inside = {n for n, subsystem in enumerate(costed.subsystems) if subsystem.scope == "partition"}

        def change(node: CostedNode) -> CostedNode:
            even, odd = (round(ticks / several) for ticks in node.register_ticks)
            own = round(node.lambda_ticks / several) if node.subsystem in inside else node.lambda_ticks
            held = round(node.held_ticks / several)
            return replace(node, lambda_ticks=own, register_ticks=(even, odd), held_ticks=held)

        merged = replace(costed, partitions=1, issue_ticks=round(costed.issue_ticks / several))
        return change_nodes(merged, change)

    def apply(setting: Setting) -> Setting | None:
        return setting.then(merge) if setting.costed.partitions > 1 else None

    return WhatIf("warps spread evenly over the schedulers", "code", apply)


_LEAST_IMBALANCE = 0.05


@rule("scheduler-imbalance")
def scheduler_imbalance(case: Case) -> Suspicion | None:
    """Instructions by partition for the resident warps, where they are uneven enough."""
    costed = case.setting.costed
    uneven = imbalance(costed)
    if uneven < _LEAST_IMBALANCE or not can_be_hidden(case):
        return None
    return Suspicion(
        balanced_partitions(),
        (),
        f"the average scheduler has {uneven:.0%} fewer instructions than the busiest, with {costed.warps_per_sm} "
        "warps per SM",
        "give all warps of a block the same work, in blocks of a multiple of four warps",
        uneven,
    )


def imbalance(costed: CostedWorkload) -> float:
    """How far the average partition's instructions are below the busiest one's, 0..1, with all block slots filled."""
    total = sum(kind.weight for kind in costed.block_types)
    resident = min(costed.blocks_per_sm, -(-costed.blocks // costed.sm_count))
    load = [0.0] * costed.partitions
    for kind in costed.block_types:
        for warp in range(resident * len(kind.paths)):
            length = costed.paths[kind.paths[warp % len(kind.paths)]].length
            load[warp % costed.partitions] += kind.weight / total * length
    return 1 - sum(load) / len(load) / max(load) if max(load) else 0.0
