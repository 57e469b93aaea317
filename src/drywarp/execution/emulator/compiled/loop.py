"""The compiled loop: runs basic blocks of batches of warps until something needs Python.

Reasons: an instruction or block end that the compiled code does not support, a block reached for the first time, buffer
content that has not been generated yet, full tables, limits, deadlocks. The caller handles it and calls again.
"""

from __future__ import annotations

from typing import Any

from .accesses import Memory, run_access, run_copy
from .atomic import run_atomic
from .ends import LACKS_ROOM, MOVED, MUST_RELEASE, UNUSUAL, run_end
from .floats import run_double, run_single
from .groups import CHOSEN, ROTATE_EVERY, Standing, choose, entered
from .lanes import count
from .layout import (
    ACCESS_ROOM,
    ACCESSES,
    ACTIVE,
    ADDRESSES,
    ARENA,
    ARRIVED,
    AT,
    ATOMIC,
    BARRIERS,
    BATCH,
    BLOCK_ACCESSES,
    BLOCK_COLUMNS,
    BLOCK_END,
    BLOCK_NUMBER,
    BLOCK_SPINS,
    BODY,
    CHOOSE,
    CLOCK,
    CODE,
    COLUMNS,
    COPY,
    ENTER,
    ENTRIES,
    FAR,
    FIRST_END,
    FIRST_WARP,
    FLAGS,
    GROUP_ARGUMENT,
    GROUP_MASK,
    GROUP_PC,
    GROUP_SLOTS,
    GROUP_STAMP,
    GROUP_STATE,
    GUARDED,
    IMM,
    LANE_LIMIT,
    LANE_SETS,
    LANE_STEPS,
    LAST_ACCESS,
    LAST_DOUBLE,
    LAST_FLOAT,
    LAST_TEST,
    LAST_WIDE,
    LAST_WORDS,
    LIVE,
    LOCAL_MEMORY,
    LOOK_AFTER,
    LOOKED,
    MEMBERS,
    MISSING,
    MODE,
    NEEDS_CONTENT,
    NEEDS_DECODING,
    NEEDS_END,
    NEEDS_LOOK,
    NEEDS_RELEASE,
    NEEDS_ROOM,
    NEEDS_SLOTS,
    NEEDS_STEP,
    NEXT,
    NEXT_OTHER,
    NOTHING,
    OP,
    ORIGIN,
    OVER_LIMIT,
    PATTERN_ROOM,
    PATTERNS,
    PAUSE_AT,
    PAUSE_STEP,
    PAUSED,
    PC,
    PENDING,
    REGION_TABLE,
    REGISTER_WORDS,
    SCRATCH,
    SHARED_BASE,
    SHARED_MEMORY,
    SINCE,
    SLOTS,
    STATE,
    STEP,
    STEP_ROOM,
    STEPS,
    TOTAL,
    TURNED,
    UNKNOWN,
    UNKNOWN_END,
    VOTES,
    WARP_STEPS,
    WARPS,
    YIELDED,
)
from .log import log_of
from .operands import Core, executing, run_predicates
from .pointers import inner, int8s, int64s, outer, uint8s, uint16s, uint32s
from .words import run_wide, run_words

PATIENCE, CHECK_EVERY = 2048, 64
"""As in `deadlock` and `scheduler`."""


@inner
def _begin_convergence(core: Any, standing: Any, k: int) -> None:
    first = core.code[k * COLUMNS + IMM] * core.at[WARPS]
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        standing.barriers[first + w] |= executing(core, k, w)


@inner
def _enter(core: Any, log: Any, entries: Any) -> int:
    """Account for the block at PC and record it for every warp; 0, or why it cannot begin."""
    at, members = core.at, core.at[MEMBERS]
    entry = entered(at, entries, at[PC])
    if entry < 0:
        return NEEDS_DECODING
    accesses = members * entries[entry + BLOCK_ACCESSES]
    if at[STEPS] + members > at[STEP_ROOM] or at[ACCESSES] + accesses > at[ACCESS_ROOM]:
        return NEEDS_ROOM
    if at[PATTERNS] + accesses > at[PATTERN_ROOM]:
        return NEEDS_ROOM
    if at[LANE_STEPS] > at[LANE_LIMIT]:
        return OVER_LIMIT
    if at[LANE_STEPS] >= at[PAUSE_AT] or at[STEP] >= at[PAUSE_STEP]:
        return PAUSED
    if entries[entry + BLOCK_SPINS] == 0:
        at[SINCE], at[LOOK_AFTER] = at[STEP], PATIENCE
    elif at[STEP] % CHECK_EVERY == 0 and at[STEP] - at[SINCE] >= at[LOOK_AFTER] and at[LOOKED] != at[STEP]:
        return NEEDS_LOOK
    at[AT] = at[PC] >> 4
    length = entries[entry + BLOCK_END] - at[AT]
    at[STEP] += 1
    at[WARP_STEPS] += length * members
    at[LANE_STEPS] += length * at[TOTAL]
    at[CLOCK] += length
    for member in range(members):
        w, row = core.batch[member], at[STEPS]
        at[STEPS] = row + 1
        log.step_block[row] = entries[entry + BLOCK_NUMBER]
        log.step_warp[row] = at[FIRST_WARP] + w
        log.step_lanes[row] = count(core.active[w])
    return 0


