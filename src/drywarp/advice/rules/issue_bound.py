"""Schedulers that are busy with instructions that neither compute nor move data."""

from __future__ import annotations

from ..case import Case
from ..whatifs.fewer import dropped
from .base import Documentation, Suspicion, register

OVERHEAD = (
    *("int", "imad", "imad_wide", "shift", "move", "predicate", "uniform", "special_register", "branch"),
    *("convergence", "constant_load", "convert_fast", "nop"),
)
"""Classes of addresses, counters, conditions and jumps."""
_LEAST_USE, _LEAST_SHARE, _MOST_SHARE = 0.5, 0.3, 0.85


@register
class IssueBound:
    """Issue slots in use, and how many of them go to indices, conditions and loops."""

    name = "issue-bound"
    title = "the schedulers issue mostly addresses, conditions and loops"
    documentation = Documentation(
        what="Finds kernels that use at least half of the issue slots, a third of them for integer arithmetic, "
        "moves, predicates and branches.",
        why="A scheduler issues one instruction a cycle at most, whatever it does. Instructions that compute "
        "addresses and turn loops take slots from those that do the work.",
        evidence="The use of the issue slots and the share of such instructions. The gain is that of simulating the "
        "kernel with every second of them left out.",
        change="Unroll short loops, hoist address arithmetic out of them, load and store 8 or 16 bytes per "
        "instruction (float2, float4), take several elements per thread, use 32-bit indices, and make sizes "
        "known at compile time.",
        before="for (int i = t; i < n; i += step) y[i] = a * x[i] + y[i];",
        after="for (int i = t; i < n / 4; i += step) {\n"
        "  float4 u = x4[i], v = y4[i];\n"
        "  // four results from one address\n"
        "}",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The instructions by how often they are issued."""
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
            "unroll, take several elements per thread, and load or store 16 bytes per instruction",
            use * share / 2,
        )
