"""Logic, shifts, permutations, bit counts, moves and selections."""

from __future__ import annotations

import numpy as np

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import PT, Immediate, Instruction, Predicate, Register
from .bits import popcount
from .compare import boolean_op, lookup
from .decode import Decoder, Step, opcode
from .frame import Frame
from .integer import THIRTY_TWO, wide
from .operands import ZERO, Fetch, Value

_FALSE = np.bool_(False)


@opcode("MOV UMOV MOV32I", "64 SPILL")
def _move(d: Decoder, i: Instruction) -> Step:
    if "64" in i.modifiers:
        put_pair, pair = d.put_pair(i.operands[0]), d.pair(i.operands[1])
        return lambda f: put_pair(f, pair(f))
    put, source = d.put(i.operands[0]), d.word(i.operands[1])
    return lambda f: put(f, source(f))


@opcode("SEL USEL", "64")
def _select(d: Decoder, i: Instruction) -> Step:
    _, a_op, b_op, p_op = i.operands
    test = d.predicate(p_op)
    if "64" in i.modifiers:
        put_pair, wide_a, wide_b = d.put_pair(i.operands[0]), d.pair(a_op), d.pair(b_op)
        return lambda f: put_pair(f, np.where(test(f), wide_a(f), wide_b(f)))
    put, a, b = d.put(i.operands[0]), d.word(a_op), d.word(b_op)
    return lambda f: put(f, np.where(test(f), a(f), b(f)))


@opcode("LOP3 ULOP3", "LUT PAND")
def _logic(d: Decoder, i: Instruction) -> Step:
    operands = list(i.operands)
    put_test = d.put_predicate(operands.pop(0)) if isinstance(operands[0], Predicate) else None
    destination, a_op, b_op, c_op, table, *rest = operands
    put = d.put(destination)
    a, b, c = d.word(a_op), d.word(b_op), d.word(c_op)
    assert isinstance(table, Immediate)
    logic = lookup(int(table.value), ZERO)
    if put_test is None:
        return lambda f: put(f, logic(a(f), b(f), c(f)))
    given = d.predicate(rest[0]) if rest else (lambda f: _FALSE)
    all_of = "PAND" in i.modifiers
    store_test = put_test

    def run(f: Frame) -> None:
        result = logic(a(f), b(f), c(f))
        put(f, result)
        store_test(f, (result != ZERO) & given(f) if all_of else (result != ZERO) | given(f))

    return run


@opcode("PLOP3 UPLOP3", "LUT")
def _predicate_logic(d: Decoder, i: Instruction) -> Step:
    first, second, a_op, b_op, c_op, table, other_table = i.operands
    put, put_other = d.put_predicate(first), d.put_predicate(second)
    a, b, c = d.predicate(a_op), d.predicate(b_op), d.predicate(c_op)
    assert isinstance(table, Immediate)
    assert isinstance(other_table, Immediate)
    logic, other = lookup(int(table.value), _FALSE), lookup(int(other_table.value), _FALSE)

    def run(f: Frame) -> None:
        x, y, z = a(f), b(f), c(f)
        # A result may be a view of a source that the first write changes.
        result, complement = logic(x, y, z), np.array(other(x, y, z))
        put(f, result)
        put_other(f, complement)

    return run


def _amount(d: Decoder, i: Instruction, bits: int) -> Fetch:
    """The shift count of a shift: clamped at the width, or modulo it with .W."""
    fetch = d.word(i.operands[2])
    top = np.uint32(bits)
    if "W" in i.modifiers:
        return lambda f: fetch(f) & (top - np.uint32(1))
    return lambda f: np.minimum(fetch(f), top)


@opcode("SHF USHF", "L R W U32 S32 U64 S64 HI")
def _shift(d: Decoder, i: Instruction) -> Step:
    names = i.modifiers
    signed = "S32" in names or "S64" in names
    bits = 64 if "U64" in names or "S64" in names else 32
    put, low, high = d.put(i.operands[0]), d.word(i.operands[1]), d.word(i.operands[3])
    amount = _amount(d, i, bits)
    if "L" in names and "HI" not in names:
        return lambda f: put(f, low(f) << amount(f))
    if "R" in names and "HI" in names:
        # The upper word of the shifted pair depends on the upper word alone.
        if signed:
            return lambda f: put(f, (high(f).view(np.int32) >> amount(f).astype(np.int32)).view(np.uint32))
        return lambda f: put(f, high(f) >> amount(f))
    if "L" in names:
        return lambda f: put(f, _funnel_left(low(f), high(f), amount(f)))
    return lambda f: put(f, _funnel_right(low(f), high(f), amount(f), signed))


