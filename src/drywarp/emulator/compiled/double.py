"""Instructions that give double precision."""

from __future__ import annotations

from typing import Any

from .jit import inner
from .lane_arithmetic import dadd, ddiv, dfma, dmul, dsqrt, signed_to_double, single_to_double, unsigned_to_double
from .lanes import join, splat, splat_wide, upper
from .layout import (
    COLUMNS,
    DOUBLE_ADD,
    DOUBLE_FROM_FLOAT,
    DOUBLE_FROM_SIGNED,
    DOUBLE_FROM_UNSIGNED,
    DOUBLE_MULTIPLY,
    MEMBERS,
    OP,
    UPPER_RECIPROCAL,
    UPPER_RECIPROCAL_ROOT,
    A,
    B,
    C,
)
from .operands import executing, fetch, fetch_pair, put, put_pair

_ONE = 0x3FF0000000000000
"""The bits of 1.0."""


@inner
def _upper_reciprocal(op: int, value: Any) -> Any:
    """Of the upper word of a double: the upper word of its reciprocal, or of that of its root."""
    x = join(splat(0), value)
    if op == UPPER_RECIPROCAL_ROOT:
        x = dsqrt(x)
    return upper(ddiv(splat_wide(_ONE), x))


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
