"""Sources and destinations of instructions in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

from .jit import inner
from .lane_arithmetic import add, both, differ, flush
from .lanes import count, first, join, load, load_mask, lower, splat, store, store_mask, upper
from .layout import (
    ALWAYS,
    CHANGED,
    COLUMNS,
    CONSTANT,
    DST,
    DST_UNIFORM,
    FLIP,
    FLUSHED,
    FULL,
    GUARD,
    HIGH,
    INDEX,
    KEEP,
    KIND,
    LANES,
    NEVER,
    PLUS,
    REGISTER,
    SPECIAL_BASE,
    UNIFORM,
    UNIFORM_BASE,
    UNIFORM_FLAGS,
    UNIFORM_PREDICATE,
    VALUE,
    WARPS,
)


class Core(NamedTuple):
    """What every instruction works on, as pointers.

    `code` has a row per instruction, `at` the state of the run (see `layout`). `words` holds the general
    registers (register, warp, lane), then the uniform ones (register, warp), then special registers as
    general ones; `flags` predicates likewise, a byte each. `batch` are the warps that run, `active` the
    lanes of every warp of the machine that do; `guarded` counts lanes by instruction and warp.
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
    """The lanes of warp `w` that execute instruction `k`: active ones whose guard holds, which are counted."""
    lanes = core.active[w] & FULL
    guard = core.code[k * COLUMNS + GUARD]
    if guard != ALWAYS:
        lanes &= lanes_of(core, guard, w)
        core.guarded[k * core.at[WARPS] + w] += count(lanes)
    return lanes
