"""Instructions that cost what those of another class do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..setting import Setting
from .base import WhatIf


def as_class(instructions: Collection[int], class_: str, name: str) -> WhatIf:
    """λ, Λ and subsystem of `class_` for these instructions; their dependences stay."""

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
