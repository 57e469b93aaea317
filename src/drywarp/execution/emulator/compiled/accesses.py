"""Loads, stores and copies between the memories and registers."""

from __future__ import annotations

from typing import Any, NamedTuple

from .lane_arithmetic import add, add_wide, equal_wide, mul, mul_wide, right_wide, sub_wide
from .lanes import (
    count,
    highest_of,
    lane_numbers,
    load,
    load_wide,
    select_wide,
    splat,
    splat_wide,
    store,
    store_wide,
    sum_of,
    union_of,
    widen,
)
from .layout import (
    ALWAYS,
    COLUMNS,
    FULL,
    GENERIC,
    GLOBAL,
    GUARD,
    IMM,
    IMM2,
    IN0,
    LANES,
    LOCAL,
    LOCAL_BYTES,
    MEMBERS,
    MISSING,
    OP,
    PATTERN,
    PATTERN2,
    REGION,
    REGION_CHUNK,
    REGION_COLUMNS,
    REGION_PENDING,
    REGION_SIZE,
    REGION_START,
    REGIONS,
    SHARED,
    SHARED_BYTES,
    STORE,
    SUB,
    WARPS,
    A,
    B,
    C,
)
from .log import CONSECUTIVE, SAME, note
from .operands import fetch, fetch_pair, fetch_part, lanes_of, put_part
from .pointers import inner

# Targets of the lanes of a memory instruction, and whether the access is an ordinary one.
#
# An instruction is first checked for all warps: if any lane does something out of the ordinary (another buffer for some
# lanes, a faulty address), nothing is done, and the instruction is left to the NumPy handler. Buffer content that has
# not been generated yet is generated first.

CHUNK_BITS = 16


class Memory(NamedTuple):
    """The memories as the loop sees them, as pointers.

    `bytes`, `halves` and `words` are the arena that starts at address `origin[0]`; `regions` has a row per buffer (see
    `layout`); `pending` is not zero for chunks of buffers whose content has not been generated yet. `addresses`
    (64-bit, 32 of each warp, twice, and 32 more) and `lanes` are scratch.
    """

    bytes: Any
    halves: Any
    words: Any
    regions: Any
    pending: Any
    origin: Any
    shared_bytes: Any
    shared_halves: Any
    shared_words: Any
    shared_base: Any
    local: Any
    addresses: Any
    lanes: Any


@inner
def _region_with(memory: Any, at: Any, address: Any) -> int:
    for number in range(at[REGIONS]):
        row = number * REGION_COLUMNS
        start, size = memory.regions[row + REGION_START], memory.regions[row + REGION_SIZE]
        if start <= address < start + size:
            return number
    return -1


@inner
def _ready(memory: Any, at: Any, number: int, offsets: Any, lanes: Any, highest: Any) -> bool:
    """Whether the content at these offsets into a region exists; if not, the state says what is missing."""
    row = number * REGION_COLUMNS
    if memory.regions[row + REGION_PENDING] == 0:
        return True
    first = memory.regions[row + REGION_CHUNK]
    chunk = highest >> CHUNK_BITS
    if memory.pending[first + chunk] != 0:
        at[MISSING] = first + chunk
        return False
    # Usually all lanes are in one chunk.
    chunks = right_wide(offsets, splat_wide(CHUNK_BITS))
    if equal_wide(chunks, splat_wide(chunk)) & lanes == lanes:
        return True
    spare = 2 * at[WARPS] * LANES
    store_wide(memory.addresses, spare, chunks)
    for lane in range(LANES):
        if lanes >> lane & 1 and memory.pending[first + memory.addresses[spare + lane]] != 0:
            at[MISSING] = first + memory.addresses[spare + lane]
            return False
    return True


