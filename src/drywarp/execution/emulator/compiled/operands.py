"""Sources and destinations of instructions in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

from .lane_arithmetic import (
    add,
    below,
    below_signed,
    below_wide,
    below_wide_signed,
    both,
    dbelow,
    dequal,
    differ,
    dunordered,
    equal,
    equal_wide,
    fbelow,
    fequal,
    flush,
    funordered,
    right,
    sub,
)
from .lanes import count, first, join, load, load_mask, lower, splat, store, store_mask, upper
from .layout import (
    ALWAYS,
    CHANGED,
    COLUMNS,
    COMPARE,
    COMPARE_FLOAT,
    COMPARE_WIDE,
    CONSTANT,
    DIVISION_CHECK,
    DST,
    DST_UNIFORM,
    EQUAL,
    FLIP,
    FLUSHED,
    FULL,
    GREATER,
    GUARD,
    HIGH,
    IMM,
    IMM2,
    IN0,
    IN1,
    IN2,
    INDEX,
    KEEP,
    KIND,
    LANES,
    LESS,
    MEMBERS,
    NEVER,
    OP,
    OUT0,
    OUT1,
    PLUS,
    PREDICATE_LOGIC,
    REGISTER,
    REGISTER_TO_PREDICATES,
    SPECIAL_BASE,
    SUB,
    UNIFORM,
    UNIFORM_BASE,
    UNIFORM_FLAGS,
    UNIFORM_PREDICATE,
    UNORDERED,
    VALUE,
    WARPS,
    A,
    B,
)
from .pointers import inner


class Core(NamedTuple):
    """The data on which every instruction works, as pointers.

    `code` has a row per instruction, `at` the state of the run (see `layout`). `words` holds the general registers
    (register, warp, lane), then the uniform ones (register, warp), then special registers as general ones; `flags`
    predicates likewise, a byte each. `batch` are the running warps, `active` the running lanes of every warp of the
    machine; `guarded` counts lanes by instruction and warp.
    """

    code: Any
    at: Any
    words: Any
    flags: Any
    batch: Any
    active: Any
    guarded: Any


@inner
def _row(core: Any, source: int, after: int, constant: int, w: int) -> Any:
    """The words of the register `after` the source's, or the constant in this column of the source."""
    kind, index = core.code[source + KIND], core.code[source + INDEX] + after
    if kind == REGISTER:
        return load(core.words, (index * core.at[WARPS] + w) * LANES)
    if kind == CONSTANT:
        return splat(core.code[source + constant])
    if kind == UNIFORM:
        return splat(core.words[core.at[UNIFORM_BASE] + index * core.at[WARPS] + w])
    return load(core.words, core.at[SPECIAL_BASE] + (index * core.at[WARPS] + w) * LANES)


@inner
def _modified(core: Any, source: int, value: Any) -> Any:
    code = core.code
    if code[source + CHANGED] & FLUSHED:
        value = flush(value)
    value = differ(both(value, splat(code[source + KEEP])), splat(code[source + FLIP]))
    return add(value, splat(code[source + PLUS]))


@inner
def fetch(core: Any, source: int, w: int) -> Any:
    """The words of a source for warp `w`, modifiers applied; `source` is its place in the table."""
    value = _row(core, source, 0, VALUE, w)
    return _modified(core, source, value) if core.code[source + CHANGED] else value


@inner
def fetch_part(core: Any, source: int, part: int, w: int) -> Any:
    """The words of the register `part` after a source, without modifiers."""
    return _row(core, source, part, VALUE, w)


@inner
def fetch_pair(core: Any, source: int, w: int) -> Any:
    """The 64-bit words of a source; modifiers apply to the upper half, as those of doubles do."""
    low, high = _row(core, source, 0, VALUE, w), _row(core, source, 1, HIGH, w)
    return join(low, _modified(core, source, high) if core.code[source + CHANGED] else high)


@inner
def put_part(core: Any, row: int, part: int, w: int, value: Any, lanes: Any) -> None:
    """Write the register `part` after the destination of warp `w`, for `lanes`; a uniform one takes lane 0."""
    destination = core.code[row + DST] + part
    if destination < part:
        return
    place = destination * core.at[WARPS] + w
    if core.code[row + DST_UNIFORM]:
        core.words[core.at[UNIFORM_BASE] + place] = first(value)
    else:
        store(core.words, place * LANES, value, lanes)


@inner
def put(core: Any, row: int, w: int, value: Any, lanes: Any) -> None:
    """Write the destination of warp `w`, for `lanes`."""
    put_part(core, row, 0, w, value, lanes)


@inner
def put_pair(core: Any, row: int, w: int, value: Any, lanes: Any) -> None:
    """Write 64-bit words to the destination and the register after it."""
    put_part(core, row, 0, w, lower(value), lanes)
    put_part(core, row, 1, w, upper(value), lanes)


@inner
def lanes_of(core: Any, predicate: int, w: int) -> Any:
    """The lanes of warp `w` for which a predicate source holds."""
    if predicate == ALWAYS:
        return FULL
    if predicate == NEVER:
        return 0
    number, warps = predicate >> 1, core.at[WARPS]
    if number < UNIFORM_PREDICATE:
        lanes = load_mask(core.flags, (number * warps + w) * LANES)
    else:
        place = core.at[UNIFORM_FLAGS] + (number - UNIFORM_PREDICATE) * warps + w
        lanes = FULL * core.flags[place]
    return lanes ^ FULL if predicate & 1 else lanes


@inner
def put_lanes(core: Any, destination: int, w: int, value: int, lanes: int) -> None:
    """Write a predicate of warp `w` for `lanes`; a uniform one takes the value of lane 0."""
    if destination < 0:
        return
    warps = core.at[WARPS]
    if destination < UNIFORM_PREDICATE:
        place = (destination * warps + w) * LANES
        if lanes != FULL:
            value = (load_mask(core.flags, place) & ~lanes) | (value & lanes)
        store_mask(core.flags, place, value)
    else:
        core.flags[core.at[UNIFORM_FLAGS] + (destination - UNIFORM_PREDICATE) * warps + w] = value & 1


@inner
def executing(core: Any, k: int, w: int) -> Any:
    """The lanes of warp `w` that execute instruction `k`: active ones whose guard holds; they are counted."""
    lanes = core.active[w] & FULL
    guard = core.code[k * COLUMNS + GUARD]
    if guard != ALWAYS:
        lanes &= lanes_of(core, guard, w)
        core.guarded[k * core.at[WARPS] + w] += count(lanes)
    return lanes


# Instructions with predicate results: compares, predicate logic, and the check before a division.


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
    """Exponents at the ends of the range, or too far apart."""
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
    """The lanes for which the first source is less than, equal to, and unordered with the second."""
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
                # The upper halves of a longer compare; if equal, the lower halves decide.
                result |= second if how & 16 else same & second
            elif imm & EQUAL:
                result |= same
            if imm & UNORDERED:
                result |= unordered
            complement = _combined(how & 3, result ^ FULL, given)
            result = _combined(how & 3, result, given)
        put_lanes(core, code[row + OUT0], w, result, lanes)
        put_lanes(core, code[row + OUT1], w, complement, lanes)
