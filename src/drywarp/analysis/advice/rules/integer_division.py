"""Integer divisions and remainders by values that are unknown at compile time."""

from __future__ import annotations

from ....kernel.dataflow import Dataflow
from ..case import Case, Setting
from ..whatif import dropped
from .base import Documentation, Suspicion, register

_REACH = 48
"""A division ends within this many instructions of its first."""


@register
class IntegerDivision:
    """The machine-code sequences that implement / and %."""

    name = "integer-division"
    title = "integer division or remainder by a value unknown at compile time"
    documentation = Documentation(
        what="Finds integer / and % whose divisor is known only at run time.",
        why="GPUs have no integer division instruction. The compiler emits a floating-point reciprocal and some "
        "twenty instructions to correct it, about a hundred for 64 bits.",
        evidence="Sequences that start by converting the divisor for its reciprocal. The gain comes from simulating "
        "the kernel without the dependent instructions on the same line.",
        change="Make the divisor a constant or template argument, use a power of two with shift and mask, update "
        "quotient and remainder incrementally in the loop, use more grid and block dimensions, or multiply by "
        "a reciprocal computed once.",
        before="int row = i / width, col = i % width;",
        after="int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The divisions, most often executed first."""
        setting = case.setting
        starts = division_starts(setting)
        if not starts:
            return None
        gone = division_instructions(setting, starts)
        spent = sum(setting.executions[index] for index in gone)
        return Suspicion(
            dropped(gone, "no integer divisions"),
            setting.places(sorted(starts, key=lambda index: -setting.executions[index])),
            f"{len(starts)} divisions take {spent / sum(setting.executions):.0%} of the instructions",
            "make the divisor a compile-time constant or a power of two, or use more grid dimensions",
            spent / sum(setting.executions),
        )


def division_starts(setting: Setting) -> list[int]:
    """Conversions of a divisor to floating point, rounded up, for its reciprocal."""
    return [
        n
        for n, ins in enumerate(setting.instructions)
        if ins.opcode.startswith("I2F") and "RP" in ins.modifiers and setting.executions[n]
    ]


def division_instructions(setting: Setting, starts: list[int]) -> frozenset[int]:
    """Instructions within reach on the same line that depend on these conversions, except memory and branches."""
    code = setting.instructions
    producers = Dataflow(code, setting.profile.cfg).producers
    gone: set[int] = set()
    for start in starts:
        mine = {start}
        for index in range(start + 1, min(len(code), start + _REACH * (3 if "U64" in code[start].modifiers else 1))):
            its = code[index]
            if its.memory or its.class_ in ("branch", "convergence", "barrier") or its.source != code[start].source:
                continue
            if mine & set(producers[index]):
                mine.add(index)
        gone |= mine
    return frozenset(gone)
