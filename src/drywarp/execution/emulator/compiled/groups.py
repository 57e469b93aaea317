"""Positions of groups of lanes, in compiled code: forming a batch, diverging, waiting and reconverging.

The same rules as in the emulator's own `groups` and `scheduler`, on the same arrays. A group is identified by its place
in them, slot * warps + warp.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .lanes import count
from .layout import (
    BLOCK_COLUMNS,
    BLOCK_NUMBER,
    BLOCK_SPINS,
    DONE,
    FAR,
    FULL,
    INSTRUCTIONS,
    MEMBERS,
    NEEDS_DECODING,
    NEXT_OTHER,
    OTHERS_WAIT,
    PC,
    PER_BLOCK,
    STEP,
    STUCK,
    TOTAL,
    TURNED,
    WAITED,
    WARPS,
)
from .pointers import inner

EMPTY, RUN, AT_CONVERGENCE, AT_WARPSYNC, AT_BARRIER = range(5)
ROTATE_EVERY = 512
CHOSEN = 100
BARRIER_REGISTERS = 16


class Standing(NamedTuple):
    """The groups of all warps, as pointers to the arrays of `groups.Groups` and `machine.Machine`.

    `slots` are those of the batch; `places` is the maximum number of groups, slots * warps.
    """

    pc: Any
    mask: Any
    state: Any
    argument: Any
    stamp: Any
    live: Any
    barriers: Any
    yielded: Any
    arrived: Any
    votes: Any
    slots: Any
    places: Any


@inner
def entered(at: Any, entries: Any, pc: int) -> int:
    """The row of the block that begins at a PC; -1 if it is not decoded yet."""
    row = (pc >> 4) * BLOCK_COLUMNS
    return row if pc >> 4 < at[INSTRUCTIONS] and entries[row + BLOCK_NUMBER] >= 0 else -1


@inner
def choose(core: Any, standing: Any, entries: Any) -> int:
    """Form the next batch: CHOSEN, or why there is none. The lowest PC goes first, occasionally the oldest group."""
    at, pcs, states = core.at, standing.pc, standing.state
    pc, oldest, oldest_pc, left = FAR, FAR, FAR, False
    for place in range(standing.places):
        if states[place] == RUN:
            pc = min(pc, pcs[place])
            if standing.stamp[place] < oldest:
                oldest, oldest_pc = standing.stamp[place], pcs[place]
        left = left or states[place] != EMPTY
    if pc == FAR:
        return STUCK if left else DONE
    turn = at[STEP] - at[TURNED] >= ROTATE_EVERY
    if not turn or oldest_pc != pc:
        row = entered(at, entries, pc)
        if row < 0:
            at[PC] = pc
            return NEEDS_DECODING
        if entries[row + BLOCK_SPINS] and oldest_pc != pc:
            at[WAITED] = 1
        if turn or entries[row + BLOCK_SPINS]:
            pc = oldest_pc
    if turn:
        at[TURNED] = at[STEP]
    at[PC] = pc
    _form(core, standing, pc)
    return CHOSEN


@inner
def _form(core: Any, standing: Any, pc: int) -> None:
    """Make a batch of each warp's first group that is at a PC."""
    at, warps = core.at, core.at[WARPS]
    members, total = 0, 0
    for w in range(warps):
        taken = -1
        for place in range(w, standing.places, warps):
            if taken < 0 and standing.state[place] == RUN and standing.pc[place] == pc:
                taken = place
        core.active[w] = 0
        if taken >= 0:
            core.active[w] = standing.mask[taken]
            core.batch[members] = w
            standing.slots[members] = taken // warps
            members += 1
            total += count(standing.mask[taken])
    at[MEMBERS], at[TOTAL] = members, total
    refresh(core, standing)


@inner
def refresh(core: Any, standing: Any) -> None:
    """Update the positions of the groups outside the batch."""
    at, warps, member = core.at, core.at[WARPS], 0
    next_other, waits = FAR, 0
    for w in range(warps):
        taken = -1
        if member < at[MEMBERS] and core.batch[member] == w:
            taken = standing.slots[member] * warps + w
            member += 1
        for place in range(w, standing.places, warps):
            if standing.state[place] > RUN:
                waits = 1
            elif standing.state[place] == RUN and place != taken:
                next_other = min(next_other, standing.pc[place])
    at[NEXT_OTHER], at[OTHERS_WAIT] = next_other, waits


