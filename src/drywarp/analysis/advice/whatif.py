"""What-ifs: a name, a kind, and a pure function from one setting to another; those that several rules share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import msgspec

from ...execution.emulator import Limits
from ...hardware import Gpu, Occupancy
from ...memory.behaviour import analyse_memory
from ...models.throughput import ISSUE
from ...pipeline.reasons import dependent_reason
from ...workload.build import Path
from ...workload.cost import CostedNode, CostedWorkload, Item, Repeat, to_ticks
from ..emulation_cache import WholeBlocks
from ..fits import geometry_of
from .case import Setting, change_nodes


@dataclass(frozen=True)
class WhatIf:
    """A change to be simulated. `apply` returns None where it would change nothing in this kernel.

    `name` describes the change in a few words and identifies the what-if; `kind` is as in
    `drywarp.analysis.result.detail.WhatIfAnswer`.
    """

    name: str
    kind: str
    apply: Callable[[Setting], Setting | None]


# The same code with another number of resident blocks per SM, whichever resource would prevent it.


def resident_blocks(blocks: int) -> WhatIf:
    """Run this many blocks per SM; the level that serves each access is unchanged."""

    def apply(setting: Setting) -> Setting | None:
        if blocks == setting.conditions.blocks_per_sm:
            return None
        return replace(setting, conditions=replace(setting.conditions, blocks_per_sm=blocks))

    return WhatIf(f"{blocks} blocks per SM", "code", apply)


# Instructions that are removed, or that cost only part of their time.


def dropped(instructions: Collection[int], name: str) -> WhatIf:
    """Remove these instructions; nothing waits for their results."""

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
    """Charge these instructions only a share of their time in each subsystem, as if fewer were enough."""

    def change(node: CostedNode) -> CostedNode:
        if node.instruction not in instructions:
            return node
        levels = tuple(
            replace(level, lambda_ticks=round(level.lambda_ticks * share), tail_ticks=round(level.tail_ticks * share))
            for level in node.levels
        )
        return replace(node, lambda_ticks=round(node.lambda_ticks * share), levels=levels)

    return WhatIf(name, "code", lambda setting: setting.changed(change, lambda n: n.instruction in instructions))


def as_class(instructions: Collection[int], class_: str, name: str) -> WhatIf:
    """Give these instructions the λ, Λ and subsystem of `class_`; their dependences are unchanged."""

    def apply(setting: Setting) -> Setting | None:
        kernel = setting.workload.kernel
        if not instructions or class_ not in setting.gpu.classes:
            return None
        changed = tuple(
            replace(ins, class_=class_) if index in instructions else ins
            for index, ins in enumerate(kernel.instructions)
        )
        return replace(setting, workload=replace(setting.workload, kernel=replace(kernel, instructions=changed)))

    return WhatIf(name, "code", apply)


# Twice as much in flight: by Little's law this is as if each wait were half as long.
#
# A thread with two independent loads (or two dependence chains) instead of one waits once for both, so the same work
# takes half of the waits. This is simulated by halving each Λ.

TWICE = 2


def more_loads_in_flight() -> WhatIf:
    """Halve Λ of memory accesses other than to shared memory."""

    def change(node: CostedNode) -> CostedNode:
        waited = dependent_reason(node.class_, node.goes_on) == "long_scoreboard" and node.sets >= 0
        return replace(node, latency_ticks=node.latency_ticks // TWICE) if waited else node

    return WhatIf("twice the loads in flight", "code", lambda setting: setting.changed(change))


def more_independent_instructions() -> WhatIf:
    """Halve all other Λ, and stall counts down to no less than one issue slot."""

    def apply(setting: Setting) -> Setting | None:
        slot = to_ticks(setting.gpu.scheduler.slot_cycles)

        def change(node: CostedNode) -> CostedNode:
            stall = min(node.stall_ticks, max(slot, node.stall_ticks // TWICE))
            if dependent_reason(node.class_, node.goes_on) == "long_scoreboard" or node.barrier or node.sync:
                return replace(node, stall_ticks=stall)
            return replace(node, stall_ticks=stall, latency_ticks=node.latency_ticks // TWICE)

        return setting.changed(change)

    return WhatIf("twice the independent arithmetic", "code", apply)


# Results without latency: Λ of a pipe, of the fixed latencies, or of a memory level removed.

LEVELS = ("shared", "l1", "l2", "dram")
"""Memory levels, nearest first."""


def ideal_latency(name: str) -> WhatIf:
    """Set Λ = 0 for instructions that issue to a pipe; memory latency is left to `ideal_level`."""

    def apply(setting: Setting) -> Setting | None:
        number = [subsystem.name for subsystem in setting.costed.subsystems].index(name)
        return setting.changed(
            lambda node: replace(node, latency_ticks=0) if node.subsystem == number else node,
            lambda node: node.subsystem == number and node.sets >= 0 and node.latency_ticks > 0,
        )

    return WhatIf(f"Λ of {name} = 0", "ideal", apply)


def no_fixed_latency() -> WhatIf:
    """Set stall counts to one issue slot: fixed-latency results are available to the warp's next instruction."""

    def apply(setting: Setting) -> Setting | None:
        slot = to_ticks(setting.gpu.scheduler.slot_cycles)
        return setting.changed(
            lambda node: replace(node, stall_ticks=min(node.stall_ticks, slot)), lambda node: node.stall_ticks > slot
        )

    return WhatIf("fixed latencies = 1 cycle", "ideal", apply)


