"""Instructions on 64-bit integers, and those whose carries make them so."""

from __future__ import annotations

from typing import Any

from .jit import inner
from .lane_arithmetic import add_wide, below_wide, left_wide, mul_wide
from .lanes import join, lower, ones, select_wide, splat_wide, upper, widen, widen_signed
from .layout import (
    ADD_CARRY,
    ADD_WIDE,
    COLUMNS,
    FULL,
    IMM,
    IMM2,
    IN0,
    IN1,
    MEMBERS,
    MULTIPLY_WIDE,
    OP,
    OUT0,
    OUT1,
    SCALED_ADD,
    SELECT_WIDE,
    SUB,
    A,
    B,
    C,
)
from .operands import executing, fetch, fetch_pair, lanes_of, put, put_lanes, put_pair


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
    """Put away a sum of words, and whether it reaches 2^32 and twice that."""
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
            # Negated terms are ~x here, and the ones that this leaves out make up the constant.
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
