"""Convergence barriers and warp synchronisation: where divergent lanes of a warp reconverge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...kernel.instruction import Immediate, Instruction, Predicate, Register, Special
from .bits import pack, unpack
from .decode import Decoder, Step, opcode
from .finish import MOVED, Finish, condition_of, finish, member_values, words_of
from .frame import Frame
from .groups import AT_CONVERGENCE, AT_WARPSYNC, RUN
from .operands import ZERO

if TYPE_CHECKING:
    from .finish import Scheduling


def _barrier_number(i: Instruction) -> int:
    name = next(o.name for o in i.operands if isinstance(o, Special) and o.name[0] == "B")
    return int(name[1:])


@opcode("BSSY", "RECONVERGENT RELIABLE")
def _begin_convergence(d: Decoder, i: Instruction) -> Step:
    """Add the executing lanes to a barrier. Two groups may execute the same BSSY at different times.

    What lanes gave way to (see YIELD) before they came here does not hold for this barrier.
    """
    number = _barrier_number(i)

    def begin(f: Frame) -> None:
        words = f.active if f.exec is None else f.words()
        f.machine.barriers[number][f.index] |= words
        f.machine.yielded[f.index] &= ~words

    return begin


@opcode("BMOV", "32 CLEAR PQUAD")
def _move_barrier(d: Decoder, i: Instruction) -> Step:
    """Save a convergence barrier's lanes in a register, or restore them, around a call."""
    number = _barrier_number(i)
    if all(isinstance(o, Special) for o in i.operands):
        return _copy_barrier(i)
    if isinstance(i.operands[0], Register):
        put, clear = d.put(i.operands[0]), "CLEAR" in i.modifiers

        def save(f: Frame) -> None:
            put(f, f.machine.barriers[number][f.index][:, None].copy())
            if clear:
                f.machine.barriers[number][f.warps[f.words() != 0]] = 0

        return save
    source = d.word(i.operands[1])

    def restore(f: Frame) -> None:
        value = f.spread(source(f))[np.arange(f.rows), f.leader()]
        takes_part = f.words() != 0
        f.machine.barriers[number][f.warps[takes_part]] = value[takes_part] & f.machine.live[f.warps[takes_part]]

    return restore


def _copy_barrier(i: Instruction) -> Step:
    """Copy one convergence barrier to another; sm_87 clears them this way at the start."""
    target, source = (int(o.name[1:]) for o in i.operands if isinstance(o, Special))
    clear = "CLEAR" in i.modifiers

    def copy(f: Frame) -> None:
        barriers, warps = f.machine.barriers, f.warps[f.words() != 0]
        barriers[target][warps] = barriers[source][warps]
        if clear:
            barriers[source][warps] = 0

    return copy


