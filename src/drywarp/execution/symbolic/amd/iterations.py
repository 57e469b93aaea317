"""What the iterations of a loop change, and which AMD instructions make affine numbers non-affine; see `forward`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ....kernel.instruction import Immediate, Instruction, Operand, RegisterRange
from ....kernel.isa.amd import opcodes
from ....kernel.isa.amd.registers import reads_and_writes, result_count
from ....kernel.isa.nvidia.registers import Place
from ..state import (
    ANY_ITERATION,
    ANY_NON_AFFINE,
    ITERATIONS,
    UNSURE,
    Batch,
    Compared,
    Lanes,
    Value,
    even_iterations,
    non_affine_flags,
)
from ..words import Pair, Step
from .operands import SCC, Operands, active, place_of, range_places

_FAR = 1 << 62
_HOW = {"lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "eq": "EQ", "ne": "NE", "lg": "NE"}


def with_iterations(o: Operands, i: Instruction, step: Step) -> Step:
    """A step that marks results that are not affine in the iteration although their sources are."""
    touched = [place_of(*place) for place in sorted(reads_and_writes(i)[1])]
    if opcodes.is_compare(i.opcode):
        return _forgetting(step, touched)
    non_affine = _condition(o, i)
    if non_affine is None:
        return step

    def run(b: Batch) -> None:
        non_affine_at, lanes = non_affine(b), active(b)
        step(b)
        if non_affine_at:
            for file, index in touched:
                row = b.flags[file][index]
                marked = non_affine_flags(row)
                if marked is not row:
                    np.copyto(row, marked, where=lanes if row.shape[1] > 1 else np.bool_(True))

    return run


def _forgetting(step: Step, touched: Iterable[Place]) -> Step:
    """A compare: its result stays the same until it flips (see `note_compare`)."""

    def run(b: Batch) -> None:
        step(b)
        for file, index in touched:
            row = b.flags[file][index]
            row &= np.uint16(~(ANY_ITERATION | ANY_NON_AFFINE) & 0xFFFF)

    return run


def _condition(o: Operands, i: Instruction) -> Callable[[Batch], bool] | None:
    """When an instruction makes its input non-affine; None for never."""
    opcode, operands = i.opcode, i.operands
    if "sdwa" in i.modifiers:
        return lambda b: True
    if opcodes.selects(opcode):
        return lambda b: _iterations(b.flags["s"][SCC])
    if opcode in opcodes.SIGN_AMOUNT:
        amount = operands[opcodes.SIGN_AMOUNT[opcode]]
        if isinstance(amount, Immediate) and amount.value == opcodes.SIGN_BIT:
            return None
    constant = opcodes.CONSTANT_OPERAND.get(opcode)
    if constant is not None and len(operands) > constant:
        amounts = o.flags([operands[constant]])
        return lambda b: _iterations(amounts(b))
    if opcodes.is_product(opcode):
        first = result_count(i)
        left, right = o.flags(operands[first : first + 1]), o.flags(operands[first + 1 : first + 2])
        return lambda b: _iterations(left(b) & right(b))
    return None if opcodes.keeps_affine(opcode) else lambda b: True


def _iterations(flags: Value) -> bool:
    return bool(np.any(np.asarray(flags) & ANY_ITERATION))


def note_compare(
    b: Batch, number: int, relation: str, values: list[Value], flags: list[Value], lanes: Lanes, exact: bool
) -> None:
    """Record a compare of numbers that move with the iterations: its result may change some iterations later.

    `exact` says that they are whole numbers.
    """
    tested = np.atleast_2d(np.asarray(flags[0] | flags[1], np.uint16))
    if not (tested >= ITERATIONS[0]).any():
        return
    wide = any(np.asarray(v).dtype.itemsize > 4 for v in values)
    if wide and exact:
        exact = not any(np.any(v >= _FAR) or np.any(v <= -_FAR) for v in (np.asarray(v) for v in values))
    if not exact or relation not in _HOW:
        b.rely_on(non_affine_flags(tested))
        return
    b.rely_on(tested)
    lanes = lanes & b.spread(even_iterations(tested) & (tested & UNSURE == 0))
    if lanes.any():
        left, right = (np.asarray(v).astype(np.int64) for v in values)
        gap = b.spread(np.atleast_2d(left - right))
        b.state.compared.append(Compared(number, _HOW[relation], b.warps, lanes, gap))


def halves_of(i: Instruction) -> Iterable[Pair]:
    """Registers that are the halves of one 64-bit number in an instruction."""
    operands: list[Operand] = list(i.operands)
    for operand in operands:
        if isinstance(operand, RegisterRange) and operand.count == 2:
            low, high = range_places(operand)
            yield low, high
    # Halves that are added one after the other.
    first = operands[0] if operands else None
    if opcodes.takes_carry(i.opcode) and isinstance(first, RegisterRange) and first.index > 0:
        yield place_of(first.file, first.index - 1), place_of(first.file, first.index)
