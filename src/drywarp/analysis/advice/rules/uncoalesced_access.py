"""Global-memory accesses that touch more sectors than their bytes fill."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ....kernel.profile import SPACE_GLOBAL
from ....memory.behaviour import AccessBehaviour
from ....memory.table import MemoryGeometry
from ...prepared import geometry_of
from ..case import Case, Setting
from ..resimulate import Ideal, ideal_units
from ..whatif import WhatIf
from .base import Documentation, Suspicion, register

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
    )


_CLASSES = ("global_load", "global_store", "async_copy")
_LEAST_RATIO = 1.25


@register
class UncoalescedAccess:
    """Sectors per request, compared with the fewest that hold the same bytes."""

    name = "uncoalesced-access"
    title = "lanes of a warp touch scattered sectors of global memory"
    documentation = Documentation(
        what="Finds global loads and stores where a warp touches more 32-byte sectors than its lanes' bytes would "
        "fill if they were contiguous.",
        why="Memory moves whole sectors. Each extra sector takes time in the load-store unit, the L1, the L2 and "
        "often in DRAM, whether its other bytes are used or not.",
        evidence="Sectors per request from the emulated addresses, compared with the minimum for the same bytes. The "
        "gain comes from simulating the kernel with that minimum.",
        change="Let neighbouring threads access neighbouring elements: swap loop and thread index, store arrays of "
        "structures as structures of arrays, or transpose through shared memory (read along rows, write along "
        "columns there).",
        before="float v = in[threadIdx.x * stride + k];          // 32 sectors per warp",
        after="float v = in[k * blockDim.x + threadIdx.x];      // 4 sectors per warp",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The accesses, most excess sectors first."""
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
