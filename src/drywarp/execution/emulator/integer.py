"""Integer arithmetic on words, and on halves and bytes packed into one.

The uniform opcodes compute the same on (rows, 1) arrays and share the handlers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import PT, RZ, Constant, Instruction, Operand, Predicate, Register
from .decode import Decoder, Step, opcode
from .frame import Frame
from .operands import ZERO, Fetch, Value, constant

# Integers packed into a word: halves or bytes added, and their minima and maxima.

PARTS: dict[str, Any] = {
    "U16x2": np.uint16, "S16x2": np.int16, "U8x4": np.uint8, "S8x4": np.int8, "16x2": np.uint16, "8x4": np.uint8,
}  # fmt: skip
"""Modifiers that specify how a word is divided, and the type of the parts."""


def parts_of(i: Instruction) -> Any:
    """The type of an instruction's parts; None for one that works on whole words."""
    return next((PARTS[name] for name in i.modifiers if name in PARTS), None)


def _parts(d: Decoder, operand: Operand, kind: Any) -> Fetch:
    """A word as its parts, shape (rows, 32 · parts); a minus sign applies to each part."""
    negate = isinstance(operand, Register | Constant) and operand.negate
    fetch = d.raw(operand)

    def load(f: Frame) -> Value:
        value = np.ascontiguousarray(f.spread(fetch(f))).view(kind)
        return np.negative(value) if negate else value

    return load


def split_predicates(operands: Sequence[Operand]) -> tuple[list[Operand], list[Operand], list[Operand]]:
    """Operands after the destination: carry-outs before the sources, the sources, predicates after them."""
    rest = list(operands)
    outs: list[Operand] = []
    while rest and isinstance(rest[0], Predicate):
        outs.append(rest.pop(0))
    ins: list[Operand] = []
    while rest and isinstance(rest[-1], Predicate):
        ins.insert(0, rest.pop())
    return outs, rest, ins


def packed_add(d: Decoder, i: Instruction) -> Step:
    """Sums of the parts of two words, each modulo its own size or, with .ISAT, clamped to its range."""
    kind = parts_of(i)
    _, (a_op, b_op), _ = split_predicates(i.operands[1:])
    put = d.put(i.operands[0])
    if "ISAT" not in i.modifiers:
        a, b = _parts(d, a_op, kind), _parts(d, b_op, kind)
        return lambda f: put(f, (a(f) + b(f)).view(np.uint32))
    a, b = _parts(d, _positive(a_op), kind), _parts(d, _positive(b_op), kind)
    first, second = (-1 if _negated(operand) else 1 for operand in (a_op, b_op))
    ends = np.iinfo(kind)

    def add(f: Frame) -> None:
        total = a(f).astype(np.int64) * first + b(f).astype(np.int64) * second
        put(f, np.clip(total, ends.min, ends.max).astype(kind).view(np.uint32))

    return add


def _positive(operand: Operand) -> Operand:
    return replace(operand, negate=False) if isinstance(operand, Register | Constant) else operand


def packed_minimum(d: Decoder, i: Instruction, adds: bool = False) -> Step:
    """Minima or maxima of the parts of two or three words; with `adds` the first two are added first.

    Predicates before the sources, the lowest part's first, report where the first word's part was taken.
    """
    kind = parts_of(i)
    told, sources, choices = split_predicates(i.operands[1:])
    put = d.put(i.operands[0])
    fetches = [_parts(d, operand, kind) for operand in sources]
    smallest = [d.predicate(choices[0]), d.predicate(choices[-1])]
    put_told = [d.put_predicate(p) for p in told]
    relu = "RELU" in i.modifiers
    count = 4 // np.dtype(kind).itemsize

    def chosen(f: Frame, which: int, x: Value, y: Value) -> Value:
        return np.where(np.repeat(f.spread(smallest[which](f)), count, axis=1), np.minimum(x, y), np.maximum(x, y))

    def run(f: Frame) -> None:
        first, *others = [fetch(f) for fetch in fetches]
        if adds:
            first = first + others.pop(0)
        value = first
        for which, other in enumerate(others):
            value = chosen(f, which, value, other)
        taken = (value == first).reshape(f.rows, -1, count)
        if relu:
            value = np.maximum(value, kind(0))
        put(f, np.ascontiguousarray(value).view(np.uint32))
        for part, put_part in enumerate(put_told):
            put_part(f, taken[..., part])

    return run


