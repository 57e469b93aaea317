"""Loads, stores and copies between the memories and registers."""

from __future__ import annotations

from typing import Any

from .addresses import check
from .jit import inner
from .lane_arithmetic import add_wide, mul_wide, right_wide
from .lanes import count, lane_numbers, load, load_wide, splat, splat_wide, store, store_wide
from .layout import (
    ALWAYS,
    COLUMNS,
    FULL,
    GENERIC,
    GLOBAL,
    GUARD,
    IMM2,
    IN0,
    LANES,
    LOCAL,
    MEMBERS,
    OP,
    PATTERN,
    PATTERN2,
    SHARED,
    STORE,
    SUB,
    WARPS,
    C,
)
from .log import CONSECUTIVE, SAME, note
from .operands import fetch_part, lanes_of, put_part


@inner
def _elements(memory: Any, at: Any, space: int, width: int, w: int, addresses: Any) -> Any:
    """Where the elements of a warp begin in its memory: words, or bytes and halves if they are no wider."""
    if space == LOCAL:
        first = add_wide(splat_wide(w * LANES), lane_numbers(1))
        return add_wide(mul_wide(right_wide(addresses, splat_wide(2)), splat_wide(at[WARPS] * LANES)), first)
    start = memory.shared_base[w] if space == SHARED else -memory.origin[0]
    return right_wide(add_wide(addresses, splat_wide(start)), splat_wide(min(width, 4) >> 1))


@inner
def words_of(memory: Any, space: int) -> Any:
    """The memory of a space as words."""
    if space == LOCAL:
        return memory.local
    return memory.shared_words if space == SHARED else memory.words


@inner
def _gather(core: Any, memory: Any, space: int, packed: int, first: int, kind: int, to: Any) -> None:
    """Read the elements of a warp, whose places are given from `first` on, into `to`, 32 of each of their words.

    Lanes that do not execute read what the first one does.
    """
    places, width = memory.addresses, packed & 255
    source, step = words_of(memory, space), core.at[WARPS] * LANES if space == LOCAL else 1
    if width == 4 and (kind == CONSECUTIVE or (kind == SAME and space == LOCAL)):
        store(to, 0, load(source, places[first]), FULL)
    elif width >= 4 and kind == SAME and space != LOCAL:
        for part in range(width >> 2):
            store(to, part * LANES, splat(source[places[first] + part]), FULL)
    elif width >= 4:
        for part in range(width >> 2):
            for lane in range(LANES):
                to[part * LANES + lane] = source[places[first + lane] + part * step]
    else:
        sign = (0x8000 if width == 2 else 0x80) if packed >> 8 & 1 else 0
        halves = memory.shared_halves if space == SHARED else memory.halves
        bytes_ = memory.shared_bytes if space == SHARED else memory.bytes
        for lane in range(LANES):
            value = halves[places[first + lane]] if width == 2 else bytes_[places[first + lane]]
            to[lane] = value - ((value & sign) << 1)


@inner
def _scatter(core: Any, memory: Any, space: int, packed: int, first: int, kind: int, lanes: int, of: Any) -> None:
    """Write the elements of a warp from `of`; of lanes that hit one place the highest stays."""
    places, width = memory.addresses, packed & 255
    target, step = words_of(memory, space), core.at[WARPS] * LANES if space == LOCAL else 1
    if width == 4 and kind == CONSECUTIVE:
        store(target, places[first], load(of, 0), FULL)
        return
    halves = memory.shared_halves if space == SHARED else memory.halves
    bytes_ = memory.shared_bytes if space == SHARED else memory.bytes
    for lane in range(LANES):
        if not lanes >> lane & 1:
            continue
        place = places[first + lane]
        if width == 2:
            halves[place] = of[lane]
        elif width == 1:
            bytes_[place] = of[lane]
        for part in range(width >> 2):
            target[place + part * step] = of[part * LANES + lane]


@inner
def count_guarded(core: Any, k: int, w: int, lanes: int) -> None:
    """Count the lanes for which a predicated instruction holds."""
    if core.code[k * COLUMNS + GUARD] != ALWAYS:
        core.guarded[k * core.at[WARPS] + w] += count(lanes)


@inner
def noted(core: Any, memory: Any, log: Any, k: int, w: int, space: int, first: int, lanes: int, column: int) -> int:
    """Record the access of a warp, and put the places of its elements where its addresses were: the kind of pattern."""
    at, row = core.at, k * COLUMNS
    address = load_wide(memory.addresses, first)
    pattern = note(log, at, k, w, address, lanes, space, core.code[row + column])
    core.code[row + column] = pattern
    store_wide(memory.addresses, first, _elements(memory, at, space, core.code[row + IMM2] & 255, w, address))
    return log.kinds[pattern]


@inner
def run_access(core: Any, memory: Any, log: Any, k: int, scratch: Any) -> bool:
    """Run load or store `k` for all warps of the batch; False, and nothing done, where it is not ordinary."""
    at, row = core.at, k * COLUMNS
    space, packed = core.code[row + SUB], core.code[row + IMM2]
    if not check(core, memory, k, space, 0):
        return False
    if space == GENERIC:
        space = GLOBAL
    parts = max((packed & 255) >> 2, 1)
    for member in range(at[MEMBERS]):
        w, lanes, first = core.batch[member], memory.lanes[member], member * LANES
        if lanes == 0:
            continue
        count_guarded(core, k, w, lanes)
        kind = noted(core, memory, log, k, w, space, first, lanes, PATTERN + 0)
        if core.code[row + OP] == STORE:
            for part in range(parts):
                store(scratch, part * LANES, fetch_part(core, row + C, part, w), FULL)
            _scatter(core, memory, space, packed, first, kind, lanes, scratch)
        else:
            _gather(core, memory, space, packed, first, kind, scratch)
            for part in range(parts):
                put_part(core, row, part, w, load(scratch, part * LANES), lanes)
    return True


@inner
def run_copy(core: Any, memory: Any, log: Any, k: int, scratch: Any) -> bool:
    """Run copy `k` from global to shared memory; lanes whose source is not valid store zeros."""
    at, row = core.at, k * COLUMNS
    packed, source, target = core.code[row + IMM2], GLOBAL + 0, SHARED + 0
    if not check(core, memory, k, target, 1) or not check(core, memory, k, source, 0):
        return False
    for member in range(at[MEMBERS]):
        w, lanes, first = core.batch[member], memory.lanes[member], member * LANES
        if lanes == 0:
            continue
        count_guarded(core, k, w, lanes)
        valid = lanes & lanes_of(core, core.code[row + IN0], w)
        if valid != 0:
            kind = noted(core, memory, log, k, w, source, first, valid, PATTERN + 0)
            _gather(core, memory, source, packed, first, kind, scratch)
        for part in range((packed & 255) >> 2):
            store(scratch, part * LANES, splat(0), valid ^ FULL)
        first += at[WARPS] * LANES
        kind = noted(core, memory, log, k, w, target, first, lanes, PATTERN2 + 0)
        _scatter(core, memory, target, packed, first, kind, lanes, scratch)
    return True