@finish("BSYNC", "RECONVERGENT RELIABLE")
def _converge(d: Decoder, i: Instruction, fall: int) -> Finish:
    number = _barrier_number(i)
    condition = condition_of(d, i)

    def converge(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        words = words_of(f, lanes)
        groups, machine, warps = s.groups, f.machine, s.warps
        machine.yielded[warps] &= ~words
        barrier = machine.barriers[number]
        if lanes is None:
            missing = barrier[warps] & machine.live[warps] & ~machine.yielded[warps] & ~words
            if not missing.any() and not s.others_wait:
                barrier[warps] &= ~(words | machine.yielded[warps])
                return fall
        # Lanes that the barrier has already released (see YIELD) need not wait.
        words = np.where((words & barrier[warps]) != ZERO, words, ZERO)
        s.park(words, fall, AT_CONVERGENCE, number)
        groups.release(warps)
        return MOVED

    return converge


@finish("BREAK", "RELIABLE")
def _leave_convergence(d: Decoder, i: Instruction, fall: int) -> Finish:
    number = _barrier_number(i)
    condition = condition_of(d, i, next((o for o in i.operands if isinstance(o, Predicate)), None))

    def leave(s: Scheduling, f: Frame) -> int:
        words = words_of(f, condition(f))
        f.machine.barriers[number][s.warps] &= ~words
        if s.others_wait:
            s.groups.release(s.warps)
            s.refresh()
        return fall

    return leave


@finish("WARPSYNC", "ALL COLLECTIVE EXCLUSIVE")
def _synchronise_warp(d: Decoder, i: Instruction, fall: int) -> Finish:
    """Wait for the live lanes of a mask, which may differ between lanes.

    With .EXCLUSIVE, lanes with different masks continue separately, so the code that follows sees one mask at a time.
    """
    condition = condition_of(d, i)
    operand = next((o for o in i.operands if isinstance(o, Register | Immediate)), None)
    mask = (lambda f: ~ZERO) if operand is None else d.word(operand)
    exclusive = "EXCLUSIVE" in i.modifiers

    def synchronise(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        words = words_of(f, lanes)
        wanted = member_values(f, mask(f))
        masks = f.spread(mask(f))
        if np.size(masks) and _differ(f, masks, lanes):
            members = slice(None) if f.members is None else f.members
            _each_mask(s, unpack(words), masks[members], fall, exclusive)
            s.groups.release(s.warps)
            return MOVED
        missing = np.where(words != ZERO, wanted & f.machine.live[s.warps] & ~words, ZERO)
        if not missing.any():
            return fall
        s.park(words, fall, AT_WARPSYNC, wanted.astype(np.int64))
        s.groups.release(s.warps)
        return MOVED

    return synchronise


def _differ(f: Frame, masks: npt.NDArray[np.uint32], lanes: npt.NDArray[np.bool_] | None) -> bool:
    """Whether executing lanes of one warp name different masks."""
    first = masks[np.arange(f.rows), f.leader()][:, None]
    different = masks != first
    where = f.lanes() if lanes is None else f.lanes() & lanes
    return bool((different & where).any())


def _each_mask(
    s: Scheduling, lanes: npt.NDArray[np.bool_], masks: npt.NDArray[np.uint32], fall: int, exclusive: bool
) -> None:
    """Place the lanes of a batch, shape (warps, 32), grouped by the mask that each names."""
    live = s.machine.live[s.warps]
    parts: list[tuple[npt.NDArray[np.uint32], int, npt.NDArray[np.int64]]] = []
    together = np.zeros(len(s.warps), np.uint32)
    left = lanes.copy()
    while left.any():
        chosen = masks[np.arange(len(masks)), left.argmax(axis=1)]
        same = left & (masks == chosen[:, None])
        words = pack(same)
        complete = (chosen & live & ~words) == ZERO
        if not exclusive:
            together |= np.where(complete, words, ZERO)
            words = np.where(complete, ZERO, words)
        argument = chosen.astype(np.int64)
        parts.append((np.where(complete, words, ZERO), RUN, argument))
        parts.append((np.where(complete, ZERO, words), AT_WARPSYNC, argument))
        left &= ~same
    s.place(fall, together, parts)


@finish("ENDCOLLECTIVE")
def _go_on(d: Decoder, i: Instruction, fall: int) -> Finish:
    return lambda s, f: fall


@finish("YIELD NANOSLEEP", "SYNCS WARP")
def _yield(d: Decoder, i: Instruction, fall: int) -> Finish:
    """Compilers put YIELD into loops that may wait for lanes of the same warp, unless these sleep anyway.

    Lanes at a convergence barrier must not wait for these, or a lock that they hold would never be released. A warp
    whose lanes are all here gives way to none of its own.
    """

    condition = condition_of(d, i)

    def yield_(s: Scheduling, f: Frame) -> int:
        whole = words_of(f, None) == f.machine.live[s.warps]
        f.machine.yielded[s.warps] |= np.where(whole, ZERO, words_of(f, condition(f)))
        if s.others_wait:
            s.groups.release(s.warps)
            s.refresh()
        return fall

    return yield_
