"""Instructions on 32-bit words: integers, bits, moves, and exchange between lanes."""

from __future__ import annotations

from typing import Any

from .lane_arithmetic import (
    add,
    add_wide,
    below,
    below_signed,
    below_wide,
    both,
    differ,
    either,
    equal,
    left,
    left_wide,
    merge,
    mul,
    mul_wide,
    ones_of,
    reversed_bits,
    right,
    right_signed,
    right_wide,
    right_wide_signed,
    sub,
    table_bit,
    zeros_above,
)
from .lanes import (
    at_lane,
    join,
    load,
    lower,
    lowest,
    ones,
    select,
    select_wide,
    splat,
    splat_wide,
    store,
    upper,
    widen,
    widen_signed,
)
from .layout import (
    ABSOLUTE,
    ADD,
    ADD_CARRY,
    ADD_WIDE,
    BIT_MASK,
    COLUMNS,
    EXTEND,
    FULL,
    FUNNEL_LEFT,
    FUNNEL_RIGHT,
    IMM,
    IMM2,
    IN0,
    IN1,
    LANES,
    LEADING_ONE,
    LOGIC,
    MAXIMUM_OF_SUM,
    MEMBERS,
    MINIMUM,
    MULTIPLY_ADD,
    MULTIPLY_ADD_CARRY,
    MULTIPLY_WIDE,
    OP,
    OUT0,
    OUT1,
    PERMUTE,
    POPULATION,
    PREDICATES_TO_REGISTER,
    REVERSE,
    SCALED_ADD,
    SELECT,
    SELECT_WIDE,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    SHUFFLE,
    SUB,
    TO_UNIFORM,
    VOTE,
    A,
    B,
    C,
)
from .operands import executing, fetch, fetch_pair, lanes_of, put, put_lanes, put_pair
from .pointers import inner


@inner
def _logic(table: int, a: Any, b: Any, c: Any) -> Any:
    """Any function of three bits; bit a << 2 | b << 1 | c of the table is its value."""
    if table == 0xC0:
        return both(a, b)
    if table == 0x96:
        return differ(differ(a, b), c)
    with_both = merge(c, table_bit(table, 7), table_bit(table, 6))
    with_a = merge(b, with_both, merge(c, table_bit(table, 5), table_bit(table, 4)))
    with_b = merge(c, table_bit(table, 3), table_bit(table, 2))
    return merge(a, with_a, merge(b, with_b, merge(c, table_bit(table, 1), table_bit(table, 0))))


@inner
def _clamped(amount: Any, limit: int, wraps: int) -> Any:
    if wraps:
        return both(amount, splat(limit - 1))
    return select(below(amount, splat(limit)), amount, splat(limit))


@inner
def _permuted(a: Any, selector: Any, c: Any) -> Any:
    """Bytes of c:a picked by the selector's nibbles; bit 3 of a nibble takes the sign of the byte instead."""
    pair, result, byte = join(a, c), splat(0), splat(0xFF)
    for k in range(4):
        nibble = right(selector, splat(4 * k))
        place = left(both(nibble, splat(7)), splat(3))
        field = both(lower(right_wide(pair, widen(place))), byte)
        sign = mul(right(field, splat(7)), byte)
        whole = equal(both(nibble, splat(8)), splat(0))
        result = either(result, left(select(whole, field, sign), splat(8 * k)))
    return result


@inner
def _bit_mask(start: Any, width: Any, wraps: int) -> Any:
    # The lower word of 2^32 is zero; minus one, it is all ones.
    field = sub(left(splat(1), _clamped(width, 32, wraps)), splat(1))
    return left(field, _clamped(start, 32, wraps))


@inner
def _extended(value: Any, width: Any, wraps: int, unsigned: int) -> Any:
    rest = sub(splat(32), _clamped(width, 32, wraps))
    moved = left(value, rest)
    return right(moved, rest) if unsigned else right_signed(moved, rest)


@inner
def _leading_one(x: Any, signed: int, from_top: int) -> Any:
    if signed:
        x = differ(x, right_signed(x, splat(31)))
    above = zeros_above(x)
    if from_top:
        return select(equal(x, splat(0)), splat(FULL), above)
    return sub(splat(31), above)


