"""Double-precision arithmetic where it is slow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..case import Case, Setting
from ..whatif import WhatIf
from .base import Suspicion, register

# Instructions charged at the cost of another class.


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


_LEAST_SHARE = 0.005


@register
class DoublePrecision:
    """Double-precision instructions."""

    name = "fp64"

    def look(self, case: Case) -> Suspicion | None:
        """The instructions, costliest first."""
        setting = case.setting
        found = setting.indices("fp64")
        share = case.share_of(lambda instruction: instruction.class_ == "fp64")
        if not found or share < _LEAST_SHARE:
            return None
        use = case.use_by("fp64")
        return Suspicion(
            as_class(frozenset(found), "fp32", "single instead of double precision"),
            setting.places(case.costliest(found)),
            f"{share:.1%} of the instructions are double precision; their pipe is busy {use:.0%} of the time",
            "write constants with the f suffix, and use float where its precision suffices",
            max(use, share),
        )
