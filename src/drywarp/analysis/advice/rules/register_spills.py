"""Spilled registers, and arrays that live in local memory."""

from __future__ import annotations

from ..case import Case
from ..whatif import dropped
from .base import Documentation, Suspicion, register


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
