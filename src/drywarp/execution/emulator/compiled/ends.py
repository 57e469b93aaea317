"""How basic blocks end: branches, exits, and the points where lanes and warps wait for each other."""

from __future__ import annotations

from typing import Any

from .groups import (
    AT_BARRIER,
    AT_CONVERGENCE,
    AT_WARPSYNC,
    drop,
    has_room,
    park,
    part,
    refresh,
    release,
    release_barriers,
    whole_blocks,
)
from .lane_arithmetic import equal
from .lanes import at_lane, count, lowest, splat
from .layout import (
    ALWAYS,
    BLOCK_BARRIER,
    BRANCH,
    COLUMNS,
    CONVERGENCE,
    EXIT,
    GUARD,
    IMM,
    IMM2,
    IN0,
    INSTRUCTIONS,
    JUMP,
    LEAVE_CONVERGENCE,
    LIVE_VERSION,
    MEMBERS,
    OP,
    OTHERS_WAIT,
    REDUCES,
    RETURN,
    SUB,
    TOTAL,
    WARP_SYNC,
    WARPS,
    YIELD,
    A,
)
from .operands import executing, fetch, lanes_of
from .pointers import inner

MOVED, LACKS_ROOM, UNUSUAL, MUST_RELEASE = -1, -2, -3, -4
"""Instead of a PC: groups were placed; too few slots; the NumPy handler must execute it; or finish it."""


@inner
def _act(core: Any, k: int, lanes: Any) -> int:
    """Count guards, and put each member's participating lanes, with guard and extra predicate true, into `lanes`."""
    total, extra = 0, core.code[k * COLUMNS + IN0]
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        acting = executing(core, k, w)
        if extra != ALWAYS:
            acting &= lanes_of(core, extra, w)
        lanes[member] = acting
        total += count(acting)
    return total


@inner
def _branch(core: Any, standing: Any, k: int, fall: int, lanes: Any) -> int:
    row = k * COLUMNS
    if core.code[row + GUARD] == ALWAYS and core.code[row + IN0] == ALWAYS:
        return core.code[row + IMM]
    # Before guards are counted: the branch is run again when there is room.
    if not has_room(core, standing):
        return LACKS_ROOM
    total = _act(core, k, lanes)
    if core.code[row + SUB] == 0:
        if total == 0:
            return fall
        if total == core.at[TOTAL]:
            return core.code[row + IMM]
    for member in range(core.at[MEMBERS]):
        part(core, standing, member, lanes[member], core.code[row + IMM], fall)
    return MOVED


@inner
def _exit(core: Any, standing: Any, k: int, fall: int, lanes: Any) -> int:
    at = core.at
    if _act(core, k, lanes) == 0:
        return fall
    for member in range(at[MEMBERS]):
        drop(core, standing, member, lanes[member], fall)
    at[LIVE_VERSION] += 1
    if not at[OTHERS_WAIT]:
        return MOVED
    release(core, standing)
    if at[REDUCES]:
        return MUST_RELEASE
    release_barriers(core, standing)
    return MOVED


@inner
def _converge(core: Any, standing: Any, k: int, fall: int) -> int:
    at, number = core.at, core.code[k * COLUMNS + IMM]
    first, missing = number * at[WARPS], 0
    for member in range(at[MEMBERS]):
        w = core.batch[member]
        standing.yielded[w] &= ~core.active[w]
        missing |= standing.barriers[first + w] & standing.live[w] & ~standing.yielded[w] & ~core.active[w]
    if missing == 0 and not at[OTHERS_WAIT]:
        for member in range(at[MEMBERS]):
            w = core.batch[member]
            standing.barriers[first + w] &= ~(core.active[w] | standing.yielded[w])
        return fall
    for member in range(at[MEMBERS]):
        w = core.batch[member]
        # Lanes that the barrier has already released need not wait.
        waits = core.active[w] if core.active[w] & standing.barriers[first + w] else 0
        park(core, standing, member, waits, fall, AT_CONVERGENCE + 0, number)
    release(core, standing)
    return MOVED


@inner
def _synchronise_warp(core: Any, standing: Any, k: int, fall: int, wanted: Any) -> int:
    missing = 0
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        masks = fetch(core, k * COLUMNS + A, w)
        wanted[member] = at_lane(masks, lowest(core.active[w]))
        if equal(masks, splat(wanted[member])) & core.active[w] != core.active[w]:
            return UNUSUAL
        missing |= wanted[member] & standing.live[w] & ~core.active[w]
    if missing == 0:
        return fall
    for member in range(core.at[MEMBERS]):
        lanes = core.active[core.batch[member]] + 0
        park(core, standing, member, lanes, fall, AT_WARPSYNC + 0, wanted[member])
    release(core, standing)
    return MOVED


@inner
def _block_barrier(core: Any, standing: Any, k: int, fall: int) -> int:
    at, key = core.at, core.code[k * COLUMNS + IMM] | core.code[k * COLUMNS + IMM2] << 8
    if at[REDUCES]:
        return UNUSUAL
    if key == 0 and whole_blocks(core, standing):
        arrived = 0
        for w in range(at[WARPS]):
            arrived |= standing.arrived[w]
        if arrived == 0:
            return fall
    for member in range(at[MEMBERS]):
        lanes = core.active[core.batch[member]] + 0
        park(core, standing, member, lanes, fall, AT_BARRIER + 0, key)
    release_barriers(core, standing)
    return MOVED


@inner
def _leave(core: Any, standing: Any, k: int, fall: int, lanes: Any) -> int:
    """Leave a convergence barrier, or yield: lanes that others need not wait for."""
    _act(core, k, lanes)
    yields = core.code[k * COLUMNS + OP] == YIELD
    first = core.code[k * COLUMNS + IMM] * core.at[WARPS]
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        if yields:
            standing.yielded[w] |= lanes[member]
        else:
            standing.barriers[first + w] &= ~lanes[member]
    if core.at[OTHERS_WAIT]:
        release(core, standing)
        refresh(core, standing)
    return fall


@inner
def _return(core: Any, k: int) -> int:
    """The target in a register, if it is the same for all lanes."""
    target = -1
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        places = fetch(core, k * COLUMNS + A, w)
        if target < 0:
            target = at_lane(places, lowest(core.active[w]))
        if equal(places, splat(target)) & core.active[w] != core.active[w]:
            return UNUSUAL
    return target if target & 15 == 0 and target >> 4 < core.at[INSTRUCTIONS] else UNUSUAL


@inner
def run_end(core: Any, standing: Any, k: int, lanes: Any) -> int:
    """Run the instruction that ends a block: the PC at which the batch continues, or what else is to be done."""
    op, fall = core.code[k * COLUMNS + OP], (k + 1) * 16
    if op == BRANCH:
        return _branch(core, standing, k, fall, lanes)
    if op == EXIT:
        return _exit(core, standing, k, fall, lanes)
    if op == CONVERGENCE:
        return _converge(core, standing, k, fall)
    if op == LEAVE_CONVERGENCE or op == YIELD:
        return _leave(core, standing, k, fall, lanes)
    if op == WARP_SYNC:
        return _synchronise_warp(core, standing, k, fall, lanes)
    if op == BLOCK_BARRIER:
        return _block_barrier(core, standing, k, fall)
    if op == JUMP:
        return core.code[k * COLUMNS + IMM]
    if op == RETURN:
        return _return(core, k)
    return fall