@inner
def settle(standing: Any, place: int, pc: int, lanes: int, state: int, argument: int) -> None:
    """Put a group into a place; a group without lanes empties it."""
    standing.pc[place] = pc
    standing.mask[place] = lanes
    standing.state[place] = state if lanes else EMPTY
    standing.argument[place] = argument


@inner
def _add(core: Any, standing: Any, w: int, pc: int, lanes: int) -> None:
    """Put a running group into the first empty slot of a warp; there must be one."""
    for place in range(w, standing.places, core.at[WARPS]):
        if standing.state[place] == EMPTY:
            standing.stamp[place] = 0
            settle(standing, place, pc, lanes, RUN + 0, 0)
            return


@inner
def has_room(core: Any, standing: Any) -> bool:
    """Whether every warp of the batch has an empty slot."""
    for member in range(core.at[MEMBERS]):
        found = False
        for place in range(core.batch[member], standing.places, core.at[WARPS]):
            found = found or standing.state[place] == EMPTY
        if not found:
            return False
    return True


@inner
def _place_of(core: Any, standing: Any, member: int) -> int:
    return standing.slots[member] * core.at[WARPS] + core.batch[member]


@inner
def part(core: Any, standing: Any, member: int, taken: int, target: int, fall: int) -> None:
    """Send the `taken` lanes of a member of the batch to `target`, its others to `fall`."""
    w, place = core.batch[member], _place_of(core, standing, member)
    rest = core.active[w] & ~taken
    standing.stamp[place] = core.at[STEP]
    settle(standing, place, fall if rest else target, rest if rest else taken, RUN + 0, 0)
    if rest and taken:
        _add(core, standing, w, target, taken)


@inner
def drop(core: Any, standing: Any, member: int, gone: int, fall: int) -> None:
    """Let lanes of a member of the batch exit; its others continue at `fall`."""
    w, place = core.batch[member], _place_of(core, standing, member)
    standing.stamp[place] = core.at[STEP]
    settle(standing, place, fall, core.active[w] & ~gone, RUN + 0, 0)
    standing.live[w] &= ~gone
    for number in range(BARRIER_REGISTERS):
        standing.barriers[number * core.at[WARPS] + w] &= ~gone


@inner
def park(core: Any, standing: Any, member: int, lanes: int, pc: int, state: int, argument: int) -> None:
    """Let lanes of a member of the batch wait, to resume at `pc`; its others continue there at once."""
    w, place = core.batch[member], _place_of(core, standing, member)
    rest = core.active[w] & ~lanes
    settle(standing, place, pc, lanes, state, argument)
    standing.stamp[place] = core.at[STEP]
    if rest:
        _add(core, standing, w, pc, rest)


@inner
def _merge(core: Any, standing: Any, w: int, state: int, argument: int, within: int) -> None:
    """Resume a warp's groups that wait in this way, merging those with the same PC.

    Only groups with lanes `within` count.
    """
    warps, places = core.at[WARPS], standing.places
    for place in range(w, places, warps):
        if not _waits_so(standing, place, state, argument, within):
            continue
        for other in range(place + warps, places, warps):
            if _waits_so(standing, other, state, argument, within) and standing.pc[other] == standing.pc[place]:
                standing.mask[place] |= standing.mask[other]
                standing.mask[other] = 0
                standing.state[other] = EMPTY
        standing.state[place] = RUN


@inner
def _waits_so(standing: Any, place: int, state: int, argument: int, within: int) -> bool:
    if standing.state[place] != state or standing.mask[place] & within == 0:
        return False
    return state == AT_WARPSYNC or standing.argument[place] == argument


@inner
def _release_convergence(core: Any, standing: Any, w: int, number: int) -> None:
    barrier = number * core.at[WARPS] + w
    inside, waiting, state = standing.barriers[barrier] & FULL, 0, AT_CONVERGENCE + 0
    for place in range(w, standing.places, core.at[WARPS]):
        # A group whose lanes are not in the barrier waits for an outer use of it.
        if _waits_so(standing, place, state, number, inside):
            waiting |= standing.mask[place]
    needed = inside & standing.live[w] & ~standing.yielded[w]
    if waiting and needed & ~waiting == 0:
        standing.barriers[barrier] &= ~(waiting | standing.yielded[w])
        _merge(core, standing, w, state, number, inside)


