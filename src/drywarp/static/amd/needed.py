"""Which AMD instructions must be worked out to know where every warp goes and what it touches."""

from __future__ import annotations

from collections.abc import Sequence

from ...kernel.amd.flow import is_jump
from ...kernel.amd.registers import reads_and_writes, result_count
from ...kernel.instruction import Instruction
from ...kernel.operand import RegisterRange
from ...kernel.registers import Place


def needed_instructions(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Indices of instructions whose results may reach an address, the exec mask or a branch.

    By register names over the whole kernel, whatever the order: some too many, never too few.
    """
    touched = [reads_and_writes(i) for i in instructions]
    wanted: set[Place] = {("exec", 0), ("exec", 1)}
    for (reads, _), i in zip(touched, instructions, strict=True):
        if is_jump(i.opcode):
            wanted |= reads
        if i.memory is not None:
            wanted |= _address_places(i)
    writers: dict[Place, list[int]] = {}
    for index, (_, writes) in enumerate(touched):
        for place in writes:
            writers.setdefault(place, []).append(index)
    chosen: set[int] = set()
    pending = list(wanted)
    while pending:
        for index in writers.get(pending.pop(), ()):
            if index not in chosen:
                chosen.add(index)
                new = touched[index][0] - wanted
                wanted |= new
                pending.extend(new)
    return frozenset(chosen)


def _address_places(i: Instruction) -> set[Place]:
    """Registers of a memory instruction's addresses; the data of a store stand behind its first operand."""
    rest = i.operands[result_count(i) :]
    places: set[Place] = {("m0", 0)} if i.memory is not None and i.memory.kind == "copy" else set()
    for position, operand in enumerate(rest):
        if isinstance(operand, RegisterRange):
            data = operand.file in ("v", "a") and (position > 0) != i.opcode.startswith(("buffer_", "tbuffer_"))
            if not data:
                places |= {(operand.file, operand.index + k) for k in range(operand.count)}
    return places
