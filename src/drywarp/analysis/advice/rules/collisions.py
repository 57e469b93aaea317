"""Accesses that collide: in banks of shared memory, as atomics, in constant memory; and values in local memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from ....kernel.profile import SPACE_SHARED
from ....memory.requests import distinct_per_row
from ....memory.table import active_lanes
from ..case import Case, Setting
from ..whatif import WhatIf, dropped
from .base import Suspicion, rule
from .uncoalesced_access import ideal_units

# Shared-memory accesses without bank conflicts: as many wavefronts as their bytes need.

WORTH_IT = 1.02
"""An access counts as conflicting above this ratio of wavefronts to the minimum."""


def conflict_free() -> WhatIf:
    """Give every shared-memory access its minimum number of wavefronts."""

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


_LEAST_RATIO = 1.05


@rule("bank-conflicts")
def bank_conflicts(case: Case) -> Suspicion | None:
    """The conflicting accesses, most excess wavefronts first."""
    setting = case.setting
    found = {i: ideal for i, ideal in ideal_units(setting, SPACE_SHARED).items() if ideal.ratio >= _LEAST_RATIO}
    if not found:
        return None
    lost = {i: (ideal.units - ideal.least) * setting.executions[i] for i, ideal in found.items()}
    order = sorted(found, key=lambda index: -lost[index])
    worst, active = found[order[0]], setting.behaviour.accesses[order[0]].requests
    return Suspicion(
        conflict_free(),
        setting.places(order),
        f"{worst.units / active:.1f} wavefronts per access where {worst.least / active:.1f} would do",
        "pad rows of the shared array by one element, or let consecutive threads access consecutive words",
        case.use_by("shared_load") * (1 - 1 / worst.ratio),
    )


def one_address() -> WhatIf:
    """Let every load of constants ask for one address."""

    def apply(setting: Setting) -> Setting | None:
        if not setting.behaviour.constant_addresses:
            return None
        return replace(setting, behaviour=replace(setting.behaviour, constant_addresses={}))

    return WhatIf("one address per load of constants", "code", apply)


@rule("divergent-constants")
def divergent_constants(case: Case) -> Suspicion | None:
    """Loads of constants whose lanes ask for different addresses, most further passes first."""
    setting = case.setting
    asked = {n: each for n, each in setting.behaviour.constant_addresses.items() if setting.executions[n]}
    if not asked:
        return None
    order = sorted(asked, key=lambda index: -(asked[index] - 1) * setting.executions[index])
    return Suspicion(
        one_address(),
        setting.places(order),
        f"{asked[order[0]]:.1f} addresses per load of constants, which are served one after another",
        "keep the table in shared memory, or read it through a const __restrict__ pointer",
        case.use_by("constant_load") * (1 - 1 / asked[order[0]]),
    )


@rule("register-spills")
def register_spills(case: Case) -> Suspicion | None:
    """Accesses to local memory, most often executed first."""
    setting = case.setting
    found = setting.indices("local_load", "local_store")
    if not found:
        return None
    resources = setting.workload.kernel.resources
    share = case.share_of(lambda instruction: instruction.class_.startswith("local_"))
    spilled = f"{resources.spill_bytes} B per thread spilled" if resources.spill_bytes else "no spills reported"
    if resources.spill_bytes is None:
        spilled = "spills unknown"
    return Suspicion(
        dropped(frozenset(found), "no local memory"),
        setting.places(sorted(found, key=lambda index: -setting.executions[index])),
        f"{share:.1%} of the instructions access local memory ({resources.local_bytes} B per thread; {spilled})",
        "allow more registers per thread, keep fewer values live, and index small arrays by constants",
        share + sum(case.waiting(index) for index in found) / case.stalled,
    )


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


@rule("atomics")
def atomics(case: Case) -> Suspicion | None:
    """Global atomics first; shared-memory atomics only where lanes of a warp collide."""
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