@inner
def _waits_alike(standing: Any, other: int, place: int) -> bool:
    """Whether two groups wait at the same synchronisation of the same lanes."""
    if standing.state[other] != AT_WARPSYNC or standing.argument[other] != standing.argument[place]:
        return False
    return standing.pc[other] == standing.pc[place]


@inner
def _release_warpsync(core: Any, standing: Any, w: int) -> None:
    warps, places = core.at[WARPS], standing.places
    for place in range(w, places, warps):
        if standing.state[place] != AT_WARPSYNC:
            continue
        waiting = 0
        for other in range(w, places, warps):
            if _waits_alike(standing, other, place):
                waiting |= standing.mask[other]
        if standing.argument[place] & standing.live[w] & ~waiting == 0:
            for other in range(place + warps, places, warps):
                if _waits_alike(standing, other, place):
                    standing.mask[other] = 0
                    standing.state[other] = EMPTY
            standing.mask[place] = waiting
            standing.state[place] = RUN


@inner
def release(core: Any, standing: Any) -> None:
    """Resume the groups in the batch's warps that no longer need to wait."""
    for member in range(core.at[MEMBERS]):
        w = core.batch[member]
        numbers, synchronises = 0, False
        for place in range(w, standing.places, core.at[WARPS]):
            if standing.state[place] == AT_CONVERGENCE:
                numbers |= 1 << standing.argument[place]
            synchronises = synchronises or standing.state[place] == AT_WARPSYNC
        for number in range(BARRIER_REGISTERS):
            if numbers >> number & 1:
                _release_convergence(core, standing, w, number)
        if synchronises:
            _release_warpsync(core, standing, w)


@inner
def whole_blocks(core: Any, standing: Any) -> bool:
    """Whether the batch holds every live lane of every block of which it has warps."""
    per_block = core.at[PER_BLOCK]
    for first in range(0, core.at[WARPS], per_block):
        present, missing = 0, 0
        for w in range(first, first + per_block):
            present |= core.active[w]
            missing |= standing.live[w] & ~core.active[w]
        if present and missing:
            return False
    return True


@inner
def _may_pass(core: Any, standing: Any, first: int, key: int) -> bool:
    """Whether everything that a block's barrier waits for has arrived."""
    warps, number, threads = core.at[WARPS], key & 255, key >> 8
    arrived, everyone = 0, True
    for w in range(first, first + core.at[PER_BLOCK]):
        there = standing.arrived[number * warps + w] & FULL
        for place in range(w, standing.places, warps):
            if standing.state[place] == AT_BARRIER and standing.argument[place] == key:
                there |= standing.mask[place]
        everyone = everyone and standing.live[w] & ~there == 0
        arrived += 1 if there else 0
    # A stated count is met by whole warps: each counts as 32 threads, full or not.
    return arrived * 32 >= threads if threads else everyone


@inner
def _pass(core: Any, standing: Any, first: int, key: int) -> None:
    warps, number = core.at[WARPS], key & 255
    for w in range(first, first + core.at[PER_BLOCK]):
        standing.arrived[number * warps + w] = 0
        standing.votes[number * warps + w] = 0
        for place in range(w, standing.places, warps):
            if standing.state[place] == AT_BARRIER and standing.argument[place] == key:
                standing.state[place] = RUN


@inner
def release_barriers(core: Any, standing: Any) -> None:
    """Release the blocks that have fully arrived at a barrier, without reductions, which the caller must rule out."""
    warps, per_block = core.at[WARPS], core.at[PER_BLOCK]
    for first in range(0, warps, per_block):
        closed = -1
        for w in range(first, first + per_block):
            for place in range(w, standing.places, warps):
                key = standing.argument[place]
                if standing.state[place] != AT_BARRIER or key == closed:
                    continue
                if _may_pass(core, standing, first, key):
                    _pass(core, standing, first, key)
                else:
                    closed = key