@inner
def _put_back(core: Any, standing: Any, entries: Any) -> int:
    """Whether another group should run first, so the batch was put back: 1 or 0; -1: the next block is not decoded."""
    at = core.at
    if at[PC] < at[NEXT_OTHER]:
        if at[NEXT_OTHER] >= FAR:
            return 0
        if at[STEP] - at[TURNED] < ROTATE_EVERY:
            entry = entered(at, entries, at[PC])
            if entry < 0:
                return -1
            if entries[entry + BLOCK_SPINS] == 0:
                return 0
    for member in range(at[MEMBERS]):
        place = standing.slots[member] * at[WARPS] + core.batch[member]
        standing.pc[place] = at[PC]
        standing.stamp[place] = at[STEP]
    return 1


@inner
def _core(places: Any) -> Any:
    return Core(
        int64s(places[CODE]),
        int64s(places[STATE]),
        uint32s(places[REGISTER_WORDS]),
        uint8s(places[FLAGS]),
        int64s(places[BATCH]),
        uint32s(places[ACTIVE]),
        int64s(places[GUARDED]),
    )


@inner
def _memory(places: Any) -> Any:
    arena, shared = places[ARENA], places[SHARED_MEMORY]
    return Memory(
        uint8s(arena),
        uint16s(arena),
        uint32s(arena),
        int64s(places[REGION_TABLE]),
        uint8s(places[PENDING]),
        int64s(places[ORIGIN]),
        uint8s(shared),
        uint16s(shared),
        uint32s(shared),
        int64s(places[SHARED_BASE]),
        uint32s(places[LOCAL_MEMORY]),
        int64s(places[ADDRESSES]),
        int64s(places[LANE_SETS]),
    )


@inner
def _standing(places: Any, at: Any) -> Any:
    return Standing(
        int64s(places[GROUP_PC]),
        uint32s(places[GROUP_MASK]),
        int8s(places[GROUP_STATE]),
        int64s(places[GROUP_ARGUMENT]),
        int64s(places[GROUP_STAMP]),
        uint32s(places[LIVE]),
        uint32s(places[BARRIERS]),
        uint32s(places[YIELDED]),
        uint32s(places[ARRIVED]),
        uint32s(places[VOTES]),
        int64s(places[GROUP_SLOTS]),
        at[SLOTS] * at[WARPS],
    )


@outer
def advance(places: Any) -> int:
    """Resume from the state; returns why it stopped (see `layout`).

    `places` are the addresses of all arrays.
    """
    core, memory, log = _core(places), _memory(places), log_of(places)
    standing = _standing(places, core.at)
    entries, scratch = int64s(places[ENTRIES]), uint32s(places[SCRATCH])
    at, code = core.at, core.code
    mode = at[MODE]
    while True:
        if mode == NEXT:
            gone = _put_back(core, standing, entries)
            if gone < 0:
                at[MODE] = NEXT
                return NEEDS_DECODING
            mode = CHOOSE if gone else ENTER
        if mode == CHOOSE:
            chosen = choose(core, standing, entries)
            if chosen != CHOSEN:
                at[MODE] = CHOOSE
                return chosen
            mode = ENTER
        if mode == ENTER:
            wrong = _enter(core, log, entries)
            if wrong:
                at[MODE] = ENTER
                return wrong
        k = at[AT]
        end = entries[(at[PC] >> 4) * BLOCK_COLUMNS + BLOCK_END]
        op, done = FIRST_END, True
        while k < end and done:
            op = code[k * COLUMNS + OP]
            if op <= LAST_WORDS:
                done = op != UNKNOWN
                if op > NOTHING:
                    run_words(core, k, scratch)
            elif op <= LAST_WIDE:
                run_wide(core, k)
            elif op <= LAST_FLOAT:
                run_single(core, k)
            elif op <= LAST_DOUBLE:
                run_double(core, k)
            elif op <= LAST_TEST:
                run_predicates(core, k)
            elif op == COPY:
                done = run_copy(core, memory, log, k, scratch)
            elif op == ATOMIC:
                done = run_atomic(core, memory, log, k, scratch)
            elif op <= LAST_ACCESS:
                done = run_access(core, memory, log, k, scratch)
            elif op < FIRST_END:
                _begin_convergence(core, standing, k)
            else:
                break
            k += done
        at[AT], at[MODE], mode = k, BODY, NEXT
        if not done:
            return NEEDS_CONTENT if at[MISSING] >= 0 else NEEDS_STEP
        after = end * 16
        if k < end:
            after = UNUSUAL if op == UNKNOWN_END else run_end(core, standing, k, memory.lanes)
        if after >= 0:
            at[PC] = after
        elif after == MOVED:
            mode = CHOOSE
        elif after == LACKS_ROOM:
            return NEEDS_SLOTS
        elif after == MUST_RELEASE:
            at[MODE] = CHOOSE
            return NEEDS_RELEASE
        else:
            return NEEDS_END
