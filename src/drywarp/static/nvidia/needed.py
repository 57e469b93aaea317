"""Which instructions must be worked out to know where every warp goes and what it touches; no others are run."""

from __future__ import annotations

from collections.abc import Sequence

from ...kernel.instruction import Instruction
from ...kernel.operand import Address, Register
from ...kernel.registers import Place, accessed, address_places

_MOVES_WARPS = frozenset("BRA BRX BRXU JMP JMX JMXU CALL RET EXIT KILL BREAK BSYNC WARPSYNC".split())


def needed_instructions(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Indices of instructions whose results may reach an address, a guard or a branch.

    By register names over the whole kernel, whatever the order: some too many, never too few.
    """
    touched = [accessed(i) for i in instructions]
    wanted: set[Place] = set()
    reloads = any(i.memory and i.memory.space == "local" and i.memory.kind == "load" for i in instructions)
    for index, instruction in enumerate(instructions):
        if instruction.opcode in _MOVES_WARPS:
            wanted |= touched[index].reads
        if instruction.memory is not None:
            wanted |= address_places(instruction)
            if reloads and instruction.memory.space == "local" and instruction.memory.kind == "store":
                wanted |= touched[index].reads
    chosen: set[int] = set()
    writers: dict[Place, list[int]] = {}
    for index, places in enumerate(touched):
        for place in places.writes:
            writers.setdefault(place, []).append(index)
    pending = list(wanted)
    while pending:
        for index in writers.get(pending.pop(), ()):
            if index not in chosen:
                chosen.add(index)
                new = touched[index].reads - wanted
                wanted |= new
                pending.extend(new)
    return frozenset(chosen)


def address_pairs(instruction: Instruction) -> set[Place]:
    """Lower halves, by register file, of 64-bit numbers that an instruction takes for an address or makes."""
    found: set[Place] = set()
    if instruction.memory is not None and instruction.memory.space in ("global", "generic"):
        for operand in instruction.operands:
            if isinstance(operand, Address):
                for register in (operand.base, operand.uniform):
                    if isinstance(register, Register) and not operand.base_unsigned32:
                        found.add(("U" if register.uniform else "R", register.index))
    if instruction.opcode in ("IMAD", "UIMAD") and instruction.modifiers[:1] == ("WIDE",):
        first = instruction.operands[0]
        if isinstance(first, Register):
            found.add(("U" if first.uniform else "R", first.index))
    return found