THIRTY_TWO = np.uint64(32)
ONE64 = np.uint64(1)


def wide(value: Value) -> Value:
    """32-bit words zero-extended."""
    return value.astype(np.uint64)


def signed_wide(value: Value) -> Value:
    """32-bit words sign-extended to 64 bits."""
    return value.view(np.int32).astype(np.int64).view(np.uint64)


def _negated(operand: Operand) -> bool:
    return isinstance(operand, Register | Constant) and (operand.negate or operand.invert)


def _carry_term(d: Decoder, operand: Operand, extended: bool) -> Fetch:
    """A 64-bit addend: a negated one is ~x + 1 without truncation, or ~x if there is a carry-in."""
    fetch = d.raw(operand)
    if not _negated(operand):
        return lambda f: wide(fetch(f))
    if extended or (isinstance(operand, Register | Constant) and operand.invert):
        return lambda f: wide(~fetch(f))
    return lambda f: wide(~fetch(f)) + ONE64


@opcode("IADD3 UIADD3 IADD UIADD VIADD UVIADD", "X 64 S32 ISAT " + " ".join(PARTS))
def _add(d: Decoder, i: Instruction) -> Step:
    if parts_of(i) is not None:
        return packed_add(d, i)
    if "ISAT" in i.modifiers:
        return _add_saturated(d, i)
    outs, sources, ins = split_predicates(i.operands[1:])
    extended = "X" in i.modifiers
    carries_out = [o for o in outs if isinstance(o, Predicate) and o.index != PT]
    if "64" in i.modifiers:
        if carries_out or ins or extended:
            raise UnsupportedInstructionError("carry of a 64-bit sum")
        put_pair, (first, *further) = d.put_pair(i.operands[0]), [d.pair(source) for source in sources]
        return lambda f: put_pair(f, sum((term(f) for term in further), first(f)))
    put = d.put(i.operands[0])
    if not extended and not carries_out:
        a, *others = [d.word(s) for s in sources if d.known(s) != 0] or [constant(ZERO)]
        if len(others) == 1:
            b = others[0]
            return lambda f: put(f, a(f) + b(f))
        if len(others) == 2:
            b, c = others
            return lambda f: put(f, a(f) + b(f) + c(f))
        return lambda f: put(f, a(f))
    terms = [_carry_term(d, s, extended) for s in sources]
    carries = [d.predicate(p) for p in ins] if extended else []
    put_carries = [(d.put_predicate(p), np.uint64(n + 1)) for n, p in enumerate(outs)]

    def add(f: Frame) -> None:
        total = terms[0](f)
        for term in terms[1:]:
            total = total + term(f)
        for carry in carries:
            total = total + carry(f)
        put(f, total.astype(np.uint32))
        over = total >> THIRTY_TWO
        for put_carry, level in put_carries:
            put_carry(f, over >= level)

    return add


def _add_saturated(d: Decoder, i: Instruction) -> Step:
    """A sum of signed words, clamped to their range."""
    put, sources = d.put(i.operands[0]), [(d.raw(o), -1 if _negated(o) else 1) for o in i.operands[1:3]]
    if "S32" not in i.modifiers:
        raise UnsupportedInstructionError("modifier .ISAT without .S32")

    def add(f: Frame) -> None:
        total = sum(np.asarray(word(f)).view(np.int32).astype(np.int64) * sign for word, sign in sources)
        put(f, np.clip(total, -(2**31), 2**31 - 1).astype(np.uint32))

    return add


@opcode("IMAD UIMAD", "MOV U32 SHL IADD X WIDE HI")
def _multiply_add(d: Decoder, i: Instruction) -> Step:
    names = i.modifiers
    if "WIDE" in names or "HI" in names:
        return _multiply_wide(d, i)
    outs, (a_op, b_op, c_op), ins = split_predicates(i.operands[1:])
    if outs:
        raise UnsupportedInstructionError("carry-out of a 32-bit multiply-add")
    put = d.put(i.operands[0])
    a, b = d.word(a_op), d.word(b_op)
    if "X" in names:
        c = d.raw(c_op)
        carry = d.predicate(ins[0])
        if _negated(c_op):
            return lambda f: put(f, a(f) * b(f) + ~c(f) + carry(f).astype(np.uint32))
        return lambda f: put(f, a(f) * b(f) + c(f) + carry(f).astype(np.uint32))
    c = d.word(c_op)
    if 0 in (d.known(a_op), d.known(b_op)):
        return lambda f: put(f, c(f))
    if d.known(b_op) == 1:
        return lambda f: put(f, a(f) + c(f))
    if d.known(c_op) == 0:
        return lambda f: put(f, a(f) * b(f))
    return lambda f: put(f, a(f) * b(f) + c(f))