def _funnel_left(low: Value, high: Value, amount: Value) -> Value:
    both = wide(low) | wide(high) << THIRTY_TWO
    return ((both << amount.astype(np.uint64)) >> THIRTY_TWO).astype(np.uint32)


def _funnel_right(low: Value, high: Value, amount: Value, signed: bool) -> Value:
    both = wide(low) | wide(high) << THIRTY_TWO
    if signed:
        return (both.view(np.int64) >> amount.astype(np.int64)).astype(np.uint32)
    return (both >> amount.astype(np.uint64)).astype(np.uint32)


_PERMUTE_MODES = ("F4E", "B4E", "RC8", "ECL", "ECR", "RC16")


def permutation(mode: str, position: int, low_bits: int) -> int:
    """Source byte for result byte `position` in the special modes of a permutation (PTX prmt)."""
    n = low_bits & 3
    if mode == "F4E":
        return n + position
    if mode == "B4E":
        return (n - position) & 7
    if mode == "RC8":
        return n
    if mode == "ECL":
        return max(n, position)
    if mode == "ECR":
        return min(n, position)
    return (n & 1) * 2 + (position & 1)


@opcode("PRMT UPRMT", "F4E B4E RC8 ECL ECR RC16")
def _permute(d: Decoder, i: Instruction) -> Step:
    put = d.put(i.operands[0])
    a, selector, c = (d.word(o) for o in i.operands[1:4])
    mode = next((m for m in i.modifiers if m in _PERMUTE_MODES), "")
    known = d.known(i.operands[2])
    if known is not None:
        nibbles = [known >> 4 * k & 15 for k in range(4)]
        if mode:
            nibbles = [permutation(mode, k, known) for k in range(4)]
        return lambda f: put(f, _permute_known(a(f), c(f), nibbles))
    if mode:
        table = np.array([[permutation(mode, k, n) for k in range(4)] for n in range(4)], np.uint32)
        return lambda f: put(f, _permute_any(a(f), c(f), [table[selector(f) & np.uint32(3), k] for k in range(4)]))
    return lambda f: put(
        f, _permute_any(a(f), c(f), [(selector(f) >> np.uint32(4 * k)) & np.uint32(15) for k in range(4)])
    )


def _permute_known(a: Value, c: Value, nibbles: list[int]) -> Value:
    """Bytes picked by constant nibbles; a nibble's bit 3 takes the sign of the byte instead."""
    result: Value = ZERO
    for position, nibble in enumerate(nibbles):
        source, byte = (c, nibble & 3) if nibble & 4 else (a, nibble & 3)
        field = (source >> np.uint32(8 * byte)) & np.uint32(0xFF)
        if nibble & 8:
            field = (field >> np.uint32(7)) * np.uint32(0xFF)
        result = result | field << np.uint32(8 * position)
    return result


def _permute_any(a: Value, c: Value, nibbles: list[Value]) -> Value:
    both = wide(a) | wide(c) << THIRTY_TWO
    result: Value = ZERO
    for position, nibble in enumerate(nibbles):
        field = (both >> wide((nibble & np.uint32(7)) << np.uint32(3))).astype(np.uint32) & np.uint32(0xFF)
        sign = (field >> np.uint32(7)) * np.uint32(0xFF)
        field = np.where((nibble & np.uint32(8)) != ZERO, sign, field)
        result = result | field << np.uint32(8 * position)
    return result


@opcode("BMSK UBMSK", "C W")
def _bit_mask(d: Decoder, i: Instruction) -> Step:
    put, start, width = d.put(i.operands[0]), d.word(i.operands[1]), d.word(i.operands[2])
    wrap = "W" in i.modifiers

    def run(f: Frame) -> None:
        s, w = wide(start(f)), wide(width(f))
        if wrap:
            s, w = s & np.uint64(31), w & np.uint64(31)
        else:
            s, w = np.minimum(s, THIRTY_TWO), np.minimum(w, THIRTY_TWO)
        put(f, (((np.uint64(1) << w) - np.uint64(1)) << s).astype(np.uint32))

    return run


