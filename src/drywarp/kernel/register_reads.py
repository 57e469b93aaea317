"""How often an instruction goes to each bank of the register file, after what the operand cache spares.

Huerta et al. 2025 (§5.3): a partition's registers lie in two banks, even and odd numbers, and each bank gives one
warp-wide register a cycle. Where the compiler has set an operand's reuse bit, the operand cache keeps its value for the
warp's next instruction that has the same register in the same place and bank.
"""

from __future__ import annotations

from collections.abc import Sequence

from .instruction import Instruction
from .operand import RZ
from .registers import operand_registers

BANKS = 2
_PLACES = (24, 32, 64)
"""Where a 128-bit encoding has the first, second and third source register."""
_BREAKS = frozenset({"branch", "convergence", "barrier"})

Reads = tuple[int, int]
"""Registers read from the even and from the odd bank."""


def register_reads(instructions: Sequence[Instruction]) -> list[Reads]:
    """Reads of each bank by every instruction of the code, in its order.

    The operand cache is empty at the beginning and behind instructions that may leave the order of the code.
    """
    known = _latest.get("reads")
    if known is None or known[0] is not instructions:
        known = _latest["reads"] = (instructions, _reads(instructions))
    return known[1]


_latest: dict[str, tuple[Sequence[Instruction], list[Reads]]] = {}
"""The code that was asked for last: one kernel is bound many times over, to other GPUs and under other assumptions."""


def _reads(instructions: Sequence[Instruction]) -> list[Reads]:
    kept: dict[tuple[int, int], int] = {}
    found: list[Reads] = []
    for instruction in instructions:
        reads: set[int] = set()
        for place, first, width in _sources(instruction):
            for register in range(first, first + width):
                cell = (register % BANKS, place)
                if kept.pop(cell, -1) != register:
                    reads.add(register)
                if instruction.control.reuse >> place & 1:
                    kept[cell] = register
        found.append((sum(r % BANKS == 0 for r in reads), sum(r % BANKS for r in reads)))
        if instruction.class_ in _BREAKS:
            kept.clear()
    return found


def _sources(instruction: Instruction) -> list[tuple[int, int, int]]:
    """Place in the encoding, first register and registers of each source that lies in the register file."""
    sources = []
    at = 0
    for register, width in operand_registers(instruction):
        place = at
        while place < len(_PLACES) and instruction.encoding >> _PLACES[place] & 255 != register.index:
            place += 1
        if place == len(_PLACES):
            place = min(at, len(_PLACES) - 1)
        at = place + 1
        if register.index != RZ:
            sources.append((place, register.index, width))
    return sources
