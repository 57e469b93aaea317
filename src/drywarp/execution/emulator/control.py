"""Branches, calls, returns and exits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.cfg import jump_target
from ...kernel.instruction import URZ, Immediate, Instruction, Label, Predicate, Register
from .decode import Decoder, place
from .externals import external_at, external_call
from .finish import MOVED, Finish, condition_of, finish, member_values, words_of
from .frame import Frame
from .operands import ZERO, Fetch

if TYPE_CHECKING:
    from .finish import Scheduling

_RETURN_REGISTER = 20
"""First register of the return address in the device's calling convention."""


@finish("BRA", "U DIV CONV ANY ALL")
def _branch(d: Decoder, i: Instruction, fall: int) -> Finish:
    target = jump_target(i)
    if target is None:
        raise UnsupportedInstructionError("unknown target")
    if "DIV" in i.modifiers or "CONV" in i.modifiers:
        return _branch_on_presence(d, i, fall, target)
    if "ANY" in i.modifiers or "ALL" in i.modifiers:
        return _branch_together(d, i, fall, target)
    extra = next((o for o in i.operands if isinstance(o, Predicate)), None)
    if i.guard is None and extra is None:
        return lambda s, f: target
    condition = condition_of(d, i, extra)

    def branch(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        total = f.total if lanes is None else int(np.count_nonzero(lanes))
        if total == 0:
            return fall
        if total == f.total:
            return target
        s.split(words_of(f, lanes), target, fall)
        return MOVED

    return branch


def _branch_on_presence(d: Decoder, i: Instruction, fall: int, target: int) -> Finish:
    """BRA.DIV jumps if live lanes of the mask are missing here, BRA.CONV if all are present.

    The guard says which lanes count as present (compilers use one that is false if lanes name different masks); either
    all executing lanes jump or none.
    """
    # Without a mask, as on sm_75, the whole warp is meant.
    everyone = Register(URZ, True, invert=True)
    wanted = d.word(next((o for o in i.operands if isinstance(o, Register)), everyone))
    condition = condition_of(d, i)
    divergent = "DIV" in i.modifiers

    def branch(s: Scheduling, f: Frame) -> int:
        mask = member_values(f, wanted(f))
        absent = (mask & f.machine.live[s.warps] & ~words_of(f, condition(f))) != ZERO
        taken = absent if divergent else ~absent
        if not taken.any():
            return fall
        if taken.all():
            return target
        s.split(np.where(taken, words_of(f, None), ZERO), target, fall)
        return MOVED

    return branch


def _branch_together(d: Decoder, i: Instruction, fall: int, target: int) -> Finish:
    """BRA.U.ANY and BRA.U.ALL: all executing lanes jump if any of them, or all, would."""
    condition = condition_of(d, i, next((o for o in i.operands if isinstance(o, Predicate)), None))
    every = "ALL" in i.modifiers

    def branch(s: Scheduling, f: Frame) -> int:
        active, would = words_of(f, None), words_of(f, condition(f))
        taken = would == active if every else would != ZERO
        if not taken.any():
            return fall
        if taken.all():
            return target
        s.split(np.where(taken, active, ZERO), target, fall)
        return MOVED

    return branch


@finish("CALL", "REL ABS NOINC INC")
def _call(d: Decoder, i: Instruction, fall: int) -> Finish:
    # A call is only a jump: the caller has already put the return address into registers.
    target = jump_target(i)
    registers = [o for o in i.operands if isinstance(o, Register)]
    if "ABS" in i.modifiers:
        return _absolute_call(d, i, fall, registers)
    if registers:
        return _jump_to_register(d, i, d.word(registers[0]), fall)
    if target is None:
        raise UnsupportedInstructionError("unknown target")
    condition = condition_of(d, i)

    def call(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        if lanes is None:
            return target
        s.split(words_of(f, lanes), target, fall)
        return MOVED

    return call


def _absolute_call(d: Decoder, i: Instruction, fall: int, registers: list[Register]) -> Finish:
    """A call by address: of a driver function, which returns immediately, or of code in the kernel."""
    condition = condition_of(d, i)
    target = d.pair(registers[0]) if registers else None
    names = {name for label in i.operands if isinstance(label, Label) for name in (label.name,)}
    back = _jump_to(d.word(Register(_RETURN_REGISTER)), d, i)
    inside = _jump_to(d.word(registers[0]), d, i) if registers else None
    # Decoded with the block, so the registers that they use are known.
    outside = {name: external_call(d, i, name) for name in {*names, *(e.name for e in d.kernel.externals)}}

    def call(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        words = words_of(f, lanes)
        if not words.any():
            return fall
        if lanes is not None and (words != words_of(f, None)).any():
            # The calling lanes return here on their own.
            s.split(words, i.pc, fall)
            return MOVED
        if target is None or inside is None:
            outside[next(iter(names))](f)
            return back(s, f, None)
        addresses = f.spread(target(f))[f.lanes()]
        if addresses.max() < d.kernel.instructions[-1].pc:
            return inside(s, f, None)
        name = external_at(d.kernel, int(addresses[0]))
        if name is None or (addresses != addresses[0]).any():
            raise EmulationError(
                f"{place(d.kernel, i)}: call of {int(addresses[0]):#x}, which is not a function: {i.text}"
            )
        outside[name](f)
        return back(s, f, None)

    return call


@finish("RET", "REL ABS NODEC INC")
def _return(d: Decoder, i: Instruction, fall: int) -> Finish:
    register = next(o for o in i.operands if isinstance(o, Register))
    return _jump_to_register(d, i, d.word(register), fall)


@finish("BRX BRXU")
def _indexed_branch(d: Decoder, i: Instruction, fall: int) -> Finish:
    register = next(o for o in i.operands if isinstance(o, Register))
    offset = next((int(o.value) for o in i.operands if isinstance(o, Immediate)), 0)
    base, start = d.word(register), np.uint32((fall + offset) & 0xFFFFFFFF)
    return _jump_to_register(d, i, lambda f: base(f) + start, fall)


def _jump_to_register(d: Decoder, i: Instruction, target: Fetch, fall: int) -> Finish:
    condition = condition_of(d, i)
    jump = _jump_to(target, d, i)

    def finish(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        if lanes is not None:
            if not lanes.any():
                return fall
            if not lanes[f.lanes()].all():
                raise UnsupportedInstructionError(
                    f"{place(d.kernel, i)}: indirect jump under a divergent guard: {i.text}"
                )
        return jump(s, f, None)

    return finish


def _jump_to(target: Fetch, d: Decoder, i: Instruction) -> Callable[[Scheduling, Frame, None], int]:
    """Go to per-lane code addresses, relative to the kernel."""
    count = len(d.kernel.instructions)

    def jump(s: Scheduling, f: Frame, _: None) -> int:
        lanes = f.lanes()
        targets = f.spread(target(f))
        different = np.unique(targets[lanes]).tolist()
        for pc in different:
            if pc % 16 or pc // 16 >= count:
                raise EmulationError(f"{place(d.kernel, i)}: jump to {pc:#x}, which is not in the kernel: {i.text}")
        if len(different) == 1:
            return int(different[0])
        s.scatter([(pc, words_of(f, lanes & (targets == np.uint32(pc)))) for pc in different])
        return MOVED

    return jump


@finish("EXIT KILL", "KEEPREFCOUNT PREEMPTED NO_ATEXIT")
def _exit(d: Decoder, i: Instruction, fall: int) -> Finish:
    condition = condition_of(d, i, next((o for o in i.operands if isinstance(o, Predicate)), None))

    def leave(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        if lanes is not None and not lanes.any():
            return fall
        words = words_of(f, lanes)
        warps = s.warps
        s.split(words, fall, fall, keep_taken=False)
        s.groups.retire(warps, words)
        s.groups.release(warps)
        s.groups.release_barriers(warps)
        return MOVED

    return leave
