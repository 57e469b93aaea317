"""Reductions whose threads process few elements each before the block combines them; clusters that leave SMs idle."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ....hardware import clusters_at_once
from ....workload.cost import CostedNode, CostedPath, CostedWorkload, Item, Level, Repeat
from ..case import Case, Setting
from ..whatif import WhatIf
from .base import Suspicion, rule

# Threads that process several times as many elements each, in correspondingly fewer blocks.
#
# The loads are issued that many times, back to back, before anything waits for them; the rest runs once. The few
# instructions that would combine the extra elements are not charged.


def coarser(loads: Collection[int], times: int) -> WhatIf:
    """Issue each of these loads `times` times, in blocks / times blocks."""

    def change(costed: CostedWorkload) -> CostedWorkload:
        paths = tuple(_repeated(path, loads, times) for path in costed.paths)
        return replace(costed, paths=paths, blocks=-(-costed.blocks // times))

    def apply(setting: Setting) -> Setting | None:
        return setting.then(change) if loads else None

    return WhatIf(f"{times} times the elements per thread", "code", apply)


def _repeated(path: CostedPath, loads: Collection[int], times: int) -> CostedPath:
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


_TIMES, _MOST_LOADS, _LEAST_RATIO = 4, 8.0, 4.0


@rule("idle-threads")
def idle_threads(case: Case) -> Suspicion | None:
    """The loads, where there are few per thread and their results are combined."""
    setting = case.setting
    loads = setting.indices("global_load")
    combining = setting.indices("barrier", "shuffle", "reduce")
    lanes = setting.profile.thread_instructions.sum(axis=0)
    stored = float(sum(lanes[index] for index in setting.indices("global_store", "global_atomic")))
    loaded = float(sum(lanes[index] for index in loads))
    launch = setting.workload.launch
    per_thread = loaded / (len(setting.profile.blocks) * launch.threads_per_block)
    few = 0 < per_thread <= _MOST_LOADS and loaded >= _LEAST_RATIO * stored
    waves = setting.costed.blocks / setting.costed.sm_count / setting.costed.blocks_per_sm
    if not few or not combining or waves < _TIMES or case.prediction.limiter != "latency":
        return None
    return Suspicion(
        coarser(frozenset(loads), _TIMES),
        setting.places([*case.costliest(loads), *case.costliest(combining)]),
        f"each thread loads {per_thread:.3g} elements and stores {stored / loaded:.2g} results per element",
        "let each thread combine several elements in registers first, in a loop over a smaller grid",
        1 - max(case.use("dram"), 1 / _TIMES),
    )


# Clusters of fewer blocks, which leave fewer SMs of a GPC idle.


def smaller_clusters(old: int, new: int, sms: int) -> WhatIf:
    """The same blocks on all SMs that clusters of `new` blocks fill.

    What a copy sends to several blocks then reaches fewer, so that L2 and DRAM are read that much more often.
    """

    def apply(setting: Setting) -> Setting | None:
        copies = {n for n, i in enumerate(setting.instructions) if "MULTICAST" in i.modifiers}

        def oftener(level: Level) -> Level:
            taken, tail = level.lambda_ticks * old // new, level.tail_ticks * old // new
            return replace(level, lambda_ticks=taken, tail_ticks=tail)

        def change(node: CostedNode) -> CostedNode:
            if node.instruction not in copies:
                return node
            return replace(node, levels=tuple(oftener(level) for level in node.levels))

        filled = replace(setting, gpu=setting.gpu.with_sms(sms))
        return filled.changed(change)

    return WhatIf(f"clusters of {new} blocks", "launch", apply)


@rule("cluster-size")
def cluster_size(case: Case) -> Suspicion | None:
    """The largest smaller cluster of those that fill most SMs, if the grid has blocks for them."""
    setting, device = case.setting, case.setting.gpu.device
    old, each = setting.workload.launch.cluster_blocks, setting.fits.blocks_per_sm
    if old == 1 or not device.gpc_sms or setting.costed.runs:
        return None

    def filled(blocks: int) -> int:
        return max(1, clusters_at_once(device.gpc_sms or (), each, blocks) * blocks // each)

    smaller = [blocks for blocks in range(old // 2, 0, -1) if old % blocks == 0]
    new = max(smaller, key=filled)
    wanted = min(filled(new), -(-setting.costed.blocks // each))
    if device.sm_count != filled(old) or wanted <= device.sm_count:
        return None
    return Suspicion(
        smaller_clusters(old, new, filled(new)),
        (),
        f"clusters of {old} blocks fill {device.sm_count} of {sum(device.gpc_sms)} SMs, of {new} would fill"
        f" {filled(new)}",
        f"use clusters of {new} blocks" if new > 1 else "use no clusters, or smaller blocks",
        1 - device.sm_count / wanted,
    )
