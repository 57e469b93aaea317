"""What the iterations of a loop change, and which AMD instructions make affine numbers non-affine; see `forward`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ....kernel.cfg import ControlFlowGraph
from ....kernel.instruction import Immediate, Instruction, Operand, RegisterRange
from ....kernel.isa.amd import opcodes
from ....kernel.isa.amd.registers import reads_and_writes, result_count
from ....kernel.isa.nvidia.registers import Place
from ..flow import StaticLoop
from ..state import (
    ANY_ITERATION,
    ANY_NON_AFFINE,
    ITERATIONS,
    NON_AFFINE_SHIFT,
    UNSURE,
    Batch,
    Compared,
    Flags,
    Lanes,
    Value,
)
from ..words import Step
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


def non_affine_flags(flags: Flags) -> Flags:
    """Flags of numbers that are not affine in their sources; the same array if none moves."""
    if not (flags >= ITERATIONS[0]).any():
        return flags
    return flags | (flags & np.uint16(ANY_ITERATION)) << np.uint16(NON_AFFINE_SHIFT)


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
    moving = tested & ANY_ITERATION & ~(tested >> np.uint16(NON_AFFINE_SHIFT)) != 0
    lanes = lanes & b.spread(moving & (tested & UNSURE == 0))
    if lanes.any():
        left, right = (np.asarray(v).astype(np.int64) for v in values)
        gap = b.spread(np.atleast_2d(left - right))
        b.state.compared.append(Compared(number, _HOW[relation], b.warps, lanes, gap))


class Loops:
    """The registers that the loops of a kernel change, as far as addresses and branches depend on them."""

    def __init__(
        self,
        instructions: tuple[Instruction, ...],
        cfg: ControlFlowGraph,
        loops: tuple[StaticLoop, ...],
        needed: frozenset[int],
    ) -> None:
        self._inside = [
            [instructions[n] for b in loop.blocks for n in range(cfg.blocks[b].start, cfg.blocks[b].end) if n in needed]
            for loop in loops
        ]
        self._changed: dict[int, list[Place]] = {}
        self._pairs: dict[int, list[tuple[Place, Place]]] = {}

    def changed(self, loop: int) -> list[Place]:
        """Registers that a loop writes."""
        if loop not in self._changed:
            written = {place_of(*place) for i in self._inside[loop] for place in reads_and_writes(i)[1]}
            self._changed[loop] = sorted(written)
        return self._changed[loop]

    def pairs(self, loop: int) -> list[tuple[Place, Place]]:
        """Those that are the halves of one 64-bit number."""
        if loop not in self._pairs:
            names = set(self.changed(loop))
            found = {pair for i in self._inside[loop] for pair in _pairs_of(i) if set(pair) <= names}
            # A register that is the lower half of one number and the upper half of another counts on its own.
            uppers = {high for _, high in found}
            self._pairs[loop] = sorted(pair for pair in found if pair[0] not in uppers)
        return self._pairs[loop]


def _pairs_of(i: Instruction) -> Iterable[tuple[Place, Place]]:
    operands: list[Operand] = list(i.operands)
    for operand in operands:
        if isinstance(operand, RegisterRange) and operand.count == 2:
            low, high = range_places(operand)
            yield low, high
    # Halves that are added one after the other.
    first = operands[0] if operands else None
    if opcodes.takes_carry(i.opcode) and isinstance(first, RegisterRange) and first.index > 0:
        yield place_of(first.file, first.index - 1), place_of(first.file, first.index)
