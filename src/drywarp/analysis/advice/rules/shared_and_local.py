"""Bank conflicts in shared memory, constants at several addresses, and values that live in local memory."""

from __future__ import annotations

from dataclasses import replace

from ....kernel.profile import SPACE_SHARED
from ..case import Case, Setting
from ..whatif import WhatIf, dropped
from .base import Suspicion, register
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


@register
class BankConflicts:
    """Wavefronts per request, compared with the conflict-free minimum."""

    name = "bank-conflicts"

    def look(self, case: Case) -> Suspicion | None:
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


@register
class DivergentConstants:
    """Loads of constants whose lanes ask for different addresses."""

    name = "divergent-constants"

    def look(self, case: Case) -> Suspicion | None:
        """Those with the most further passes first."""
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


@register
class RegisterSpills:
    """Local-memory accesses."""

    name = "register-spills"

    def look(self, case: Case) -> Suspicion | None:
        """The accesses, most often executed first."""
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