def _product(d: Decoder, a_op: Operand, b_op: Operand, unsigned: bool) -> Fetch:
    extend = wide if unsigned else signed_wide
    a, b = d.word(a_op), d.word(b_op)
    known = d.known(b_op)
    if known is not None:
        none: Any = None
        factor = extend(b(none))
        return lambda f: extend(a(f)) * factor
    return lambda f: extend(a(f)) * extend(b(f))


def _multiply_wide(d: Decoder, i: Instruction) -> Step:
    """The 64-bit sum of a product and a register pair; .HI keeps its upper half.

    The addend of .HI is a pair too: the division idiom puts zero in its lower half.
    """
    outs, (a_op, b_op, c_op), ins = split_predicates(i.operands[1:])
    product, addend = _product(d, a_op, b_op, "U32" in i.modifiers), d.pair(c_op)
    if "X" in i.modifiers and _negated(c_op):
        raise UnsupportedInstructionError("a negated addend with a carry")
    put = d.put_pair(i.operands[0])
    if "HI" in i.modifiers:
        put_word = d.put(i.operands[0])
        put = lambda f, value: put_word(f, (value >> THIRTY_TWO).astype(np.uint32))  # noqa: E731
    carry = d.predicate(ins[0]) if ins else None
    put_carry = d.put_predicate(outs[0]) if outs else None
    if carry is None and put_carry is None:
        if isinstance(c_op, Register) and c_op.index == RZ and not c_op.invert:
            return lambda f: put(f, product(f))
        return lambda f: put(f, product(f) + addend(f))

    def multiply(f: Frame) -> None:
        p = product(f)
        total = p + addend(f)
        over = total < p
        if carry is not None:
            before = total
            total = total + carry(f)
            over = over | (total < before)
        put(f, total)
        if put_carry is not None:
            put_carry(f, over)

    return multiply


@opcode("LEA ULEA", "HI X SX32")
def _scaled_add(d: Decoder, i: Instruction) -> Step:
    outs, sources, ins = split_predicates(i.operands[1:])
    names = i.modifiers
    shift = d.known(sources[-1])
    if shift is None:
        raise UnsupportedInstructionError("a shift in a register")
    shift &= 31
    put = d.put(i.operands[0])
    extended = "X" in names
    carry = d.predicate(ins[0]) if extended and ins else None
    carries_out = [d.put_predicate(o) for o in outs]
    b = _carry_term(d, sources[1], extended)
    a = d.word(sources[0])
    if "HI" in names:
        scaled = _scaled_high(d, sources, "SX32" in names, shift)
    else:
        amount = np.uint32(shift)
        if not carries_out and carry is None:
            addend = d.word(sources[1])
            return lambda f: put(f, (a(f) << amount) + addend(f))
        if _negated(sources[0]) and not extended:
            # As of every negated addend, the carry is that of ~x + 1.
            raw = d.raw(sources[0])
            scaled = lambda f: wide(~(raw(f) << amount)) + ONE64  # noqa: E731
        else:
            scaled = lambda f: wide(a(f) << amount)  # noqa: E731

    def add(f: Frame) -> None:
        total = scaled(f) + b(f)
        if carry is not None:
            total = total + carry(f)
        put(f, total.astype(np.uint32))
        for put_carry in carries_out:
            put_carry(f, (total >> THIRTY_TWO) != 0)

    return add


def _scaled_high(d: Decoder, sources: Sequence[Operand], sign_extend: bool, shift: int) -> Fetch:
    """The high word of (c:a) << shift, or of a sign-extended, as a 64-bit number."""
    low, amount = d.word(sources[0]), np.uint64(shift)
    if sign_extend:
        return lambda f: (signed_wide(low(f)) << amount) >> THIRTY_TWO
    high = d.word(sources[2])
    return lambda f: ((wide(low(f)) | wide(high(f)) << THIRTY_TWO) << amount) >> THIRTY_TWO
