"""Atomics on global memory that a block does in its shared memory first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ...kernel.profile import SPACE_SHARED
from ..setting import Setting
from .base import WhatIf


def private_atomics(instructions: Collection[int]) -> WhatIf:
    """These atomics cost what those on shared memory do, without conflicts; adding up the copies is left out."""

    def apply(setting: Setting) -> Setting | None:
        kernel = setting.workload.kernel
        if not instructions:
            return None
        changed = tuple(
            replace(ins, class_="shared_atomic", memory=replace(ins.memory, space="shared"))
            if index in instructions and ins.memory
            else ins
            for index, ins in enumerate(kernel.instructions)
        )
        accesses = {
            index: replace(access, space=SPACE_SHARED, units=1.0, dram_read=0.0, dram_write=0.0)
            if index in instructions
            else access
            for index, access in setting.behaviour.accesses.items()
        }
        return replace(
            setting,
            workload=replace(setting.workload, kernel=replace(kernel, instructions=changed)),
            behaviour=replace(setting.behaviour, accesses=accesses),
        )

    return WhatIf("atomics in shared memory first", "code", apply)