@inner
def _in_global(core: Any, memory: Any, k: int, address: Any, lanes: Any, width: int) -> bool:
    """Whether the lanes' addresses lie in one buffer, aligned, with content; else the access is special."""
    at, regions = core.at, memory.regions
    number = core.code[k * COLUMNS + REGION]
    for attempt in range(2):
        if number >= 0 and regions[number * REGION_COLUMNS + REGION_SIZE] >= width:
            row = number * REGION_COLUMNS
            offsets = sub_wide(address, splat_wide(regions[row + REGION_START]))
            highest = highest_of(lanes, offsets)
            if 0 <= highest <= regions[row + REGION_SIZE] - width:
                if union_of(lanes, offsets) & (width - 1):
                    return False
                core.code[k * COLUMNS + REGION] = number
                return _ready(memory, at, number, offsets, lanes, highest)
        if attempt == 0:
            number = _region_with(memory, at, sum_of(lanes & -lanes, address))
    return False


@inner
def _within(address: Any, lanes: Any, size: int, width: int) -> bool:
    """Whether 32-bit addresses lie in a window of `size` bytes, aligned."""
    return highest_of(lanes, address) <= size - width and union_of(lanes, address) & (width - 1) == 0


@inner
def _wide_address(core: Any, row: int, w: int, narrow: int) -> Any:
    base = widen(fetch(core, row + A, w)) if narrow else fetch_pair(core, row + A, w)
    return add_wide(add_wide(base, fetch_pair(core, row + B, w)), splat_wide(core.code[row + IMM]))


@inner
def _window_address(core: Any, row: int, w: int, side: int, scale: int) -> Any:
    """An address in shared or local memory; base and offset of a copy's shared side (1) are stored elsewhere."""
    if side:
        return widen(add(fetch(core, row + C, w), splat(core.code[row + SUB])))
    word = add(mul(fetch(core, row + A, w), splat(scale)), fetch(core, row + B, w))
    return widen(add(word, splat(core.code[row + IMM])))


@inner
def check(core: Any, memory: Any, k: int, space: int, side: int) -> bool:
    """Compute the addresses of all warps; False if any is not ordinary. `side` is 1 for a copy's shared side."""
    row, at = k * COLUMNS, core.at
    packed = core.code[row + IMM2]
    width, size = packed & 255, at[SHARED_BYTES] if space == SHARED else at[LOCAL_BYTES]
    for member in range(at[MEMBERS]):
        w = core.batch[member]
        lanes = core.active[w] & lanes_of(core, core.code[row + GUARD], w)
        memory.lanes[member] = lanes
        if side == 0:
            # In a copy, only lanes whose source is valid read.
            lanes &= lanes_of(core, core.code[row + IN0], w)
        if lanes == 0:
            continue
        if space == GLOBAL or space == GENERIC:
            address = _wide_address(core, row, w, packed >> 24 & 1)
            ordinary = _in_global(core, memory, k, address, lanes, width)
        else:
            address = _window_address(core, row, w, side, packed >> 16 & 255)
            ordinary = _within(address, lanes, size, width)
        if not ordinary:
            return False
        # Inactive lanes use the address of the first active one, which is harmless.
        safe = select_wide(lanes, address, splat_wide(sum_of(lanes & -lanes, address)))
        store_wide(memory.addresses, (side * at[WARPS] + member) * LANES, safe)
    return True


@inner
def _elements(memory: Any, at: Any, space: int, width: int, w: int, addresses: Any) -> Any:
    """The start of a warp's elements in its memory: words, or bytes and halves if they are no wider."""
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
    """Read a warp's elements, at the places given from `first` on, into `to`: 32 of each of their words.

    Inactive lanes read what the first active one does.
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
    """Write a warp's elements from `of`; if lanes hit the same place, the highest lane wins."""
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
    """Record a warp's access and replace its addresses by its elements' places; returns the kind of pattern."""
    at, row = core.at, k * COLUMNS
    address = load_wide(memory.addresses, first)
    pattern = note(log, at, k, w, address, lanes, space, core.code[row + column])
    core.code[row + column] = pattern
    store_wide(memory.addresses, first, _elements(memory, at, space, core.code[row + IMM2] & 255, w, address))
    return log.kinds[pattern]


@inner
def run_access(core: Any, memory: Any, log: Any, k: int, scratch: Any) -> bool:
    """Run load or store `k` for all warps of the batch; False, with nothing done, if it is not ordinary."""
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