def ideal_level(level: str) -> WhatIf:
    """Give a memory level the latency of the next nearer one; the nearest ones respond at once."""

    def apply(setting: Setting) -> Setting | None:
        if setting.gpu.machine_code is not None:
            return None  # a paper's cost table has no levels
        changed = replace(setting, gpu=_nearer(setting.gpu, level, setting.conditions.clock_mhz))
        return None if changed.costed.paths == setting.costed.paths else changed

    return WhatIf(f"Λ of {level} = that of the level before" if level in ("l2", "dram") else f"Λ of {level} = 0",
                  "ideal", apply)  # fmt: skip


def _nearer(gpu: Gpu, level: str, clock_mhz: float) -> Gpu:
    memory = gpu.memory
    its = getattr(memory, level)
    if level == "dram":
        farther = {"latency_ns": memory.l2.latency_ns}
    elif level == "l2":
        hit = memory.l1.latency * 1000 / clock_mhz
        farther = {"near_latency_ns": hit, "far_latency_ns": hit}
    else:
        farther = {"latency": 0.0}
    changed = msgspec.structs.replace(memory, **{level: msgspec.structs.replace(its, **farther)})
    return replace(gpu, sections={**gpu.sections, "memory": changed})


# A subsystem, or the issue limit, without throughput cost: λ = 0. Dependents still wait Λ.


def ideal_rate(name: str) -> WhatIf:
    """Set λ = 0 for one subsystem by name, or for ``issue``."""

    def apply(setting: Setting) -> Setting | None:
        return setting.then(lambda costed: without_lambda(costed, name)) if used(setting.costed, name) else None

    return WhatIf(f"λ of {name} = 0", "ideal", apply)


def used(costed: CostedWorkload, name: str) -> bool:
    """Whether anything takes time in the subsystem."""
    if name == ISSUE:
        return costed.issue_ticks > 0
    number = [subsystem.name for subsystem in costed.subsystems].index(name)
    return any(
        (node.subsystem == number and node.lambda_ticks > 0) or any(level.subsystem == number for level in node.levels)
        for path in costed.paths
        for node in path.nodes
    )


def without_lambda(costed: CostedWorkload, name: str) -> CostedWorkload:
    """The workload with nothing taking time in the subsystem."""
    if name == ISSUE:
        return change_nodes(replace(costed, issue_ticks=0), lambda node: replace(node, held_ticks=0))
    number = [subsystem.name for subsystem in costed.subsystems].index(name)

    def change(node: CostedNode) -> CostedNode:
        levels = tuple(
            replace(level, lambda_ticks=0, tail_ticks=0) if level.subsystem == number else level
            for level in node.levels
        )
        if node.subsystem != number:
            return replace(node, levels=levels)
        # Operands are read while the instruction occupies the pipe, unless stated otherwise.
        read = 0 if node.read_ticks == node.lambda_ticks else node.read_ticks
        return replace(node, levels=levels, lambda_ticks=0, read_ticks=read)

    return change_nodes(costed, change)


# Another split of an SM's memory between L1 and shared memory, with as many blocks as then fit.


def splits(setting: Setting) -> list[WhatIf]:
    """Every other shared-memory size that holds a block; none if the two are separate memories."""
    fits, limits = setting.fits, setting.gpu.occupancy
    if setting.gpu.machine_code is not None or not limits.unified_bytes_per_sm or setting.gpu.memory.l1.bytes:
        return []
    found = []
    for carveout in limits.carveout_bytes:
        blocks = fits.blocks_per_sm
        if fits.shared_bytes_per_block:
            blocks = min(blocks, carveout // fits.shared_bytes_per_block)
        if carveout != fits.carveout_bytes and blocks > 0:
            found.append(split(carveout, blocks, limits.unified_bytes_per_sm - carveout))
    return found


def split(carveout: int, blocks: int, l1_bytes: int) -> WhatIf:
    """Use this much shared memory per SM, this many blocks, and the rest as L1."""

    def apply(setting: Setting) -> Setting | None:
        launch = setting.workload.launch
        fits: Occupancy = replace(
            setting.fits,
            blocks_per_sm=blocks,
            warps_per_sm=blocks * launch.warps_per_block,
            carveout_bytes=carveout,
            l1_bytes=l1_bytes,
        )
        further = WholeBlocks(setting.profile, Limits())
        behaviour = analyse_memory(
            setting.profile,
            geometry_of(setting.gpu, fits),
            warm_l2=setting.warm_l2,
            emulate_blocks=further,
            looks=further.briefly(),
        )
        if blocks == setting.conditions.blocks_per_sm and behaviour.accesses == setting.behaviour.accesses:
            return None
        conditions = replace(setting.conditions, blocks_per_sm=blocks)
        return replace(setting, fits=fits, behaviour=behaviour, conditions=conditions)

    return WhatIf(f"{carveout // 1024} KiB shared, {l1_bytes // 1024} KiB L1: {blocks} blocks per SM", "launch", apply)


# Block-wide barriers that no warp waits at. Barriers among some warps (mbarriers, named barriers) are unchanged.


def no_barriers() -> WhatIf:
    """Treat a barrier as an ordinary instruction that no warp waits at."""

    def change(node: CostedNode) -> CostedNode:
        return replace(node, barrier=False, lambda_ticks=0, latency_ticks=0) if node.barrier else node

    return WhatIf("no waiting at barriers", "code", lambda setting: setting.changed(change, lambda node: node.barrier))
