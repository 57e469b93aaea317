"""Results that are there at once: Λ of a pipe, of the fixed latencies, or of a level of memory taken away."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from ...bound import BoundNode, BoundWorkload, to_ticks
from ...hardware import Gpu
from ..setting import Setting, change_nodes
from .base import WhatIf

LEVELS = ("shared", "l1", "l2", "dram")
"""Levels of memory from near to far."""


def ideal_latency(name: str) -> WhatIf:
    """Λ = 0 of what issues to a pipe; dependences on memory are the levels' matter (`ideal_level`)."""

    def apply(setting: Setting) -> Setting | None:
        bound = setting.bound
        number = [subsystem.name for subsystem in bound.subsystems].index(name)
        nodes = [node for path in bound.paths for node in path.nodes if node.subsystem == number]
        waited = any(node.sets >= 0 and node.latency_ticks > 0 for node in nodes)
        return setting.then(lambda b: _without_latency(b, number)) if waited else None

    return WhatIf(f"Λ of {name} = 0", "ideal", apply)


def _without_latency(bound: BoundWorkload, number: int) -> BoundWorkload:
    return change_nodes(bound, lambda node: replace(node, latency_ticks=0) if node.subsystem == number else node)


def no_fixed_latency() -> WhatIf:
    """Stall counts of one issue slot: results of fixed latency are there for the warp's next instruction."""

    def apply(setting: Setting) -> Setting | None:
        slot = to_ticks(setting.gpu.scheduler.slot_cycles)

        def change(node: BoundNode) -> BoundNode:
            return replace(node, stall_ticks=min(node.stall_ticks, slot))

        waits = any(node.stall_ticks > slot for path in setting.bound.paths for node in path.nodes)
        return setting.then(lambda bound: change_nodes(bound, change)) if waits else None

    return WhatIf("fixed latencies = 1 cycle", "ideal", apply)


def ideal_level(level: str) -> WhatIf:
    """A level of memory that answers like the next nearer one; the nearest ones at once."""

    def apply(setting: Setting) -> Setting | None:
        if setting.gpu.machine_code is not None:
            return None  # a table of a paper has no levels
        changed = replace(setting, gpu=_nearer(setting.gpu, level, setting.binding.clock_mhz))
        return None if changed.bound.paths == setting.bound.paths else changed

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
