"""Instructions that give predicates: compares, logic of predicates, and the check before a division."""

from __future__ import annotations

from typing import Any

from .jit import inner
from .lane_arithmetic import (
    below,
    below_signed,
    below_wide,
    below_wide_signed,
    both,
    dbelow,
    dequal,
    dunordered,
    equal,
    equal_wide,
    fbelow,
    fequal,
    funordered,
    right,
    sub,
)
from .lanes import splat
from .layout import (
    COLUMNS,
    COMPARE,
    COMPARE_FLOAT,
    COMPARE_WIDE,
    DIVISION_CHECK,
    EQUAL,
    FULL,
    GREATER,
    IMM,
    IMM2,
    IN0,
    IN1,
    IN2,
    LESS,
    MEMBERS,
    OP,
    OUT0,
    OUT1,
    PREDICATE_LOGIC,
    REGISTER_TO_PREDICATES,
    SUB,
    UNORDERED,
    A,
    B,
)
from .operands import executing, fetch, fetch_pair, lanes_of, put_lanes


@inner
def _combined(how: int, a: int, b: int) -> int:
    if how == 0:
        return a & b
    return a | b if how == 1 else a ^ b


@inner
def _looked_up(table: int, a: int, b: int, c: int) -> int:
    result = 0
    for index in range(8):
        if table >> index & 1:
            term = a if index & 4 else ~a
            term &= b if index & 2 else ~b
            result |= term & (c if index & 1 else ~c)
    return result & FULL


@inner
def _needs_slow_division(x: Any, y: Any) -> Any:
    """Exponents at the ends, or too far apart."""
    byte = splat(0xFF)
    ex, ey = both(right(x, splat(23)), byte), both(right(y, splat(23)), byte)
    ends = equal(ex, byte) | equal(ey, byte) | equal(ey, splat(0)) | below(splat(252), ey)
    nothing = equal(both(x, splat(0x7FFFFFFF)), splat(0))
    apart = sub(ex, ey)
    far = below_signed(splat(125), apart) | below_signed(apart, splat(-124))
    return ends | (below(ex, splat(24)) & ~nothing) | far


@inner
def _spread_to_predicates(core: Any, row: int, w: int, lanes: int) -> None:
    value = fetch(core, row + A, w)
    for number in range(7):
        if core.code[row + IMM] >> number & 1:
            bit = both(value, splat(1 << (number + core.code[row + SUB])))
            put_lanes(core, number, w, equal(bit, splat(0)) ^ FULL, lanes)


@inner
def _compare(core: Any, row: int, w: int) -> Any:
    """The lanes for which the first source is less, is equal, and has no order with the second."""
    op, signed = core.code[row + OP], core.code[row + SUB] & 4
    if op == COMPARE or op == COMPARE_FLOAT:
        a, b = fetch(core, row + A, w), fetch(core, row + B, w)
        if op == COMPARE_FLOAT:
            return fbelow(a, b), fequal(a, b), funordered(a, b)
        return below_signed(a, b) if signed else below(a, b), equal(a, b), 0
    p, q = fetch_pair(core, row + A, w), fetch_pair(core, row + B, w)
    if op == COMPARE_WIDE:
        return below_wide_signed(p, q) if signed else below_wide(p, q), equal_wide(p, q), 0
    return dbelow(p, q), dequal(p, q), dunordered(p, q)


@inner
def run_predicates(core: Any, k: int) -> None:
    """Run instruction `k` for all warps of the batch."""
    code, row = core.code, k * COLUMNS
    op, how, imm = code[row + OP], code[row + SUB], code[row + IMM]
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        lanes = executing(core, k, w)
        if lanes == 0:
            continue
        if op == REGISTER_TO_PREDICATES:
            _spread_to_predicates(core, row, w, lanes)
            continue
        given, second = lanes_of(core, code[row + IN0], w), lanes_of(core, code[row + IN1], w)
        if op == PREDICATE_LOGIC:
            third = lanes_of(core, code[row + IN2], w)
            result = _looked_up(imm, given, second, third)
            complement = _looked_up(code[row + IMM2], given, second, third)
        elif op == DIVISION_CHECK:
            result = _needs_slow_division(fetch(core, row + A, w), fetch(core, row + B, w))
            complement = 0
        else:
            less, same, unordered = _compare(core, row, w)
            result = less if imm & LESS else 0
            if imm & GREATER:
                result |= ~(less | same | unordered) & FULL
            if how & 8:
                # The upper halves of a longer compare; equal ones leave it to the lower halves.
                result |= second if how & 16 else same & second
            elif imm & EQUAL:
                result |= same
            if imm & UNORDERED:
                result |= unordered
            complement = _combined(how & 3, result ^ FULL, given)
            result = _combined(how & 3, result, given)
        put_lanes(core, code[row + OUT0], w, result, lanes)
        put_lanes(core, code[row + OUT1], w, complement, lanes)
