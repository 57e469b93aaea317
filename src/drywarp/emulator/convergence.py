"""Convergence barriers and warp synchronisation: where divergent lanes of a warp come together again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernel.instruction import Instruction
from ..kernel.operand import Immediate, Predicate, Register, Special
from .decode import Decoder, Step, opcode
from .finish import MOVED, Finish, condition_of, finish, member_values, words_of
from .frame import Frame
from .groups import AT_CONVERGENCE, AT_WARPSYNC
from .operands import ZERO

if TYPE_CHECKING:
    from .scheduler import Scheduler


def _barrier_number(i: Instruction) -> int:
    name = next(o.name for o in i.operands if isinstance(o, Special) and o.name[0] == "B")
    return int(name[1:])


@opcode("BSSY", "RECONVERGENT RELIABLE")
def _begin_convergence(d: Decoder, i: Instruction) -> Step:
    """Add the executing lanes to a barrier. Two groups may pass the same BSSY at different times."""
    number = _barrier_number(i)

    def begin(f: Frame) -> None:
        f.machine.barriers[number][f.index] |= f.active if f.exec is None else f.words()

    return begin


@opcode("BMOV", "32 CLEAR PQUAD")
def _move_barrier(d: Decoder, i: Instruction) -> Step:
    """Save a convergence barrier's lanes in a register, or restore them, round a call."""
    number = _barrier_number(i)
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


@finish("BSYNC", "RECONVERGENT RELIABLE")
def _converge(d: Decoder, i: Instruction, fall: int) -> Finish:
    number = _barrier_number(i)
    condition = condition_of(d, i)

    def converge(s: Scheduler, f: Frame) -> int:
        lanes = condition(f)
        words = words_of(f, lanes)
        groups, machine, warps = s.groups, f.machine, s.warps
        groups.yielded[warps] &= ~words
        barrier = machine.barriers[number]
        if lanes is None:
            missing = barrier[warps] & machine.live[warps] & ~groups.yielded[warps] & ~words
            if not missing.any() and not s.others_wait:
                barrier[warps] &= ~(words | groups.yielded[warps])
                return fall
        # Lanes that the barrier has let go before (see YIELD) need not wait.
        words = np.where((words & barrier[warps]) != ZERO, words, ZERO)
        s.park(words, fall, AT_CONVERGENCE, number)
        groups.release(warps)
        return MOVED

    return converge


@finish("BREAK", "RELIABLE")
def _leave_convergence(d: Decoder, i: Instruction, fall: int) -> Finish:
    number = _barrier_number(i)
    condition = condition_of(d, i, next((o for o in i.operands if isinstance(o, Predicate)), None))

    def leave(s: Scheduler, f: Frame) -> int:
        words = words_of(f, condition(f))
        f.machine.barriers[number][s.warps] &= ~words
        if s.others_wait:
            s.groups.release(s.warps)
            s.refresh()
        return fall

    return leave


@finish("WARPSYNC", "ALL COLLECTIVE EXCLUSIVE")
def _synchronise_warp(d: Decoder, i: Instruction, fall: int) -> Finish:
    condition = condition_of(d, i)
    operand = next((o for o in i.operands if isinstance(o, Register | Immediate)), None)
    mask = (lambda f: ~ZERO) if operand is None else d.word(operand)

    def synchronise(s: Scheduler, f: Frame) -> int:
        wanted = member_values(f, mask(f))
        words = words_of(f, condition(f))
        missing = np.where(words != ZERO, wanted & f.machine.live[s.warps] & ~words, ZERO)
        if not missing.any():
            return fall
        s.park(words, fall, AT_WARPSYNC, wanted.astype(np.int64))
        s.groups.release(s.warps)
        return MOVED

    return synchronise


@finish("ENDCOLLECTIVE NANOSLEEP", "SYNCS")
def _go_on(d: Decoder, i: Instruction, fall: int) -> Finish:
    return lambda s, f: fall


@finish("YIELD")
def _yield(d: Decoder, i: Instruction, fall: int) -> Finish:
    """Compilers put YIELD into loops that may wait for lanes of the same warp.

    Lanes that stand at a convergence barrier must not wait for these, or a lock that they hold would
    never be given back.
    """

    condition = condition_of(d, i)

    def yield_(s: Scheduler, f: Frame) -> int:
        s.groups.yielded[s.warps] |= words_of(f, condition(f))
        if s.others_wait:
            s.groups.release(s.warps)
            s.refresh()
        return fall

    return yield_