@inner
def _least(a: Any, b: Any, unsigned: int, lanes: int) -> Any:
    """The smaller one for `lanes`, the larger one for the others."""
    less = below(a, b) if unsigned else below_signed(a, b)
    return select(less ^ lanes ^ FULL, a, b)


@inner
def _shuffled(mode: int, a: Any, b: Any, c: Any, scratch: Any) -> Any:
    """Values of other lanes (mode 0 up, 1 down, 2 butterfly, 3 indexed); the lanes whose source is in their segment.

    The values are left in `scratch`.
    """
    store(scratch, 0, a, FULL)
    store(scratch, LANES, b, FULL)
    store(scratch, 2 * LANES, c, FULL)
    valid = 0
    for lane in range(LANES):
        step, clamp = scratch[LANES + lane] & 31, scratch[2 * LANES + lane] & FULL
        segment = (clamp >> 8) & 31
        low = lane & segment
        limit = low | (clamp & 31 & ~segment)
        other = lane - step
        if mode == 1:
            other = lane + step
        elif mode == 2:
            other = lane ^ step
        elif mode == 3:
            other = low | (step & ~segment)
        if other >= limit if mode == 0 else other <= limit:
            valid |= 1 << lane
        else:
            other = lane
        scratch[3 * LANES + lane] = scratch[other]
    return valid


@inner
def _packed_predicates(core: Any, row: int, w: int, value: Any) -> Any:
    result = both(value, splat(core.code[row + IMM2]))
    for number in range(7):
        if core.code[row + IMM] >> number & 1:
            bit = splat(number + core.code[row + SUB])
            result = either(result, left(ones(lanes_of(core, number * 2, w)), bit))
    return result


@inner
def run_words(core: Any, k: int, scratch: Any) -> None:
    """Run instruction `k` for all warps of the batch."""
    code, row = core.code, k * COLUMNS
    op, how, imm = code[row + OP], code[row + SUB], code[row + IMM]
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        lanes = executing(core, k, w)
        if lanes == 0:
            continue
        given = lanes_of(core, code[row + IN0], w)
        a, b, c = fetch(core, row + A, w), fetch(core, row + B, w), fetch(core, row + C, w)
        # A move's result, unless it is another instruction.
        result = a
        if op == ADD:
            result = add(add(a, b), c)
        elif op == MULTIPLY_ADD:
            result = add(mul(a, b), c)
        elif op == MULTIPLY_ADD_CARRY:
            result = add(add(mul(a, b), c), ones(given))
        elif op == LOGIC:
            result = _logic(imm, a, b, c)
            if code[row + OUT0] >= 0:
                some = equal(result, splat(0)) ^ FULL
                put_lanes(core, code[row + OUT0], w, some & given if how else some | given, lanes)
        elif op == SHIFT_LEFT:
            result = left(a, _clamped(b, imm, how & 1))
        elif op == SHIFT_RIGHT:
            amount = _clamped(b, imm, how & 1)
            result = right_signed(c, amount) if how & 2 else right(c, amount)
        elif op == FUNNEL_LEFT:
            result = upper(left_wide(join(a, c), widen(_clamped(b, imm, how & 1))))
        elif op == FUNNEL_RIGHT:
            steps, pair = widen(_clamped(b, imm, how & 1)), join(a, c)
            result = lower(right_wide_signed(pair, steps) if how & 2 else right_wide(pair, steps))
        elif op == SELECT:
            result = select(given, a, b)
        elif op == PERMUTE:
            result = _permuted(a, b, c)
        elif op == BIT_MASK:
            result = _bit_mask(a, b, how)
        elif op == EXTEND:
            result = _extended(a, b, how & 1, how & 2)
        elif op == POPULATION:
            result = ones_of(a)
        elif op == LEADING_ONE:
            result = _leading_one(a, how & 1, how & 2)
        elif op == REVERSE:
            result = reversed_bits(a)
        elif op == ABSOLUTE:
            result = select(below_signed(a, splat(0)), sub(splat(0), a), a)
        elif op == MINIMUM:
            result = _least(a, b, how, given)
        elif op == MAXIMUM_OF_SUM:
            result = _least(add(a, b), c, how, given)
        elif op == SHUFFLE:
            put_lanes(core, code[row + OUT0], w, _shuffled(how, a, b, c, scratch), lanes)
            result = load(scratch, 3 * LANES)
        elif op == VOTE:
            ballot = given & lanes
            result = splat(ballot)
            everyone = ballot == lanes or (how == 2 and ballot == 0)
            holds = ballot != 0 if how == 0 else everyone
            put_lanes(core, code[row + OUT0], w, FULL if holds else 0, lanes)
        elif op == TO_UNIFORM:
            result = splat(at_lane(a, lowest(lanes)))
            put_lanes(core, code[row + OUT0], w, equal(a, result) ^ FULL, lanes)
        elif op == PREDICATES_TO_REGISTER:
            result = _packed_predicates(core, row, w, a)
        put(core, row, w, result, lanes)


