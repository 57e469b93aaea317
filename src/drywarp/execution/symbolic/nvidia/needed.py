"""Which instructions must be evaluated to know where every warp goes and what it accesses; no others are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ....kernel.instruction import RZ, Address, Constant, Immediate, Instruction, Operand, Predicate, Register, Special
from ....kernel.isa.nvidia.opcodes import having
from ....kernel.isa.nvidia.registers import Place, accessed, address_places
from ....kernel.kernel import Kernel
from ...emulator.tcgen05_form import FORMATS
from ..parameters import INTEGER, POINTER
from ..state import (
    ANY_ITERATION,
    ITERATIONS,
    NON_AFFINE_SHIFT,
    UNSURE,
    Batch,
    Compared,
    Value,
    even_iterations,
    non_affine_flags,
)
from ..words import reaching
from .decoder import StaticDecoder

_MOVES_WARPS = having("moves")


def needed_instructions(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Indices of instructions whose results may reach an address, a guard, a branch or the shape of a product."""
    wanted: set[Place] = set()
    reloads = any(i.memory and i.memory.space == "local" and i.memory.kind == "load" for i in instructions)
    for instruction in instructions:
        if instruction.opcode in _MOVES_WARPS:
            wanted |= accessed(instruction).reads
        if (shape := shape_place(instruction)) is not None:
            wanted.add(shape)
        if instruction.memory is not None:
            spills = reloads and instruction.memory.space == "local" and instruction.memory.kind == "store"
            whole = spills or instruction.class_ == "bulk_copy"
            wanted |= accessed(instruction).reads if whole else address_places(instruction)
    return reaching(instructions, wanted)


def shape_place(i: Instruction) -> Place | None:
    """The uniform register that holds the shape of a product in tensor memory, or how many columns are allocated."""
    if i.opcode in FORMATS:
        addresses = [o for o in i.operands if isinstance(o, Address)]
        held = addresses[4].descriptor if len(addresses) > 4 else None
    else:
        last = i.operands[-1] if i.opcode == "UTCATOMSWS" and "ALIGN" in i.modifiers else None
        held = last if isinstance(last, Register) else None
    return ("UR", held.index) if held is not None else None


def far_side(copy: Instruction) -> int:
    """The operand of a bulk copy that holds a 64-bit address: in global memory, or of a tensor map."""
    return 0 if copy.opcode == "UBLKRED" or (copy.opcode == "UBLKCP" and copy.modifiers[:1] == ("G",)) else 1


def address_pairs(instruction: Instruction) -> set[Place]:
    """Lower halves, by register file, of 64-bit numbers that an instruction uses as an address or produces."""
    found: set[Place] = set()
    if instruction.memory is not None and instruction.memory.space in ("global", "generic"):
        operands = instruction.operands
        if instruction.class_ == "bulk_copy":
            operands = operands[far_side(instruction) :][:1]
        for operand in operands:
            if isinstance(operand, Address):
                for register in (operand.base, operand.uniform):
                    if isinstance(register, Register) and not operand.base_unsigned32:
                        found.add(("U" if register.uniform else "R", register.index))
    if instruction.opcode in ("IMAD", "UIMAD") and instruction.modifiers[:1] == ("WIDE",):
        first = instruction.operands[0]
        if isinstance(first, Register):
            found.add(("U" if first.uniform else "R", first.index))
    return found


# Which instructions turn numbers that are affine in a loop's iteration into non-affine ones.

_EVEN, _LEAST = having("even"), having("least")
_SIGN = 31


def non_affine(d: StaticDecoder, i: Instruction) -> Callable[[Batch, Value], Value]:
    """A function of a batch that combines the flags of all sources into the result's."""
    sources = [o for o in i.operands[1:] if not isinstance(o, Predicate)]
    if i.opcode in ("IMAD", "UIMAD", "IMUL") and "HI" not in i.modifiers and len(sources) >= 2:
        return _product(d, sources[0], sources[1])
    if i.opcode in ("LDC", "ULDC", "LDCU"):
        return _bend
    if i.opcode in _EVEN or _even_shift(i):
        return _nothing
    if i.opcode in _LEAST and len(sources) >= 2:
        return _minimum(d, i, sources[0], sources[1])
    return _bend


def _nothing(batch: Batch, flags: Value) -> Value:
    return flags


def _bend(batch: Batch, flags: Value) -> Value:
    return non_affine_flags(flags)


