"""Data of global memory that each block loads once and then finds close by.

As if it were kept in shared memory: what goes beyond the L1 is each sector once per block, and all further loads of
it are hits. They still take their place in the load-store unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...memory.behaviour import AccessBehaviour
from ..setting import Setting
from .base import WhatIf


def loaded_once(times: Mapping[int, float]) -> WhatIf:
    """`times`: by load, how often a block asks for each sector in the mean."""

    def apply(setting: Setting) -> Setting | None:
        accesses = {
            index: _once(access, times[index]) if index in times else access
            for index, access in setting.behaviour.accesses.items()
        }
        if accesses == dict(setting.behaviour.accesses):
            return None
        return replace(setting, behaviour=replace(setting.behaviour, accesses=accesses))

    return WhatIf("each sector loaded once per block", "code", apply)


def _once(access: AccessBehaviour, times: float) -> AccessBehaviour:
    to_l2 = access.units * min(1 - access.l1_hit, 1 / times)
    missed = min(access.units * (1 - access.l1_hit) * (1 - access.l2_hit), to_l2)
    return replace(
        access,
        l1_hit=1 - to_l2 / access.units if access.units else 1.0,
        l2_hit=1 - missed / to_l2 if to_l2 else 1.0,
        dram_read=min(access.dram_read, to_l2),
    )