# Instructions on 64-bit integers, and those whose carries make them so.


@inner
def _product(a: Any, b: Any, unsigned: int) -> Any:
    if unsigned:
        return mul_wide(widen(a), widen(b))
    return mul_wide(widen_signed(a), widen_signed(b))


@inner
def _scaled(core: Any, row: int, w: int, how: int) -> Any:
    """A shifted addend: the word itself, the upper word of a pair, or that of a sign-extended word."""
    value, shift = fetch(core, row + A, w), splat_wide(core.code[row + IMM])
    if how == 0:
        return widen(lower(left_wide(widen(value), shift)))
    pair = join(value, fetch(core, row + C, w)) if how == 1 else widen_signed(value)
    return widen(upper(left_wide(pair, shift)))


@inner
def _add_carries(core: Any, row: int, w: int, total: Any, lanes: int) -> None:
    """Store a sum of words, and whether it reaches 2^32 and twice that."""
    put(core, row, w, lower(total), lanes)
    put_lanes(core, core.code[row + OUT0], w, below_wide(total, splat_wide(1 << 32)) ^ FULL, lanes)
    put_lanes(core, core.code[row + OUT1], w, below_wide(total, splat_wide(2 << 32)) ^ FULL, lanes)


@inner
def run_wide(core: Any, k: int) -> None:
    """Run instruction `k` for all warps of the batch."""
    code, row = core.code, k * COLUMNS
    op, how = code[row + OP], code[row + SUB]
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        lanes = executing(core, k, w)
        if lanes == 0:
            continue
        given = lanes_of(core, code[row + IN0], w)
        if op == ADD_CARRY or op == SCALED_ADD:
            # Negated terms are ~x here; the missing ones are added to the constant.
            addend = widen(fetch(core, row + B, w))
            if op == SCALED_ADD:
                total = add_wide(_scaled(core, row, w, how), addend)
            else:
                total = add_wide(add_wide(widen(fetch(core, row + A, w)), addend), widen(fetch(core, row + C, w)))
            total = add_wide(total, splat_wide(code[row + IMM2]))
            carries = add_wide(widen(ones(given)), widen(ones(lanes_of(core, code[row + IN1], w))))
            _add_carries(core, row, w, add_wide(total, carries), lanes)
        elif op == MULTIPLY_WIDE:
            product = _product(fetch(core, row + A, w), fetch(core, row + B, w), how & 1)
            before = add_wide(product, fetch_pair(core, row + C, w))
            total = add_wide(before, widen(ones(given)))
            if how & 2:
                put(core, row, w, upper(total), lanes)
            else:
                put_pair(core, row, w, total, lanes)
            over = below_wide(before, product) | below_wide(total, before)
            put_lanes(core, code[row + OUT0], w, over, lanes)
        else:
            total = fetch_pair(core, row + A, w)
            if op == ADD_WIDE:
                total = add_wide(total, fetch_pair(core, row + B, w))
            elif op == SELECT_WIDE:
                total = select_wide(given, total, fetch_pair(core, row + B, w))
            put_pair(core, row, w, total, lanes)
