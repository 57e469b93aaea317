"""Atomics that the L2 serializes, or that collide on the same address."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from ....kernel.profile import SPACE_SHARED
from ....memory.requests import distinct_per_row
from ....memory.table import active_lanes
from ..case import Case, Setting
from ..whatif import WhatIf, dropped
from .base import Suspicion, register

# Global atomics that a block aggregates in its shared memory first.


def private_atomics(instructions: Collection[int]) -> WhatIf:
    """Charge these atomics as conflict-free shared-memory atomics; merging the copies is not charged."""

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


_MOST_ROWS, _LEAST_MEETING = 1 << 14, 2.0


@register
class Atomics:
    """Global atomics, or shared-memory atomics where lanes of a warp collide."""

    name = "atomics"

    def look(self, case: Case) -> Suspicion | None:
        """Check global atomics first; shared-memory atomics only where lanes collide."""
        setting = case.setting
        if found := setting.indices("global_atomic"):
            what_if = private_atomics(frozenset(found))
            remedy = "aggregate per warp or in shared memory, and update global memory once per block"
        else:
            found = setting.indices("shared_atomic")
            what_if = dropped(frozenset(found), "no atomics on shared memory")
            remedy = "aggregate per warp first, or give each warp its own copy"
        meeting = lanes_per_address(setting, found)
        if not found or (meeting < _LEAST_MEETING and what_if.name.startswith("no ")):
            return None
        count = sum(setting.executions[index] for index in found)
        return Suspicion(
            what_if,
            setting.places(case.costliest(found)),
            f"{count:.3g} warp-level atomics, {meeting:.1f} lanes per distinct address",
            remedy,
            sum(case.waiting(index) for index in found) / case.stalled + count / sum(setting.executions),
        )


def lanes_per_address(setting: Setting, instructions: list[int]) -> float:
    """Active lanes per distinct address, averaged over the logged requests."""
    log = setting.profile.accesses
    rows = np.flatnonzero(np.isin(log.instruction, instructions) & (log.masks[log.pattern] > 0))[:_MOST_ROWS]
    if not len(rows):
        return 1.0
    addresses, active = active_lanes(log, rows)
    return float(active.sum() / max(1, distinct_per_row(addresses, active).sum()))
