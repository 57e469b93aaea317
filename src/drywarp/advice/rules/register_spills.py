"""Registers that were spilled, and arrays that live in local memory."""

from __future__ import annotations

from ..case import Case
from ..whatifs.fewer import dropped
from .base import Documentation, Suspicion, register


@register
class RegisterSpills:
    """Accesses to local memory."""

    name = "register-spills"
    title = "values of a thread live in local memory instead of registers"
    documentation = Documentation(
        what="Finds loads and stores of local memory: spilled registers, and arrays of a thread that are indexed "
        "by values which the compiler does not know.",
        why="Local memory is global memory that each thread has to itself. An access costs an instruction, a "
        "place in the load-store unit and up to the latency of DRAM where a register costs nothing.",
        evidence="The share of such instructions, and what the compiler says of spills. The gain is that of simulating "
        "the kernel without them.",
        change="Allow more registers (__launch_bounds__ with fewer threads or blocks, no -maxrregcount), keep fewer "
        "values alive, unroll loops over small arrays wholly so that every index is a constant.",
        before="float v[8];\nfor (int k = 0; k < n; ++k) s += v[k];         // n not known: v lies in local memory",
        after="float v[8];\n#pragma unroll\nfor (int k = 0; k < 8; ++k) s += v[k];         // v lies in registers",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The accesses, the costliest first."""
        setting = case.setting
        found = setting.indices("local_load", "local_store")
        if not found:
            return None
        resources = setting.workload.kernel.resources
        share = case.share_of(lambda instruction: instruction.class_.startswith("local_"))
        spilled = f"{resources.spill_bytes} B per thread spilled" if resources.spill_bytes else "no spills reported"
        if resources.spill_bytes is None:
            spilled = "whether the compiler spilled it is not known"
        return Suspicion(
            dropped(frozenset(found), "no local memory"),
            setting.places(sorted(found, key=lambda index: -setting.executions[index])),
            f"{share:.1%} of the instructions access local memory ({resources.local_bytes} B per thread; {spilled})",
            "allow more registers per thread, keep fewer values alive, and index small arrays by constants",
            share + sum(case.waiting(index) for index in found) / case.stalled,
        )
