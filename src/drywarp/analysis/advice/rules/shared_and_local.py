"""Bank conflicts in shared memory, and values that live in local memory."""

from __future__ import annotations

from dataclasses import replace

from ....kernel.profile import SPACE_SHARED
from ..case import Case, Setting
from ..resimulate import ideal_units
from ..whatif import WhatIf, dropped
from .base import Documentation, Suspicion, register

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
    title = "lanes of a warp access different words of the same shared-memory bank"
    documentation = Documentation(
        what="Finds shared-memory accesses that take more wavefronts than their bytes need.",
        why="Shared memory has 32 banks of 4 bytes. Accesses to different words of one bank are serialized, which "
        "keeps the load-store unit busy that much longer; all warps of the SM wait for it.",
        evidence="Wavefronts per request from the emulated addresses, compared with the conflict-free minimum. The "
        "gain comes from simulating the kernel without conflicts.",
        change="Pad the rows of a shared array to one element more than a multiple of 32 words, remap threads to "
        "elements (consecutive threads access consecutive words), or permute the columns by row (swizzle).",
        before="__shared__ float tile[32][32];\nfloat v = tile[threadIdx.x][k];   // all lanes in one bank",
        after="__shared__ float tile[32][33];\nfloat v = tile[threadIdx.x][k];   // 32 banks",
    )

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


@register
class RegisterSpills:
    """Local-memory accesses."""

    name = "register-spills"
    title = "a thread's values live in local memory instead of registers"
    documentation = Documentation(
        what="Finds local-memory loads and stores: spilled registers, and per-thread arrays indexed by values that "
        "are unknown at compile time.",
        why="Local memory is private global memory. An access costs an instruction, time in the load-store unit and "
        "up to the DRAM latency, where a register costs nothing.",
        evidence="The share of such instructions, and the spills that the compiler reports. The gain comes from "
        "simulating the kernel without them.",
        change="Allow more registers (__launch_bounds__ with fewer threads or blocks, no -maxrregcount), keep fewer "
        "values live, or fully unroll loops over small arrays so that every index is a constant.",
        before="float v[8];\nfor (int k = 0; k < n; ++k) s += v[k];         // n unknown: v is in local memory",
        after="float v[8];\n#pragma unroll\nfor (int k = 0; k < 8; ++k) s += v[k];         // v is in registers",
    )

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
