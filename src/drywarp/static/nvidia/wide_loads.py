"""What a 64-bit load brings, judged by what is first done with it: an address, a long integer, or something else."""

from __future__ import annotations

from collections.abc import Sequence

from ...kernel.instruction import Instruction
from ...kernel.operand import Address, Register
from ...kernel.registers import accessed
from ..contents import INTEGER, POINTER

_LOOK_AHEAD = 96


def wide_loads(instructions: Sequence[Instruction]) -> dict[int, str]:
    """Kinds of 64-bit loads by instruction index; loads of two words or of a double are left out."""
    found = {}
    for index, instruction in enumerate(instructions):
        memory = instruction.memory
        if memory is None or memory.kind != "load" or memory.width != 8:
            continue
        target = next((o for o in instruction.operands if isinstance(o, Register)), None)
        kind = _kind(instructions[index + 1 : index + 1 + _LOOK_AHEAD], target.index) if target else ""
        if kind:
            found[index] = kind
    return found


def _kind(after: Sequence[Instruction], low: int) -> str:
    for instruction in after:
        kind = _use(instruction, low)
        if kind:
            return kind
        touched = accessed(instruction)
        if {("R", low), ("R", low + 1)} & (touched.reads | touched.writes):
            # Used as something else, or overwritten.
            return ""
    return ""


def _use(instruction: Instruction, low: int) -> str:
    """What the register pair is to one instruction."""
    operands, names = instruction.operands, instruction.modifiers
    if any(isinstance(o, Address) and o.base and o.base.index == low and not o.base.uniform for o in operands):
        return POINTER if instruction.memory and instruction.memory.space in ("global", "generic") else ""
    sources = [o for o in operands[1:] if isinstance(o, Register) and not o.uniform]
    if instruction.opcode == "IMAD" and names[:1] == ("WIDE",):
        last = operands[-1]
        return POINTER if isinstance(last, Register) and last.index == low else ""
    if instruction.opcode == "LEA" and "HI" not in names and sources:
        return INTEGER if sources[0].index == low else POINTER if any(s.index == low for s in sources) else ""
    if instruction.opcode == "SHF" and ("U64" in names or "S64" in names):
        return INTEGER if any(s.index in (low, low + 1) for s in sources) else ""
    if instruction.opcode == "ISETP" and "EX" in names:
        return INTEGER if any(s.index == low + 1 for s in sources) else ""
    if instruction.opcode == "IADD3" and _carries_out(instruction) and any(s.index == low for s in sources):
        return POINTER
    return ""


def _carries_out(instruction: Instruction) -> bool:
    return len(instruction.operands) > 4
