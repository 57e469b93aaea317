"""What the iterations of a loop change, and which AMD instructions make affine numbers non-affine; see `forward`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

from ....kernel.cfg import ControlFlowGraph
from ....kernel.instruction import Immediate, Instruction, Operand, RegisterRange
from ....kernel.isa.amd.registers import reads_and_writes, result_count
from ....kernel.isa.nvidia.registers import Place
from ..flags import ANY_BENT, ANY_TURN, BENT_SHIFT, TURNS, UNSURE, Compared, Flags, Lanes, Value
from ..flow import StaticLoop
from ..state import Batch
from ..words import Step
from .operands import SCC, Operands, active, place_of, range_places

_COMPARES = re.compile(r"(s_cmpk?|v_cmpx?)_\w+?_[iuf]\d+$")
_EVEN = re.compile(
    r"v_(mov|accvgpr_(read|write|mov))_b\d+|v_pk_mov_b32|v_(add|sub|subrev|addc|subb|subbrev)_(co_)?[ui]32|v_add3_u32"
    r"|s_(mov|movk|add|sub|addc|subb|addk|mulk|lshl[1-4]_add)_[biu]\d+|v_readfirstlane_b32"
)
_PRODUCTS = re.compile(r"(v_mul_lo|v_mul|v_mad|v_mad_u64|v_mad_i64|s_mul)_[iu]32(_[iu]24)?$")
_AMOUNTS = {"v_lshlrev_b32": 1, "v_lshlrev_b64": 1, "v_lshl_add_u32": 2, "v_lshl_add_u64": 2, "v_add_lshl_u32": 3,
            "s_lshl_b32": 2, "s_lshl_b64": 2, "v_cndmask_b32": 3, "v_readlane_b32": 2}  # fmt: skip
"""Position of the operand that must stay constant: the shift amount, or the lane whose number is taken."""
_SIGNS = {"v_ashrrev_i32": 1, "s_ashr_i32": 2}
_SIGN_BIT = 31
_BY_CONDITION = ("s_cselect", "s_cmov")
_FAR = 1 << 62
_HOW = {"lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "eq": "EQ", "ne": "NE", "lg": "NE"}


def with_turns(o: Operands, i: Instruction, step: Step) -> Step:
    """A step that marks results that are not affine in the iteration although their sources are."""
    touched = [place_of(*place) for place in sorted(reads_and_writes(i)[1])]
    if _COMPARES.match(i.opcode):
        return _forgetting(step, touched)
    bent = _condition(o, i)
    if bent is None:
        return step

    def run(b: Batch) -> None:
        bends, lanes = bent(b), active(b)
        step(b)
        if bends:
            for file, index in touched:
                row = b.flags[file][index]
                marked = bent_flags(row)
                if marked is not row:
                    np.copyto(row, marked, where=lanes if row.shape[1] > 1 else np.bool_(True))

    return run


def _forgetting(step: Step, touched: Iterable[Place]) -> Step:
    """A compare: its result stays the same until it flips (see `note_compare`)."""

    def run(b: Batch) -> None:
        step(b)
        for file, index in touched:
            row = b.flags[file][index]
            row &= np.uint16(~(ANY_TURN | ANY_BENT) & 0xFFFF)

    return run


def _condition(o: Operands, i: Instruction) -> Callable[[Batch], bool] | None:
    """When an instruction makes its input non-affine; None for never."""
    opcode, operands = i.opcode, i.operands
    if "sdwa" in i.modifiers:
        return lambda b: True
    if opcode.startswith(_BY_CONDITION):
        return lambda b: _turns(b.flags["s"][SCC])
    if opcode in _SIGNS:
        amount = operands[_SIGNS[opcode]]
        if isinstance(amount, Immediate) and amount.value == _SIGN_BIT:
            return None
    if opcode in _AMOUNTS and len(operands) > _AMOUNTS[opcode]:
        amounts = o.flags([operands[_AMOUNTS[opcode]]])
        return lambda b: _turns(amounts(b))
    if _PRODUCTS.match(opcode):
        first = result_count(i)
        left, right = o.flags(operands[first : first + 1]), o.flags(operands[first + 1 : first + 2])
        return lambda b: _turns(left(b) & right(b))
    return None if _EVEN.fullmatch(opcode) else lambda b: True


def _turns(flags: Value) -> bool:
    return bool(np.any(np.asarray(flags) & ANY_TURN))


def bent_flags(flags: Flags) -> Flags:
    """Flags of numbers that are not affine in their sources; the same array if none moves."""
    if not (flags >= TURNS[0]).any():
        return flags
    return flags | (flags & np.uint16(ANY_TURN)) << np.uint16(BENT_SHIFT)


def note_compare(
    b: Batch, number: int, relation: str, values: list[Value], flags: list[Value], lanes: Lanes, exact: bool
) -> None:
    """Record a compare of numbers that move with the iterations: its result may change some iterations later.

    `exact` says that they are whole numbers.
    """
    tested = np.atleast_2d(np.asarray(flags[0] | flags[1], np.uint16))
    if not (tested >= TURNS[0]).any():
        return
    wide = any(np.asarray(v).dtype.itemsize > 4 for v in values)
    if wide and exact:
        exact = not any(np.any(v >= _FAR) or np.any(v <= -_FAR) for v in (np.asarray(v) for v in values))
    if not exact or relation not in _HOW:
        b.rely_on(bent_flags(tested))
        return
    b.rely_on(tested)
    lanes = lanes & b.spread((tested & ANY_TURN & ~(tested >> np.uint16(BENT_SHIFT)) != 0) & (tested & UNSURE == 0))
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
    carries = i.opcode.startswith(("s_addc_", "s_subb_", "v_addc_", "v_subb_", "v_subbrev_"))
    if carries and isinstance(first, RegisterRange) and first.index > 0:
        yield place_of(first.file, first.index - 1), place_of(first.file, first.index)
