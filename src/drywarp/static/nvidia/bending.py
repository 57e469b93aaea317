"""Which instructions turn numbers that move evenly with the turns of a loop into ones that do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...kernel.instruction import Instruction
from ...kernel.operand import RZ, Immediate, Operand, Predicate, Register
from ..forward import Compared
from ..state import Batch
from ..words import ANY_TURN, BENT_SHIFT, TURNS, UNSURE, Value
from .decoder import StaticDecoder

_EVEN = frozenset(
    "MOV UMOV IADD3 UIADD3 IADD UIADD VIADD UVIADD LEA ULEA R2UR S2R S2UR CS2R CS2UR SEL USEL SHFL VOTE VOTEU"
    " PLOP3 UPLOP3 PSETP UPSETP P2R LDC ULDC LDCU BMOV".split()
)
_LEAST = frozenset("IMNMX VIMNMX UIMNMX UVIMNMX".split())
_SIGN = 31


def bending(d: StaticDecoder, i: Instruction) -> Callable[[Batch, Value], Value]:
    """A function of a batch that makes the result's flags of those of all sources."""
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
    return bent_flags(flags)


def bent_flags(flags: Value) -> Value:
    """Flags of a result that does not follow what it is made of evenly."""
    if np.ndim(flags) and (flags >= TURNS[0]).any():
        return flags | (flags & np.uint16(ANY_TURN)) << np.uint16(BENT_SHIFT)
    return flags


def even_turns(flags: Value) -> Value:
    """Where a number changes from turn to turn of some loop and is not bent by it."""
    return flags & ANY_TURN & ~(flags >> np.uint16(BENT_SHIFT)) != 0


def _product(d: StaticDecoder, a: Operand, b: Operand) -> Callable[[Batch, Value], Value]:
    """A product of two numbers that both move."""

    def flags_of(batch: Batch, flags: Value) -> Value:
        if np.ndim(flags) and (flags >= TURNS[0]).any():
            left, right = (np.asarray(d.operand_flags(batch, o), np.uint16) for o in (a, b))
            both = left & right & ANY_TURN
            if both.any():
                return flags | both << np.uint16(BENT_SHIFT)
        return flags

    return flags_of


def _even_shift(i: Instruction) -> bool:
    """A shift to the left by a number in the code, and the sign that is put above a word."""
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
        if np.ndim(flags) and (flags >= TURNS[0]).any():
            lanes = batch.lanes() & batch.spread(even_turns(flags) & (flags & UNSURE == 0))
            if lanes.any():
                x, y = (batch.spread(np.asarray(w(batch)).view(kind)).astype(np.int64) for w in (left, right))
                batch.state.compared.append(Compared(i.pc // 16, "LT", batch.warps, lanes, x - y))
        return flags

    return flags_of
