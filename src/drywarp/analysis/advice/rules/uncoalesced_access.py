"""Global-memory accesses that touch more sectors than their bytes fill."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from ....kernel.profile import SPACE_GLOBAL
from ....memory.behaviour import AccessBehaviour
from ....memory.table import MemoryGeometry
from ...fits import geometry_of
from ..case import Case, Setting
from ..whatif import WhatIf
from .base import Suspicion, rule

# The minimum cost of an instruction's accesses for the bytes that they move.


@dataclass(frozen=True, slots=True)
class Ideal:
    """Per execution: actual `units`, and the `least` possible (sectors, or shared-memory wavefronts)."""

    units: float
    least: float

    @property
    def ratio(self) -> float:
        """Actual cost over the least possible."""
        return self.units / self.least if self.least else 1.0


def ideal_units(setting: Setting, space: int) -> dict[int, Ideal]:
    """Ideal costs by instruction that accesses global (or shared) memory, scaled to its modelled behaviour."""
    table, count = setting.requests, len(setting.instructions)
    if not len(table.instruction):
        return {}
    weights = np.array([sample.weight for sample in setting.profile.blocks])[table.sample] * table.count
    weights = weights * (table.space == space)
    units = np.bincount(table.instruction, table.units * weights, minlength=count)
    least = np.bincount(table.instruction, table.ideal * weights, minlength=count)
    found = {}
    for index, behaviour in setting.behaviour.accesses.items():
        if behaviour.space == space and units[index] > 0:
            found[index] = Ideal(behaviour.units, behaviour.units * float(least[index] / units[index]))
    return found


# Global-memory accesses that take the fewest sectors for their bytes.
#
# The sectors that a warp requests shrink to those that its lanes' bytes fill. L2 and DRAM traffic shrinks to no more
# than that: sectors are no longer fetched for a few of their bytes and refetched later. Hits on data that other warps
# already fetched remain hits.

WORTH_IT = 1.05
"""An access counts as uncoalesced above this ratio of sectors to the minimum."""


def coalesced(only: Collection[int] | None = None) -> WhatIf:
    """Coalesce all global-memory accesses, or only those of some instructions."""

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
    """The access with the fewest sectors for its bytes, contiguous in cache lines and rows of banks."""
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
        apart=0.0,
    )


_CLASSES = ("global_load", "global_store", "async_copy")
_LEAST_RATIO = 1.25


@rule("uncoalesced-access")
def uncoalesced_access(case: Case) -> Suspicion | None:
    """The accesses with more sectors per request than hold the same bytes, most excess sectors first."""
    setting = case.setting
    wanted = set(setting.indices(*_CLASSES))
    wasteful = {
        index: ideal
        for index, ideal in ideal_units(setting, SPACE_GLOBAL).items()
        if index in wanted and ideal.ratio >= _LEAST_RATIO
    }
    if not wasteful:
        return None
    lost = {i: (ideal.units - ideal.least) * setting.executions[i] for i, ideal in wasteful.items()}
    order = sorted(wasteful, key=lambda index: -lost[index])
    worst, active = wasteful[order[0]], setting.behaviour.accesses[order[0]].requests
    sectors, least = worst.units / active, worst.least / active
    many = f", and {len(order) - 1} other instructions like it" if len(order) > 1 else ""
    return Suspicion(
        coalesced(wasteful.keys()),
        setting.places(order),
        f"{sectors:.1f} sectors per request where {least:.1f} hold the same bytes{many}",
        "let neighbouring threads access neighbouring elements, or transpose through shared memory",
        max(case.use_by("global_load"), case.use("l2"), case.use("dram")) * (1 - 1 / worst.ratio),
    )
