"""Instructions on single precision, and conversions between it and integers."""

from __future__ import annotations

from typing import Any

from .lane_arithmetic import (
    add,
    below_signed,
    both,
    dadd,
    dbelow,
    dceil,
    ddiv,
    dequal,
    dfloor,
    dfma,
    dmul,
    double_to_signed,
    double_to_single,
    double_to_unsigned,
    drint,
    dsqrt,
    dsub,
    dtrunc,
    dunordered,
    either,
    equal,
    fadd,
    fbelow,
    fequal,
    flush,
    fma,
    fmul,
    funordered,
    signed_to_double,
    signed_to_single,
    single_to_double,
    sub,
    unsigned_to_double,
    unsigned_to_single,
)
from .lanes import join, ones, select, splat, splat_wide, upper
from .layout import (
    COLUMNS,
    DOUBLE_ADD,
    DOUBLE_FROM_FLOAT,
    DOUBLE_FROM_SIGNED,
    DOUBLE_FROM_UNSIGNED,
    DOUBLE_MULTIPLY,
    FLOAT_ADD,
    FLOAT_FUSED,
    FLOAT_MINIMUM,
    FLOAT_MULTIPLY,
    FLUSH_OUT,
    FROM_SIGNED,
    FROM_UNSIGNED,
    FROM_UNSIGNED_UP,
    IMM,
    IN0,
    MEMBERS,
    OP,
    RECIPROCAL,
    RECIPROCAL_ROOT,
    ROOT,
    ROUND_FLOAT,
    SUB,
    TO_INTEGER,
    UPPER_RECIPROCAL,
    UPPER_RECIPROCAL_ROOT,
    A,
    B,
    C,
)
from .operands import executing, fetch, fetch_pair, lanes_of, put, put_pair
from .pointers import inner

_ONE, _SINGLE_ONE = 0x3FF0000000000000, 0x3F800000
"""The bits of 1.0."""


@inner
def _least(a: Any, b: Any, quiet: int, smaller: int) -> Any:
    """The smaller one for the lanes in `smaller`, the larger one for the others; -0 is below +0.

    A single NaN is ignored if `quiet`, else it wins.
    """
    same, negative = fequal(a, b), below_signed(a, splat(0))
    low = select(fbelow(a, b) | (same & negative), a, b)
    high = select(fbelow(b, a) | (same & ~negative), a, b)
    result = select(smaller, low, high)
    nan_a, nan_b = funordered(a, a), funordered(b, b)
    if quiet:
        return select(nan_a, b, select(nan_b, a, result))
    return select(nan_a, a, select(nan_b, b, result))


@inner
def _rounded(value: Any, how: int) -> Any:
    """Doubles to integers; from bit 2 of `how` on: 0 to the nearest (even), 1 towards zero, 2 down, 3 up."""
    if how >> 2 == 1:
        return dtrunc(value)
    if how >> 2 == 2:
        return dfloor(value)
    return dceil(value) if how >> 2 == 3 else drint(value)


@inner
def _to_integer(value: Any, how: int, invalid: int) -> Any:
    """Doubles to 32-bit integers, clamped to their range; NaN gives `invalid`. Bit 0 of `how`: signed."""
    whole = _rounded(value, how)
    result = double_to_signed(whole) if how & 1 else double_to_unsigned(whole)
    return select(dunordered(value, value), splat(invalid), result)


@inner
def _from_unsigned_up(value: Any) -> Any:
    """Rounded up: the nearest, or the next above it if that lies below."""
    exact, nearest = unsigned_to_double(value), unsigned_to_single(value)
    return add(nearest, ones(dbelow(single_to_double(nearest), exact)))


@inner
def _fused_directed(a: Any, b: Any, c: Any, up: int) -> Any:
    """a * b + c rounded down or up: the nearest, or its neighbour if that lies on the other side."""
    nearest = fma(a, b, c)
    product, addend = dmul(single_to_double(a), single_to_double(b)), single_to_double(c)
    total = dadd(product, addend)
    # The rounding error of the sum of doubles (Knuth), and the next number above the nearest.
    part = dsub(total, product)
    rest = dadd(dsub(product, dsub(total, part)), dsub(addend, part))
    above = dsub(single_to_double(nearest), total)
    wrong = dbelow(above, rest) if up else dbelow(rest, above)
    negative, zero = below_signed(nearest, splat(0)), equal(both(nearest, splat(0x7FFFFFFF)), splat(0))
    away = sub(splat(0), splat(1))
    # Larger numbers have larger bit patterns, except that negative ones are in reverse order.
    step = select(negative, away, splat(1)) if up else select(negative, splat(1), away)
    beside = select(zero, splat(1 if up else 0x80000001), add(nearest, step))
    result = select(wrong, beside, nearest)
    if up:
        return result
    # A zero sum is negative, except that of two positive zeros.
    sign = both(either(upper(product), upper(addend)), splat(0x80000000))
    return select(dequal(total, splat_wide(0)), sign, result)


