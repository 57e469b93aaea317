"""Accesses to global memory that take the fewest sectors for their bytes.

The sectors that a warp asks for shrink to those that its lanes' bytes fill. What is fetched beyond the L1 and to and
from DRAM shrinks to no more than that: sectors fetched for a few of their bytes, and fetched again later, are not
any more. What other warps have fetched already stays.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ...fit import geometry_of
from ...memory.behaviour import AccessBehaviour
from ...memory.geometry import MemoryGeometry
from ..ideals import SPACE_GLOBAL, Ideal, ideal_units
from ..setting import Setting
from .base import WhatIf

WORTH_IT = 1.05
"""Ratio of sectors to the fewest from which on an access counts as not coalesced."""


def coalesced(only: Collection[int] | None = None) -> WhatIf:
    """All accesses to global memory coalesced, or only those of some instructions."""

    def apply(setting: Setting) -> Setting | None:
        ideals = {
            index: ideal
            for index, ideal in ideal_units(setting, SPACE_GLOBAL).items()
            if ideal.ratio > WORTH_IT and (only is None or index in only)
        }
        if not ideals:
            return None
        geometry = geometry_of(setting.gpu, setting.fits)
        accesses = {
            index: fewer_sectors(access, ideals[index], geometry) if index in ideals else access
            for index, access in setting.behaviour.accesses.items()
        }
        saved = sum(
            (old.dram_read - accesses[index].dram_read) * old.executions
            for index, old in setting.behaviour.accesses.items()
        )
        read = setting.behaviour.dram_read_bytes - saved * geometry.sector_bytes
        return replace(setting, behaviour=replace(setting.behaviour, accesses=accesses, dram_read_bytes=max(0.0, read)))

    return WhatIf("accesses coalesced", "code", apply)


def fewer_sectors(access: AccessBehaviour, ideal: Ideal, geometry: MemoryGeometry) -> AccessBehaviour:
    """The access with the fewest sectors for its bytes, side by side in lines and rows of banks."""
    least = ideal.least
    moved = least * geometry.sector_bytes
    to_l2 = min(access.units * (1 - access.l1_hit), least)
    read, write = min(access.dram_read, least), min(access.dram_write, least)
    missed = min(access.units * (1 - access.l1_hit) * (1 - access.l2_hit), to_l2)
    return replace(
        access,
        units=least,
        lines=min(access.lines, max(access.requests, moved / geometry.line_bytes)),
        passes=min(access.passes, max(access.requests, moved / (geometry.banks * geometry.bank_bytes))),
        l1_hit=1 - to_l2 / least if least else 1.0,
        l2_hit=1 - missed / to_l2 if to_l2 else 1.0,
        dram_read=read,
        dram_write=write,
    )
