"""The record of accesses and steps, written by compiled code and read by the recorder.

Lane offsets of accesses repeat endlessly, so each access stores the number of its pattern: the offsets from its first
lane, and the active lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .lane_arithmetic import equal_wide, mul_wide, sub_wide
from .lanes import lane_numbers, load_wide, select_wide, splat_wide, store_wide, sum_of, union_of
from .layout import (
    ACCESSES,
    FIRST_WARP,
    FULL,
    LANES,
    LOG_BASE,
    LOG_INSTRUCTION,
    LOG_KINDS,
    LOG_MASKS,
    LOG_OFFSETS,
    LOG_PATTERN,
    LOG_SPACE,
    LOG_STEP_BLOCK,
    LOG_STEP_LANES,
    LOG_STEP_WARP,
    LOG_TABLE,
    LOG_WARP,
    LOG_WEIGHTS,
    PATTERNS,
    STATE,
    TABLE_SIZE,
)
from .pointers import inner, int8s, int32s, int64s, outer, uint8s, uint32s

_random = np.random.Generator(np.random.Philox(0x5EED))
WEIGHTS = _random.integers(0, 1 << 62, LANES, dtype=np.int64) * 2 + 1
"""Factors of the lanes in a pattern's hash."""
_MASK_WEIGHT = 0x1E3779B97F4A7C15
IRREGULAR, SAME, CONSECUTIVE = range(3)
"""Kinds of patterns: all lanes at one address; consecutive 4-byte words with all 32 lanes active."""


class Log(NamedTuple):
    """Pointers to the arrays of the record; their fill levels and lengths are in the state of the run.

    A row per access: `instruction`, `warp`, `base` (address of the first lane), `pattern`, `space`. A row
    per step of a warp: `step_block`, `step_warp`, `step_lanes`. A row per pattern: `offsets` (flat, 32 of
    each), `masks`, `kinds`; `table` finds a pattern by its hash.
    """

    instruction: Any
    warp: Any
    base: Any
    pattern: Any
    space: Any
    step_block: Any
    step_warp: Any
    step_lanes: Any
    offsets: Any
    masks: Any
    kinds: Any
    table: Any
    weights: Any


@inner
def _place(log: Any, at: Any, offsets: Any, lanes: int) -> int:
    """Where the search for a pattern begins in the table."""
    mixed = sum_of(FULL, mul_wide(offsets, load_wide(log.weights, 0))) + lanes * _MASK_WEIGHT
    return ((mixed ^ (mixed >> 29)) * _MASK_WEIGHT >> 20) & (at[TABLE_SIZE] - 1)


@inner
def _is(log: Any, pattern: int, offsets: Any, lanes: int) -> bool:
    return log.masks[pattern] == lanes and equal_wide(load_wide(log.offsets, pattern * LANES), offsets) == FULL


@inner
def _kind(offsets: Any, lanes: int) -> int:
    if union_of(lanes, offsets) == 0:
        return SAME
    consecutive = equal_wide(offsets, lane_numbers(4)) == FULL and lanes == FULL
    return CONSECUTIVE if consecutive else IRREGULAR


@inner
def pattern_of(log: Any, at: Any, offsets: Any, lanes: int) -> int:
    """The number of a pattern; a new one is stored. There must be room for it."""
    place = _place(log, at, offsets, lanes)
    while log.table[place] != 0:
        known = log.table[place] - 1
        if _is(log, known, offsets, lanes):
            return known
        place = (place + 1) & (at[TABLE_SIZE] - 1)
    pattern = at[PATTERNS]
    at[PATTERNS] = pattern + 1
    log.table[place] = pattern + 1
    store_wide(log.offsets, pattern * LANES, offsets)
    log.masks[pattern] = lanes
    log.kinds[pattern] = _kind(offsets, lanes)
    return pattern


@inner
def note(log: Any, at: Any, k: int, w: int, addresses: Any, lanes: int, space: int, latest: int) -> int:
    """Record an access of warp `w`; returns the number of its pattern, which is probably `latest`.

    `addresses` are `Wide`; `lanes` must not be empty.
    """
    base = sum_of(lanes & -lanes, addresses)
    offsets = select_wide(lanes, sub_wide(addresses, splat_wide(base)), splat_wide(0))
    pattern = latest
    if latest < 0 or not _is(log, latest, offsets, lanes):
        pattern = pattern_of(log, at, offsets, lanes)
    row = at[ACCESSES]
    at[ACCESSES] = row + 1
    log.instruction[row] = k
    log.warp[row] = at[FIRST_WARP] + w
    log.base[row] = base
    log.pattern[row] = pattern
    log.space[row] = space
    return pattern


@inner
def log_of(places: Any) -> Any:
    """The record of a run, by the addresses of its arrays."""
    return Log(
        int32s(places[LOG_INSTRUCTION]),
        int32s(places[LOG_WARP]),
        int64s(places[LOG_BASE]),
        int32s(places[LOG_PATTERN]),
        int8s(places[LOG_SPACE]),
        int32s(places[LOG_STEP_BLOCK]),
        int32s(places[LOG_STEP_WARP]),
        uint8s(places[LOG_STEP_LANES]),
        int64s(places[LOG_OFFSETS]),
        uint32s(places[LOG_MASKS]),
        int8s(places[LOG_KINDS]),
        int32s(places[LOG_TABLE]),
        int64s(places[LOG_WEIGHTS]),
    )


@outer
def note_rows(places: Any, given: Any, rows: int, k: int, space: int) -> None:
    """Record an access of several warps: `given` are the addresses of arrays, a row for each.

    The warps (int64), the bytes that their lanes access (int64, 32 of each), and the lanes (uint32).
    """
    log, at = log_of(places), int64s(places[STATE])
    warps, addresses, masks = int64s(given[0]), int64s(given[1]), uint32s(given[2])
    latest = -1
    for row in range(rows):
        if masks[row] != 0:
            latest = note(log, at, k, warps[row], load_wide(addresses, row * LANES), masks[row], space, latest)


@outer
def fill_table(places: Any) -> None:
    """Enter all patterns into the table, which must be empty; its length is a power of two."""
    log, at = log_of(places), int64s(places[STATE])
    for pattern in range(at[PATTERNS]):
        place = _place(log, at, load_wide(log.offsets, pattern * LANES), log.masks[pattern])
        while log.table[place] != 0:
            place = (place + 1) & (at[TABLE_SIZE] - 1)
        log.table[place] = pattern + 1


@outer
def order_by(keys: Any, bounds: Any) -> Any:
    """The stable order of small whole numbers: indices, shape of `keys`; `bounds` has one more than the keys reach."""
    for key in keys:
        bounds[key + 1] += 1
    for key in range(1, len(bounds)):
        bounds[key] += bounds[key - 1]
    next_place = bounds.copy()
    order = np.empty(len(keys), np.int64)
    for index in range(len(keys)):
        key = keys[index]
        order[next_place[key]] = index
        next_place[key] += 1
    return order
