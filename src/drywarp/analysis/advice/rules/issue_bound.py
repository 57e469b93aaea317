"""Issue slots spent on instructions that neither compute nor move data."""

from __future__ import annotations

from ..case import Case
from ..whatif import dropped
from .base import Documentation, Suspicion, register

OVERHEAD = (
    *("int", "imad", "imad_wide", "shift", "move", "predicate", "uniform", "special_register", "branch"),
    *("convergence", "constant_load", "convert_fast", "nop"),
)
"""Classes of instructions for addresses, counters, conditions and branches."""
_LEAST_USE, _LEAST_SHARE, _MOST_SHARE = 0.5, 0.3, 0.85


@register
class IssueBound:
    """Utilization of the issue slots, and how many of them go to indices, conditions and loops."""

    name = "issue-bound"
    title = "the schedulers mostly issue address, condition and loop instructions"
    documentation = Documentation(
        what="Finds kernels that use at least half of the issue slots, and spend 30 to 85 % of those on integer "
        "arithmetic, moves, predicates and branches.",
        why="A scheduler issues at most one instruction per cycle, whatever it does. Instructions that compute "
        "addresses and control loops take slots from those that do the work.",
        evidence="The utilization of the issue slots and the share of such instructions. The gain comes from "
        "simulating the kernel with every second one of them removed.",
        change="Unroll short loops, hoist address arithmetic out of them, load and store 8 or 16 bytes per "
        "instruction (float2, float4), process several elements per thread, use 32-bit indices, and make sizes "
        "compile-time constants.",
        before="for (int i = t; i < n; i += step) y[i] = a * x[i] + y[i];",
        after="for (int i = t; i < n / 4; i += step) {\n"
        "  float4 u = x4[i], v = y4[i];\n"
        "  // four results from one address\n"
        "}",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The instructions, most often issued first."""
        setting = case.setting
        use = case.use("issue")
        share = case.share_of(lambda instruction: instruction.class_ in OVERHEAD)
        if use < _LEAST_USE or not _LEAST_SHARE <= share <= _MOST_SHARE:
            return None
        found = setting.indices(*OVERHEAD)
        return Suspicion(
            dropped(frozenset(found[::2]), "half the instructions for indices and loops"),
            setting.places(sorted(found, key=lambda index: -setting.executions[index])),
            f"{use:.0%} of the issue slots are used, {share:.0%} of them for indices, conditions and loops",
            "unroll, process several elements per thread, and load or store 16 bytes per instruction",
            use * share / 2,
        )