def _product(d: StaticDecoder, a: Operand, b: Operand) -> Callable[[Batch, Value], Value]:
    """A product of two numbers that both move."""

    def flags_of(batch: Batch, flags: Value) -> Value:
        if np.ndim(flags) and (flags >= ITERATIONS[0]).any():
            left, right = (np.asarray(d.operand_flags(batch, o), np.uint16) for o in (a, b))
            both = left & right & ANY_ITERATION
            if both.any():
                return flags | both << np.uint16(NON_AFFINE_SHIFT)
        return flags

    return flags_of


def _even_shift(i: Instruction) -> bool:
    """A left shift by a constant, and a sign extension to the upper word."""
    if i.opcode not in ("SHF", "USHF") or len(i.operands) < 4:
        return False
    amount, low = i.operands[2], i.operands[1]
    if not isinstance(amount, Immediate):
        return False
    nothing_below = isinstance(low, Register) and low.index == RZ
    if "R" in i.modifiers:
        return nothing_below and "S32" in i.modifiers and "HI" in i.modifiers and amount.value == _SIGN
    return True


def _minimum(d: StaticDecoder, i: Instruction, a: Operand, b: Operand) -> Callable[[Batch, Value], Value]:
    """A minimum follows one of its sources until they meet: a compare like any other."""
    left, right = d.number(a), d.number(b)
    kind = np.uint32 if "U32" in i.modifiers else np.int32
    if any(m.endswith(("x2", "x4")) for m in i.modifiers):
        return _bend

    def flags_of(batch: Batch, flags: Value) -> Value:
        if np.ndim(flags) and (flags >= ITERATIONS[0]).any():
            lanes = batch.lanes() & batch.spread(even_iterations(flags) & (flags & UNSURE == 0))
            if lanes.any():
                x, y = (batch.spread(np.asarray(w(batch)).view(kind)).astype(np.int64) for w in (left, right))
                batch.state.compared.append(Compared(i.pc // 16, "LT", batch.warps, lanes, x - y))
        return flags

    return flags_of


# What a 64-bit load returns, judged by its first use: an address, a long integer, or something else.

_LOOK_AHEAD = 96


def wide_loads(instructions: Sequence[Instruction]) -> dict[int, str]:
    """Kinds of 64-bit loads by instruction index; loads of two words or of a double are excluded."""
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
    """How one instruction uses the register pair."""
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


# What the code reveals about its launch: the dimensions of its threads, and which words are addresses.


def dimensions(kernel: Kernel) -> int:
    """1, 2 or 3: the last dimension in which the kernel reads its thread or block index."""
    names = {o.name for i in kernel.instructions for o in i.operands if isinstance(o, Special)}
    for count, axis in ((3, "Z"), (2, "Y")):
        if {f"SR_TID.{axis}", f"SR_CTAID.{axis}"} & names:
            return count
    return 1


def pointers(kernel: Kernel) -> frozenset[int]:
    """Offsets within the parameters of 64-bit words that the code uses as base addresses."""
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
    """Whether a constant operand is a 64-bit number to which something is added."""
    if i.opcode in ("IMAD", "UIMAD") and i.modifiers[:1] == ("WIDE",):
        return position == max(n for n, o in enumerate(i.operands) if not isinstance(o, Predicate))
    return False


def _loaded_addresses(instructions: Sequence[Instruction], index: int) -> list[int]:
    """Which register pairs filled by a load of constants are used as addresses, not as two numbers."""
    load = instructions[index]
    target = load.operands[0]
    pairs = 2 if "128" in load.modifiers else 1 if "64" in load.modifiers else 0
    if load.opcode not in ("ULDC", "LDC", "LDCU") or not isinstance(target, Register):
        return []
    file = "UR" if target.uniform else "R"
    after = instructions[index + 1 : index + 1 + _LOOK_AHEAD]
    return [pair for pair in range(pairs) if _is_address(after, (file, target.index + 2 * pair))]


def _is_address(after: Sequence[Instruction], low: Place) -> bool:
    """Whether a register is used as the lower half of an address before it is overwritten."""
    for i in after:
        if any(place == low for place in _address_uses(i)):
            return True
        if low in accessed(i).writes:
            return False
    return False


def _address_uses(i: Instruction) -> Iterator[Place]:
    """Registers that an instruction uses as the lower half of an address."""
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
