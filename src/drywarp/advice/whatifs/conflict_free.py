"""Accesses to shared memory without bank conflicts: as many wavefronts as the bytes fill."""

from __future__ import annotations

from dataclasses import replace

from ..ideals import SPACE_SHARED, ideal_units
from ..setting import Setting
from .base import WhatIf

WORTH_IT = 1.02
"""Ratio of wavefronts to the fewest from which on an access counts as one with conflicts."""


def conflict_free() -> WhatIf:
    """Every access to shared memory in the fewest wavefronts."""

    def apply(setting: Setting) -> Setting | None:
        ideals = {i: ideal for i, ideal in ideal_units(setting, SPACE_SHARED).items() if ideal.ratio > WORTH_IT}
        if not ideals:
            return None
        accesses = {
            index: replace(access, units=ideals[index].least, passes=ideals[index].least) if index in ideals else access
            for index, access in setting.behaviour.accesses.items()
        }
        return replace(setting, behaviour=replace(setting.behaviour, accesses=accesses))

    return WhatIf("no bank conflicts", "code", apply)
