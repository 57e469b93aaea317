"""Atomic operations and reductions: lanes take effect one after the other, in ascending order."""

from __future__ import annotations

from typing import Any

from .accesses import check, count_guarded, noted, words_of
from .lane_arithmetic import dadd, fadd, flush
from .lanes import at_lane, load, splat, splat_wide, store, sum_of
from .layout import (
    ADDS,
    ADDS_DOUBLE,
    ADDS_FLOAT,
    ADDS_FLUSHED,
    COLUMNS,
    COUNTS_DOWN,
    COUNTS_UP,
    DIFFERS,
    EXCHANGES,
    FULL,
    GENERIC,
    GLOBAL,
    IMM2,
    JOINS,
    LANES,
    LEAST,
    LEAST_SIGNED,
    MEETS,
    MEMBERS,
    MOST_SIGNED,
    OPERATION,
    OUT0,
    PATTERN,
    SUB,
    SWAPS,
    C,
    D,
)
from .operands import fetch_part, put_lanes, put_part
from .pointers import inner


@inner
def _updated(how: int, old: int, a: int, b: int, long: int) -> int:
    """The value that an atomic leaves in place of `old`; words come zero-extended and are truncated again."""
    x, y = old, a
    if how == ADDS_FLOAT:
        return at_lane(fadd(splat(old), splat(a)), 0)
    if how == ADDS_FLUSHED:
        return at_lane(flush(fadd(flush(splat(old)), flush(splat(a)))), 0)
    if how == ADDS_DOUBLE:
        return sum_of(1, dadd(splat_wide(old), splat_wide(a)))
    if how == ADDS:
        return old + a
    if how == EXCHANGES:
        return a
    if how == SWAPS:
        return b if old == a else old
    if how == MEETS:
        return old & a
    if how == JOINS:
        return old | a
    if how == DIFFERS:
        return old ^ a
    if how == COUNTS_UP:
        return 0 if old >= a else old + 1
    if how == COUNTS_DOWN:
        return a if old == 0 or old > a else old - 1
    signed = how == LEAST_SIGNED or how == MOST_SIGNED
    if long == 0 and signed:
        x, y = old ^ 0x80000000, a ^ 0x80000000
    elif long != 0 and not signed:
        x, y = old ^ (-1 << 63), a ^ (-1 << 63)
    smaller = old if x < y else a
    larger = a if x < y else old
    return smaller if how == LEAST or how == LEAST_SIGNED else larger


@inner
def run_atomic(core: Any, memory: Any, log: Any, k: int, scratch: Any) -> bool:
    """Run atomic `k` for all warps of the batch, lane by lane; False, with nothing done, if it is not ordinary."""
    at, row = core.at, k * COLUMNS
    space, packed, how = core.code[row + SUB], core.code[row + IMM2], core.code[row + OPERATION]
    if not check(core, memory, k, space, 0):
        return False
    if space == GENERIC:
        space = GLOBAL
    target, long = words_of(memory, space), (packed & 255) >> 3
    for member in range(at[MEMBERS]):
        w, lanes, begin = core.batch[member], memory.lanes[member], member * LANES
        if lanes == 0:
            continue
        count_guarded(core, k, w, lanes)
        noted(core, memory, log, k, w, space, begin, lanes, PATTERN + 0)
        for part in range(1 + long):
            store(scratch, part * LANES, fetch_part(core, row + C, part, w), FULL)
            store(scratch, (2 + part) * LANES, fetch_part(core, row + D, part, w), FULL)
        swapped = 0
        for lane in range(LANES):
            if not lanes >> lane & 1:
                continue
            place = memory.addresses[begin + lane]
            old, a, b = target[place], scratch[lane], scratch[2 * LANES + lane]
            if long:
                old |= target[place + 1] << 32
                a |= scratch[LANES + lane] << 32
                b |= scratch[3 * LANES + lane] << 32
            new = _updated(how, old, a, b, long)
            swapped |= (old == a) << lane
            target[place] = new
            scratch[lane] = old
            if long:
                target[place + 1] = new >> 32
                scratch[LANES + lane] = old >> 32
        put_lanes(core, core.code[row + OUT0], w, swapped if how == SWAPS else FULL, lanes)
        for part in range(1 + long):
            put_part(core, row, part, w, load(scratch, part * LANES), lanes)
    return True