@opcode("SGXT USGXT", "U32 W")
def _extend(d: Decoder, i: Instruction) -> Step:
    put, value, width = d.put(i.operands[0]), d.word(i.operands[1]), d.word(i.operands[2])
    unsigned, wrap = "U32" in i.modifiers, "W" in i.modifiers

    def run(f: Frame) -> None:
        n = width(f) & np.uint32(31) if wrap else np.minimum(width(f), np.uint32(32))
        rest = np.uint32(32) - n
        moved = value(f) << rest
        put(f, moved >> rest if unsigned else (moved.view(np.int32) >> rest.astype(np.int32)).view(np.uint32))

    return run


@opcode("POPC UPOPC")
def _population(d: Decoder, i: Instruction) -> Step:
    put, a = d.put(i.operands[0]), d.word(i.operands[1])
    return lambda f: put(f, popcount(a(f)).astype(np.uint32))


@opcode("BREV UBREV")
def _reverse(d: Decoder, i: Instruction) -> Step:
    put, a = d.put(i.operands[0]), d.word(i.operands[1])
    stages = [(np.uint32(s), np.uint32(m)) for s, m in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F))]

    def run(f: Frame) -> None:
        x = a(f)
        for shift, mask in stages:
            x = (x >> shift) & mask | (x & mask) << shift
        put(f, np.asarray(x).byteswap())

    return run


@opcode("FLO UFLO", "U32 SH")
def _leading_one(d: Decoder, i: Instruction) -> Step:
    operands = [o for o in i.operands if not isinstance(o, Predicate)]
    put, a = d.put(operands[0]), d.word(operands[1])
    signed, from_top = "U32" not in i.modifiers, "SH" in i.modifiers

    def run(f: Frame) -> None:
        x = a(f)
        if signed:
            x = x ^ (x.view(np.int32) >> np.int32(31)).view(np.uint32)
        # The exponent of the exact double is the index of the top set bit.
        _, exponent = np.frexp(x.astype(np.float64))
        index = exponent.astype(np.uint32) - np.uint32(1)
        if from_top:
            index = np.where(x == ZERO, ~ZERO, np.uint32(31) - index)
        put(f, index)

    return run


@opcode("P2R", "B0 B1 B2 B3")
def _predicates_to_register(d: Decoder, i: Instruction) -> Step:
    destination, _, base_op, mask_op = i.operands
    if not isinstance(mask_op, Immediate):
        raise UnsupportedInstructionError("a mask in a register")
    assert isinstance(destination, Register)
    field = next((n for n in (*i.modifiers, destination.select) if n.startswith("B")), "B0")
    shift, mask = np.uint32(8 * int(field[1])), int(mask_op.value) & 0x7F
    put, base = d.put(destination), d.raw(base_op)
    sources = [(np.uint32(k), d.predicate(Predicate(k))) for k in range(7) if mask >> k & 1]
    keep = ~(np.uint32(mask) << shift)

    def run(f: Frame) -> None:
        result: Value = base(f) & keep
        for bit, source in sources:
            result = result | source(f).astype(np.uint32) << (bit + shift)
        put(f, result)

    return run


@opcode("R2P", "B0 B1 B2 B3")
def _register_to_predicates(d: Decoder, i: Instruction) -> Step:
    _, source_op, mask_op = i.operands
    if not isinstance(mask_op, Immediate) or not isinstance(source_op, Register):
        raise UnsupportedInstructionError("a mask in a register")
    field = source_op.select or "B0"
    source, mask = d.raw(source_op), int(mask_op.value)
    bits = [
        (np.uint32(1 << (k + 8 * int(field[1]))), d.put_predicate(Predicate(k))) for k in range(PT) if mask >> k & 1
    ]

    def run(f: Frame) -> None:
        word = source(f)
        for bit, put in bits:
            put(f, (word & bit) != ZERO)

    return run


@opcode("PSETP UPSETP", "AND OR XOR")
def _predicate_set(d: Decoder, i: Instruction) -> Step:
    first, second, a_op, b_op, c_op = i.operands
    inner, outer = (boolean_op(n) for n in i.modifiers[:2])
    put, put_other = d.put_predicate(first), d.put_predicate(second)
    a, b, c = d.predicate(a_op), d.predicate(b_op), d.predicate(c_op)

    def run(f: Frame) -> None:
        test, given = inner(a(f), b(f)), c(f)
        complement = outer(~test, given)
        put(f, outer(test, given))
        put_other(f, complement)

    return run