@inner
def _finished(value: Any, how: int) -> Any:
    """Denormals flushed (bit 0), and clamped to 0..1 (bit 1), where NaN becomes zero."""
    if how & 1:
        value = flush(value)
    if how & 2:
        value = select(fbelow(splat(0), value), value, splat(0))
        value = select(fbelow(value, splat(_SINGLE_ONE)), value, splat(_SINGLE_ONE))
    return value


@inner
def _special(op: int, value: Any) -> Any:
    """A reciprocal or a square root, computed in double precision."""
    x = single_to_double(value)
    if op != RECIPROCAL:
        x = dsqrt(x)
    if op != ROOT:
        x = ddiv(splat_wide(_ONE), x)
    return double_to_single(x)


@inner
def run_single(core: Any, k: int) -> None:
    """Run instruction `k` for all warps of the batch."""
    code, row = core.code, k * COLUMNS
    op, how = code[row + OP], code[row + SUB]
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        lanes = executing(core, k, w)
        if lanes == 0:
            continue
        a, b = fetch(core, row + A, w), fetch(core, row + B, w)
        result = a
        if op == FLOAT_FUSED:
            c = fetch(core, row + C, w)
            result = _fused_directed(a, b, c, how - 1) if how else fma(a, b, c)
        elif op == FLOAT_ADD:
            result = fadd(a, b)
        elif op == FLOAT_MULTIPLY:
            result = fmul(a, b)
        elif op == FLOAT_MINIMUM:
            result = _least(a, b, how, lanes_of(core, code[row + IN0], w))
        elif op == RECIPROCAL or op == RECIPROCAL_ROOT or op == ROOT:
            result = _special(op, a)
        elif op == FROM_SIGNED:
            result = signed_to_single(a)
        elif op == FROM_UNSIGNED:
            result = unsigned_to_single(a)
        elif op == FROM_UNSIGNED_UP:
            result = _from_unsigned_up(a)
        elif op == TO_INTEGER:
            value = fetch_pair(core, row + A, w) if how & 2 else single_to_double(a)
            result = _to_integer(value, how, code[row + IMM])
        elif op == ROUND_FLOAT:
            result = double_to_single(_rounded(single_to_double(a), how))
        else:
            result = double_to_single(fetch_pair(core, row + A, w))
        if code[row + FLUSH_OUT]:
            result = _finished(result, code[row + FLUSH_OUT])
        put(core, row, w, result, lanes)


# Instructions with double-precision results.

_DOUBLE_ONE = 0x3FF0000000000000
"""The bits of 1.0."""


@inner
def _upper_reciprocal(op: int, value: Any) -> Any:
    """From the upper word of a double: the upper word of its reciprocal, or of that of its root."""
    x = join(splat(0), value)
    if op == UPPER_RECIPROCAL_ROOT:
        x = dsqrt(x)
    return upper(ddiv(splat_wide(_DOUBLE_ONE), x))


@inner
def run_double(core: Any, k: int) -> None:
    """Run instruction `k` for all warps of the batch."""
    row = k * COLUMNS
    op = core.code[row + OP]
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        lanes = executing(core, k, w)
        if lanes == 0:
            continue
        if op == UPPER_RECIPROCAL or op == UPPER_RECIPROCAL_ROOT:
            put(core, row, w, _upper_reciprocal(op, fetch(core, row + A, w)), lanes)
            continue
        if op == DOUBLE_FROM_SIGNED:
            result = signed_to_double(fetch(core, row + A, w))
        elif op == DOUBLE_FROM_UNSIGNED:
            result = unsigned_to_double(fetch(core, row + A, w))
        elif op == DOUBLE_FROM_FLOAT:
            result = single_to_double(fetch(core, row + A, w))
        else:
            a, b = fetch_pair(core, row + A, w), fetch_pair(core, row + B, w)
            if op == DOUBLE_ADD:
                result = dadd(a, b)
            elif op == DOUBLE_MULTIPLY:
                result = dmul(a, b)
            else:
                result = dfma(a, b, fetch_pair(core, row + C, w))
        put_pair(core, row, w, result, lanes)
