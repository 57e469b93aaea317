"""Where the lanes of a memory instruction go, and whether that is ordinary.

An instruction is first checked for all warps: where any lane does what is not ordinary (another buffer for
some lanes, a faulty address), nothing is done, and the instruction is left to the handler written in NumPy. Where
content is still to be made, it is made first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .jit import inner
from .lane_arithmetic import add, add_wide, equal_wide, mul, right_wide, sub_wide
from .lanes import highest_of, select_wide, splat, splat_wide, store_wide, sum_of, union_of, widen
from .layout import (
    COLUMNS,
    GENERIC,
    GLOBAL,
    GUARD,
    IMM,
    IMM2,
    IN0,
    LANES,
    LOCAL_BYTES,
    MEMBERS,
    MISSING,
    REGION,
    REGION_CHUNK,
    REGION_COLUMNS,
    REGION_PENDING,
    REGION_SIZE,
    REGION_START,
    REGIONS,
    SHARED,
    SHARED_BYTES,
    SUB,
    WARPS,
    A,
    B,
    C,
)
from .operands import fetch, fetch_pair, lanes_of

CHUNK_BITS = 16


class Memory(NamedTuple):
    """The memories as the loop sees them, as pointers.

    `bytes`, `halves` and `words` are the arena that starts at address `origin[0]`; `regions` has a row per
    buffer (see `layout`); `pending` is not zero for chunks of buffers whose content is still to be made.
    `addresses` (64-bit, 32 of each warp, twice, and 32 more) and `lanes` are scratch.
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
    """Whether the content is there that these offsets into a region reach; if not, the state says what is missing."""
    row = number * REGION_COLUMNS
    if memory.regions[row + REGION_PENDING] == 0:
        return True
    first = memory.regions[row + REGION_CHUNK]
    chunk = highest >> CHUNK_BITS
    if memory.pending[first + chunk] != 0:
        at[MISSING] = first + chunk
        return False
    # Mostly all lanes are in one chunk.
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
    """Whether the lanes' addresses lie in one buffer, aligned, where content is; else what to do is special."""
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
    """An address in shared or local memory; of a copy's shared side (1) base and offset stand elsewhere."""
    if side:
        return widen(add(fetch(core, row + C, w), splat(core.code[row + SUB])))
    word = add(mul(fetch(core, row + A, w), splat(scale)), fetch(core, row + B, w))
    return widen(add(word, splat(core.code[row + IMM])))


@inner
def check(core: Any, memory: Any, k: int, space: int, side: int) -> bool:
    """Work out the addresses of all warps; False where any is not ordinary. `side` is 1 of a copy's shared side."""
    row, at = k * COLUMNS, core.at
    packed = core.code[row + IMM2]
    width, size = packed & 255, at[SHARED_BYTES] if space == SHARED else at[LOCAL_BYTES]
    for member in range(at[MEMBERS]):
        w = core.batch[member]
        lanes = core.active[w] & lanes_of(core, core.code[row + GUARD], w)
        memory.lanes[member] = lanes
        if side == 0:
            # Of a copy, only lanes whose source is valid read.
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
        # Lanes that do not execute go where the first one does, which does no harm.
        safe = select_wide(lanes, address, splat_wide(sum_of(lanes & -lanes, address)))
        store_wide(memory.addresses, (side * at[WARPS] + member) * LANES, safe)
    return True
