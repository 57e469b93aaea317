"""What the code says about its launch: in how many dimensions it counts its threads, which words are addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...kernel.instruction import Instruction
from ...kernel.kernel import Kernel
from ...kernel.operand import Address, Constant, Predicate, Register, Special
from ...kernel.registers import Place, accessed

_LOOK_AHEAD = 256


def dimensions(kernel: Kernel) -> int:
    """1, 2 or 3: the last dimension in which the kernel asks for the number of its thread or block."""
    names = {o.name for i in kernel.instructions for o in i.operands if isinstance(o, Special)}
    for count, axis in ((3, "Z"), (2, "Y")):
        if {f"SR_TID.{axis}", f"SR_CTAID.{axis}"} & names:
            return count
    return 1


def pointers(kernel: Kernel) -> frozenset[int]:
    """Offsets within the parameters of 64-bit words that the code adds to as addresses."""
    base = kernel.parameter_base
    low: set[int] = set()
    high: set[int] = set()
    for index, i in enumerate(kernel.instructions):
        constants = [(n, o) for n, o in enumerate(i.operands) if isinstance(o, Constant) and o.bank == 0]
        for position, operand in constants:
            if operand.register is not None or operand.offset < base:
                continue
            if _is_pair(i, position):
                low.add(operand.offset)
            low |= {operand.offset + 8 * pair for pair in _loaded_addresses(kernel.instructions, index)}
            if "X" in i.modifiers:
                high.add(operand.offset - 4)
    return frozenset(o - base for o in low | high if o >= base and (o - base) % 8 == 0)


def _is_pair(i: Instruction, position: int) -> bool:
    """Whether a constant operand is a 64-bit number that something is added to."""
    if i.opcode in ("IMAD", "UIMAD") and i.modifiers[:1] == ("WIDE",):
        last = [n for n, o in enumerate(i.operands) if not isinstance(o, Predicate)][-1]
        return position == last
    return False


def _loaded_addresses(instructions: Sequence[Instruction], index: int) -> list[int]:
    """Which of the register pairs that a load of constants fills are used as addresses, and not as two numbers."""
    load = instructions[index]
    target = load.operands[0]
    pairs = 2 if "128" in load.modifiers else 1 if "64" in load.modifiers else 0
    if load.opcode not in ("ULDC", "LDC", "LDCU") or not isinstance(target, Register):
        return []
    file = "UR" if target.uniform else "R"
    after = instructions[index + 1 : index + 1 + _LOOK_AHEAD]
    return [pair for pair in range(pairs) if _is_address(after, (file, target.index + 2 * pair))]


def _is_address(after: Sequence[Instruction], low: Place) -> bool:
    """Whether a register is taken for the lower half of an address before it is written again."""
    for i in after:
        if any(place == low for place in _address_uses(i)):
            return True
        if low in accessed(i).writes:
            return False
    return False


def _address_uses(i: Instruction) -> Iterator[Place]:
    """Registers that an instruction takes for the lower half of an address."""
    registers: list[Register] = []
    for operand in i.operands:
        if isinstance(operand, Address):
            registers += [r for r in (operand.base, operand.uniform) if r is not None]
    sources = [o for o in i.operands[1:] if isinstance(o, Register)]
    carries = any(isinstance(o, Predicate) for o in i.operands[1:2])
    if i.opcode in ("IMAD", "UIMAD") and i.modifiers[:1] == ("WIDE",):
        registers += sources[-1:]
    elif (i.opcode in ("IADD3", "UIADD3", "LEA", "ULEA") and carries and "X" not in i.modifiers) or "64" in i.modifiers:
        registers += sources
    for register in registers:
        yield ("UR" if register.uniform else "R", register.index)
