"""Integer arithmetic: adds with carries, multiply-adds, scaled adds, minima, compares, dot products.

The uniform opcodes compute the same on (rows, 1) arrays and share the handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import UnsupportedInstructionError
from ..kernel.instruction import Instruction
from ..kernel.operand import PT, RZ, Constant, Operand, Predicate, Register
from .decode import Decoder, Step, opcode
from .frame import Frame
from .operands import ZERO, Fetch, Put, Value, constant

LOW = np.uint64(0xFFFFFFFF)
THIRTY_TWO = np.uint64(32)
ONE64 = np.uint64(1)


def wide(value: Value) -> Value:
    """32-bit words zero-extended."""
    return value.astype(np.uint64)


def signed_wide(value: Value) -> Value:
    """32-bit words sign-extended to 64 bits."""
    return value.view(np.int32).astype(np.int64).view(np.uint64)


def boolean_op(name: str) -> Callable[[Value, Value], Value]:
    """The combining operation of a compare: AND, OR or XOR."""
    operations: dict[str, Callable[[Value, Value], Value]] = {
        "AND": np.bitwise_and,
        "OR": np.bitwise_or,
        "XOR": np.bitwise_xor,
    }
    return operations[name]


def _negated(operand: Operand) -> bool:
    return isinstance(operand, Register | Constant) and (operand.negate or operand.invert)


def split_predicates(
    operands: Sequence[Operand],
) -> tuple[list[Operand], list[Operand], list[Operand]]:
    """Operands after the destination: carry-outs before the sources, the sources, carry-ins after them."""
    rest = list(operands)
    outs: list[Operand] = []
    while rest and isinstance(rest[0], Predicate):
        outs.append(rest.pop(0))
    ins: list[Operand] = []
    while rest and isinstance(rest[-1], Predicate):
        ins.insert(0, rest.pop())
    return outs, rest, ins


def _carry_term(d: Decoder, operand: Operand, extended: bool) -> Fetch:
    """A 64-bit addend: a negated one is ~x + 1 without truncation, or ~x where a carry comes in."""
    fetch = d.raw(operand)
    if not _negated(operand):
        return lambda f: wide(fetch(f))
    if extended or (isinstance(operand, Register | Constant) and operand.invert):
        return lambda f: wide(~fetch(f))
    return lambda f: wide(~fetch(f)) + ONE64


@opcode("IADD3 UIADD3 IADD UIADD VIADD UVIADD", "X 64")
def _add(d: Decoder, i: Instruction) -> Step:
    outs, sources, ins = split_predicates(i.operands[1:])
    if "64" in i.modifiers:
        put_pair, left, right = d.put_pair(i.operands[0]), d.pair(sources[0]), d.pair(sources[1])
        return lambda f: put_pair(f, left(f) + right(f))
    put = d.put(i.operands[0])
    extended = "X" in i.modifiers
    carries_out = [o for o in outs if isinstance(o, Predicate) and o.index != PT]
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
        none: Frame = None  # type: ignore[assignment]
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


@opcode("IABS UIABS")
def _absolute(d: Decoder, i: Instruction) -> Step:
    put, a = d.put(i.operands[0]), d.word(i.operands[1])
    return lambda f: put(f, np.abs(a(f).view(np.int32)).view(np.uint32))


def _choice(d: Decoder, operand: Operand, unsigned: bool) -> Callable[[Frame, Value, Value], Value]:
    """Minimum where the predicate is true, maximum where it is false."""
    kind = np.uint32 if unsigned else np.int32
    if isinstance(operand, Predicate) and operand.index == PT:
        choose = np.maximum if operand.negate else np.minimum
        return lambda f, a, b: choose(a.view(kind), b.view(kind)).view(np.uint32)
    test = d.predicate(operand)

    def select(f: Frame, a: Value, b: Value) -> Value:
        a, b = a.view(kind), b.view(kind)
        chosen: Value = np.where(test(f), np.minimum(a, b), np.maximum(a, b))
        return chosen.view(np.uint32)

    return select


def _relu(names: Sequence[str]) -> Callable[[Value], Value]:
    if "RELU" in names:
        return lambda value: np.maximum(value.view(np.int32), np.int32(0)).view(np.uint32)
    return lambda value: value


@opcode("IMNMX VIMNMX UIMNMX UVIMNMX", "U32 S32 RELU")
def _minimum(d: Decoder, i: Instruction) -> Step:
    _, (a_op, b_op), ins = split_predicates(i.operands[1:])
    put, a, b = d.put(i.operands[0]), d.word(a_op), d.word(b_op)
    choose, relu = _choice(d, ins[-1], "U32" in i.modifiers), _relu(i.modifiers)
    return lambda f: put(f, relu(choose(f, a(f), b(f))))


@opcode("VIADDMNMX", "U32 S32 RELU")
def _add_minimum(d: Decoder, i: Instruction) -> Step:
    _, (a_op, b_op, c_op), ins = split_predicates(i.operands[1:])
    put, a, b, c = d.put(i.operands[0]), d.word(a_op), d.word(b_op), d.word(c_op)
    choose, relu = _choice(d, ins[-1], "U32" in i.modifiers), _relu(i.modifiers)
    return lambda f: put(f, relu(choose(f, np.asarray(a(f) + b(f)), c(f))))


@opcode("VIMNMX3", "U32 S32 RELU")
def _minimum_of_three(d: Decoder, i: Instruction) -> Step:
    _, (a_op, b_op, c_op), ins = split_predicates(i.operands[1:])
    put, a, b, c = d.put(i.operands[0]), d.word(a_op), d.word(b_op), d.word(c_op)
    unsigned, relu = "U32" in i.modifiers, _relu(i.modifiers)
    first = _choice(d, ins[0], unsigned)
    second = _choice(d, ins[-1], unsigned)
    return lambda f: put(f, relu(second(f, first(f, a(f), b(f)), c(f))))


_COMPARE: dict[str, Callable[[Value, Value], Value]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip
_STRICT = {"LT": np.less, "LE": np.less, "GT": np.greater, "GE": np.greater}


@opcode("ISETP UISETP", "EQ NE LT LE GT GE U32 AND OR XOR EX S64 U64")
def _compare(d: Decoder, i: Instruction) -> Step:
    names = i.modifiers
    how = next(n for n in names if n in _COMPARE)
    combine = boolean_op(next(n for n in names if n in ("AND", "OR", "XOR")))
    first, second, a_op, b_op, with_op, *extra = i.operands
    put, put_other, given = d.put_predicate(first), d.put_predicate(second), d.predicate(with_op)
    only_first = isinstance(second, Predicate) and second.index == PT
    plain = isinstance(with_op, Predicate) and with_op.index == PT and "AND" in names and not with_op.negate
    test: Fetch
    if "S64" in names or "U64" in names:
        kind64 = np.uint64 if "U64" in names else np.int64
        a, b, compare = d.pair(a_op), d.pair(b_op), _COMPARE[how]
        test = lambda f: compare(a(f).view(kind64), b(f).view(kind64))  # noqa: E731
    else:
        kind = np.uint32 if "U32" in names else np.int32
        a, b, compare = d.word(a_op), d.word(b_op), _COMPARE[how]
        if "EX" in names:
            test = _extended_compare(a, b, kind, how, d.predicate(extra[0]))
        else:
            test = lambda f: compare(a(f).view(kind), b(f).view(kind))  # noqa: E731
    if only_first and plain:
        return lambda f: put(f, test(f))

    def run(f: Frame) -> None:
        result, other = test(f), given(f)
        complement = combine(~result, other)
        put(f, combine(result, other))
        put_other(f, complement)

    return run


def _extended_compare(a: Fetch, b: Fetch, kind: type, how: str, low: Fetch) -> Fetch:
    """Compare of upper halves; `low` is the same compare of the lower halves, unsigned."""
    if how == "EQ":
        return lambda f: (a(f) == b(f)) & low(f)
    if how == "NE":
        return lambda f: (a(f) != b(f)) | low(f)
    strict = _STRICT[how]

    def test(f: Frame) -> Value:
        x, y = a(f).view(kind), b(f).view(kind)
        return strict(x, y) | ((x == y) & low(f))

    return test


def _part(value: Value, kind: str, position: int) -> Value:
    """Byte or half `position` of words as int32."""
    size = 8 if kind in ("S8", "U8") else 16
    field = (value >> np.uint32(size * position)) & np.uint32((1 << size) - 1)
    narrow = {"S8": np.int8, "U8": np.uint8, "S16": np.int16, "U16": np.uint16}[kind]
    return field.astype(narrow).astype(np.int32)


@opcode("IDP", "4A 2A LO HI S8 U8 S16 U16")
def _dot_product(d: Decoder, i: Instruction) -> Step:
    types = [n for n in i.modifiers if n in ("S8", "U8", "S16", "U16")]
    put: Put = d.put(i.operands[0])
    a, b, c = (d.word(o) for o in i.operands[1:4])
    four = "4A" in i.modifiers
    shift = 2 if "HI" in i.modifiers else 0
    kinds = (types[0], types[1] if len(types) > 1 else types[0])

    def dot(f: Frame) -> None:
        x, y = a(f), b(f)
        total = c(f).view(np.int32)
        for k in range(4 if four else 2):
            total = total + _part(x, kinds[0], k) * _part(y, kinds[1], k + (0 if four else shift))
        put(f, np.asarray(total).view(np.uint32))

    return dot


@opcode("VABSDIFF", "U32")
def _absolute_difference(d: Decoder, i: Instruction) -> Step:
    put = d.put(i.operands[0])
    a, b, c = (d.word(o) for o in i.operands[1:4])
    extend = wide if "U32" in i.modifiers else signed_wide

    def run(f: Frame) -> None:
        difference = np.abs((extend(a(f)) - extend(b(f))).view(np.int64)).astype(np.uint32)
        put(f, difference + c(f))

    return run


@opcode("VABSDIFF4", "U8 S8 ACC")
def _absolute_differences_of_bytes(d: Decoder, i: Instruction) -> Step:
    """Differences of the four bytes, in their places or, with .ACC, all added up."""
    accumulate = "ACC" in i.modifiers
    if not accumulate and d.known(i.operands[3]) != 0:
        raise UnsupportedInstructionError("an addend without .ACC")
    kind = "U8" if "U8" in i.modifiers else "S8"
    put = d.put(i.operands[0])
    a, b, c = (d.word(o) for o in i.operands[1:4])

    def run(f: Frame) -> None:
        x, y, total = a(f), b(f), c(f)
        for k in range(4):
            difference: Value = np.abs(_part(x, kind, k) - _part(y, kind, k))
            total = total + (difference.view(np.uint32) << np.uint32(0 if accumulate else 8 * k))
        put(f, total)

    return run
