"""Integer compares, minima, absolute values and dot products, and three-input logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import PT, Instruction, Operand, Predicate
from .decode import Decoder, Step, opcode
from .frame import Frame
from .integer import PARTS, packed_minimum, parts_of, signed_wide, split_predicates, wide
from .operands import ZERO, Fetch, Put, Value, constant


def boolean_op(name: str) -> Callable[[Value, Value], Value]:
    """The combining operation of a compare: AND, OR or XOR."""
    operations: dict[str, Callable[[Value, Value], Value]] = {
        "AND": np.bitwise_and,
        "OR": np.bitwise_or,
        "XOR": np.bitwise_xor,
    }
    return operations[name]


_MINIMA = "U32 S32 S64 U64 RELU " + " ".join(PARTS)


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


@opcode("IMNMX VIMNMX UIMNMX UVIMNMX", _MINIMA)
def _minimum(d: Decoder, i: Instruction) -> Step:
    if parts_of(i) is not None:
        return packed_minimum(d, i)
    if "S64" in i.modifiers or "U64" in i.modifiers:
        return _minimum_wide(d, i)
    _, (a_op, b_op), ins = split_predicates(i.operands[1:])
    put, a, b = d.put(i.operands[0]), d.word(a_op), d.word(b_op)
    choose, relu = _choice(d, ins[-1], "U32" in i.modifiers), _relu(i.modifiers)
    return lambda f: put(f, relu(choose(f, a(f), b(f))))


def _minimum_wide(d: Decoder, i: Instruction) -> Step:
    """Minimum or maximum of register pairs; here the predicates precede the result."""
    told, (to, a_op, b_op), ins = split_predicates(i.operands)
    if any(isinstance(p, Predicate) and p.index != PT for p in told) or "RELU" in i.modifiers:
        raise UnsupportedInstructionError("predicates of a 64-bit minimum")
    put, a, b, smallest = d.put_pair(to), d.pair(a_op), d.pair(b_op), d.predicate(ins[0])
    kind = np.uint64 if "U64" in i.modifiers else np.int64

    def run(f: Frame) -> None:
        x, y = (np.asarray(value).view(kind) for value in (a(f), b(f)))
        put(f, np.where(smallest(f), np.minimum(x, y), np.maximum(x, y)).view(np.uint64))

    return run


@opcode("VIADDMNMX", _MINIMA)
def _add_minimum(d: Decoder, i: Instruction) -> Step:
    if parts_of(i) is not None:
        return packed_minimum(d, i, adds=True)
    _, (a_op, b_op, c_op), ins = split_predicates(i.operands[1:])
    put, a, b, c = d.put(i.operands[0]), d.word(a_op), d.word(b_op), d.word(c_op)
    choose, relu = _choice(d, ins[-1], "U32" in i.modifiers), _relu(i.modifiers)
    return lambda f: put(f, relu(choose(f, np.asarray(a(f) + b(f)), c(f))))


@opcode("VIMNMX3", _MINIMA)
def _minimum_of_three(d: Decoder, i: Instruction) -> Step:
    if parts_of(i) is not None:
        return packed_minimum(d, i)
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
    kind = "U8" if "U8" in i.modifiers else "S8"
    put = d.put(i.operands[0])
    a, b, c = (d.word(o) for o in i.operands[1:4])
    # Without .ACC the last operand would be what places hold that no difference goes to: there are none.
    c = c if accumulate else constant(ZERO)

    def run(f: Frame) -> None:
        x, y, total = a(f), b(f), c(f)
        for k in range(4):
            difference: Value = np.abs(_part(x, kind, k) - _part(y, kind, k))
            total = total + (difference.view(np.uint32) << np.uint32(0 if accumulate else 8 * k))
        put(f, total)

    return run


# Three-input logic by look-up table, over words or booleans.
#
# Index bit of the table: a << 2 | b << 1 | c. With the table's upper nibble for a = 1 and the lower
# for a = 0, the result is low(b, c) ^ (a & (low ^ high)(b, c)); both factors are one of the sixteen
# functions of two inputs.

Logic3 = Callable[[Value, Value, Value], Value]
Logic2 = Callable[[Value, Value], Value]

_TWO_INPUT: dict[int, Logic2] = {
    0x1: lambda b, c: ~(b | c),
    0x2: lambda b, c: ~b & c,
    0x3: lambda b, c: ~b,
    0x4: lambda b, c: b & ~c,
    0x5: lambda b, c: ~c,
    0x6: lambda b, c: b ^ c,
    0x7: lambda b, c: ~(b & c),
    0x8: lambda b, c: b & c,
    0x9: lambda b, c: ~(b ^ c),
    0xA: lambda b, c: c,
    0xB: lambda b, c: ~b | c,
    0xC: lambda b, c: b,
    0xD: lambda b, c: b | ~c,
    0xE: lambda b, c: b | c,
}
_COMMON: dict[int, Logic3] = {
    0xC0: lambda a, b, c: a & b,
    0xFC: lambda a, b, c: a | b,
    0x3C: lambda a, b, c: a ^ b,
    0x30: lambda a, b, c: a & ~b,
    0x96: lambda a, b, c: a ^ b ^ c,
    0xF8: lambda a, b, c: a | (b & c),
    0xFE: lambda a, b, c: a | b | c,
    0x80: lambda a, b, c: a & b & c,
    0xEA: lambda a, b, c: (a & b) | c,
    0xE2: lambda a, b, c: c ^ (b & (a ^ c)),
}


def lookup(table: int, zero: Value) -> Logic3:
    """The function of a look-up table of 8 bits; `zero` is the all-false value of its type."""
    table &= 0xFF
    if table in _COMMON:
        return _COMMON[table]
    low, difference = table & 15, (table & 15) ^ (table >> 4)

    def two(nibble: int) -> Logic2:
        if nibble == 0:
            return lambda b, c: zero
        if nibble == 15:
            return lambda b, c: ~zero
        return _TWO_INPUT[nibble]

    base, change = two(low), two(difference)
    if difference == 0:
        return lambda a, b, c: base(b, c)
    if low == 0:
        return lambda a, b, c: a & change(b, c)
    return lambda a, b, c: base(b, c) ^ (a & change(b, c))
