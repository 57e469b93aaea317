"""Divisions and remainders of integers by values not known at compile time."""

from __future__ import annotations

from ...kernel.dataflow import Dataflow
from ..case import Case
from ..setting import Setting
from ..whatifs.fewer import dropped
from .base import Documentation, Suspicion, register

_REACH = 48
"""Instructions after its first one within which a division ends."""


@register
class IntegerDivision:
    """The sequences that stand for / and % in machine code."""

    name = "integer-division"
    title = "integer division or remainder by a value that the compiler does not know"
    documentation = Documentation(
        what="Finds / and % of integers whose divisor is known at run time only.",
        why="GPUs have no instruction for that. It becomes a reciprocal in floating point and some twenty "
        "instructions that correct it, for 64 bits about a hundred.",
        evidence="Sequences that begin with the conversion of the divisor for its reciprocal. The gain is that of "
        "simulating the kernel without the instructions that follow from it on the same line.",
        change="Make the divisor a constant or template argument, use a power of two with shift and mask, keep "
        "quotient and remainder in a counter that goes along with the loop, use more dimensions of grid and "
        "block, or multiply by a reciprocal computed once.",
        before="int row = i / width, col = i % width;",
        after="int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The divisions, those that run most often first."""
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
    """Conversions of a divisor, rounded up, to a floating-point number for its reciprocal."""
    return [
        n
        for n, ins in enumerate(setting.instructions)
        if ins.opcode.startswith("I2F") and "RP" in ins.modifiers and setting.executions[n]
    ]


def division_instructions(setting: Setting, starts: list[int]) -> frozenset[int]:
    """What depends on these conversions within reach and on the same line: no access to memory, no jump."""
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
