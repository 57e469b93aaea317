"""Ends of basic blocks: branches, calls, exits, convergence and block barriers.

A finish runs after the block's other instructions. It returns the PC at which the whole batch goes
on, or `MOVED` when it has placed the groups itself because they part or wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import EmulationError, UnsupportedInstructionError
from ..kernel.cfg import jump_target
from ..kernel.instruction import Instruction
from ..kernel.operand import PT, Immediate, Operand, Predicate, Register, Special
from .bits import LANES, pack, popcount
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .groups import AT_BARRIER, AT_CONVERGENCE, AT_WARPSYNC, RUN
from .operands import ZERO, Fetch

if TYPE_CHECKING:
    from .scheduler import Scheduler

MOVED = -1
Finish = Callable[["Scheduler", Frame], int]
Builder = Callable[[Decoder, Instruction, int], Finish]
Lanes = npt.NDArray[np.bool_]
_BUILDERS: dict[str, tuple[Builder, frozenset[str]]] = {}
_RETURN_REGISTER = 20
"""First register of the return address in the device's calling convention."""
_RESULT_REGISTER = 4
"""First register of a result in the device's calling convention."""


def _finish(names: str, modifiers: str = "") -> Callable[[Builder], Builder]:
    def register(builder: Builder) -> Builder:
        for name in names.split():
            _BUILDERS[name] = (builder, frozenset(modifiers.split()))
        return builder

    return register


def build_finish(d: Decoder, i: Instruction) -> Finish:
    """The finish of a control instruction. One that is not supported raises when it is reached."""
    try:
        if i.opcode not in _BUILDERS:
            raise UnsupportedInstructionError("opcode")
        builder, allowed = _BUILDERS[i.opcode]
        for modifier in i.modifiers:
            if modifier not in allowed:
                raise UnsupportedInstructionError(f"modifier .{modifier}")
        return builder(d, i, i.pc + 16)
    except UnsupportedInstructionError as error:
        refuse = d.refusal(i, str(error))

        def finish(s: Scheduler, f: Frame) -> int:
            refuse(f)
            return MOVED

        return finish


def _condition(d: Decoder, i: Instruction, extra: Operand | None = None) -> Callable[[Frame], Lanes | None]:
    """Lanes for which an instruction acts: guard and `extra` true; None means all of the frame's."""
    index = i.pc // 16
    guard = i.guard if i.guard is not None and (i.guard.index != PT or i.guard.negate) else None
    tests: list[tuple[Fetch, bool]] = []
    if guard is not None:
        tests.append((d.predicate(guard), True))
    if extra is not None:
        tests.append((d.predicate(extra), False))

    def lanes(f: Frame) -> Lanes | None:
        result = f.lanes()
        for test, counted in tests:
            result = result & test(f)
            if counted:
                f.machine.guarded[index][f.index] += popcount(pack(result))
        return result

    return lanes if tests else (lambda f: None)


def _words(f: Frame, lanes: Lanes | None) -> npt.NDArray[np.uint32]:
    """Lanes as a word per member warp of the frame."""
    words = f.active if lanes is None else pack(lanes)
    return words if f.members is None else words[f.members]


def _member_values(f: Frame, value: Any) -> npt.NDArray[np.uint32]:
    """A per-warp value, taken from each member's first executing lane."""
    full = np.broadcast_to(value, (f.rows, LANES))
    picked: npt.NDArray[np.uint32] = full[np.arange(f.rows), f.leader()]
    return picked if f.members is None else picked[f.members]


# Branches -----------------------------------------------------------------------------------------


@_finish("BRA", "U DIV CONV ANY INC DEC")
def _branch(d: Decoder, i: Instruction, fall: int) -> Finish:
    target = jump_target(i)
    if target is None:
        raise UnsupportedInstructionError("unknown target")
    if "DIV" in i.modifiers or "CONV" in i.modifiers:
        return _branch_on_presence(d, i, fall, target)
    extra = next((o for o in i.operands if isinstance(o, Predicate)), None)
    if i.guard is None and extra is None:
        return lambda s, f: target
    condition = _condition(d, i, extra)

    def branch(s: Scheduler, f: Frame) -> int:
        lanes = condition(f)
        total = f.total if lanes is None else int(np.count_nonzero(lanes))
        if total == 0:
            return fall
        if total == f.total:
            return target
        s.split(_words(f, lanes), target, fall)
        return MOVED

    return branch


def _branch_on_presence(d: Decoder, i: Instruction, fall: int, target: int) -> Finish:
    """BRA.DIV jumps where live lanes of the mask are elsewhere, BRA.CONV where all are here."""
    wanted = d.word(next(o for o in i.operands if isinstance(o, Register)))
    divergent = "DIV" in i.modifiers

    def branch(s: Scheduler, f: Frame) -> int:
        active = _words(f, None)
        mask = _member_values(f, wanted(f))
        absent = (mask & f.machine.live[s.warps] & ~active) != ZERO
        taken = absent if divergent else ~absent
        if not taken.any():
            return fall
        if taken.all():
            return target
        s.split(np.where(taken, active, ZERO), target, fall)
        return MOVED

    return branch


@_finish("CALL", "REL ABS NOINC INC")
def _call(d: Decoder, i: Instruction, fall: int) -> Finish:
    # A call only jumps: the caller has put the return address into registers.
    target = jump_target(i)
    registers = [o for o in i.operands if isinstance(o, Register)]
    if "ABS" in i.modifiers:
        return _external_call(d, i, registers)
    if registers:
        return _jump_to_register(d, i, d.word(registers[0]), fall)
    if target is None:
        raise UnsupportedInstructionError("unknown target")
    condition = _condition(d, i)

    def call(s: Scheduler, f: Frame) -> int:
        lanes = condition(f)
        if lanes is None:
            return target
        s.split(_words(f, lanes), target, fall)
        return MOVED

    return call


def _external_call(d: Decoder, i: Instruction, registers: list[Register]) -> Finish:
    """A call of code that is not in the kernel (printf, malloc): returns 0 at once."""
    if i.guard is not None:
        raise UnsupportedInstructionError("a guarded call of code outside the kernel")
    result = d.put(Register(_RESULT_REGISTER))
    back = d.word(Register(_RETURN_REGISTER))
    jump = _jump_to(back, d, i)
    note = f"call of code outside the kernel at {place(d.kernel, i)} returned 0 without running"

    def call(s: Scheduler, f: Frame) -> int:
        f.machine.notes.add(note)
        result(f, ZERO)
        return jump(s, f, None)

    return call


@_finish("RET", "REL ABS NODEC INC")
def _return(d: Decoder, i: Instruction, fall: int) -> Finish:
    register = next(o for o in i.operands if isinstance(o, Register))
    return _jump_to_register(d, i, d.word(register), fall)


@_finish("BRX BRXU")
def _indexed_branch(d: Decoder, i: Instruction, fall: int) -> Finish:
    register = next(o for o in i.operands if isinstance(o, Register))
    offset = next((int(o.value) for o in i.operands if isinstance(o, Immediate)), 0)
    base, start = d.word(register), np.uint32((fall + offset) & 0xFFFFFFFF)
    return _jump_to_register(d, i, lambda f: base(f) + start, fall)


def _jump_to_register(d: Decoder, i: Instruction, target: Fetch, fall: int) -> Finish:
    condition = _condition(d, i)
    jump = _jump_to(target, d, i)

    def finish(s: Scheduler, f: Frame) -> int:
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


def _jump_to(target: Fetch, d: Decoder, i: Instruction) -> Callable[[Scheduler, Frame, None], int]:
    """Go to per-lane code addresses, relative to the kernel."""
    count = len(d.kernel.instructions)

    def jump(s: Scheduler, f: Frame, _: None) -> int:
        lanes = f.lanes()
        targets = np.broadcast_to(target(f), (f.rows, LANES))
        different = np.unique(targets[lanes]).tolist()
        for pc in different:
            if pc % 16 or pc // 16 >= count:
                raise EmulationError(f"{place(d.kernel, i)}: jump to {pc:#x}, which is not in the kernel: {i.text}")
        if len(different) == 1:
            return int(different[0])
        s.scatter([(pc, _words(f, lanes & (targets == np.uint32(pc)))) for pc in different])
        return MOVED

    return jump


# Ends ---------------------------------------------------------------------------------------------


@_finish("EXIT KILL", "KEEPREFCOUNT PREEMPTED NO_ATEXIT")
def _exit(d: Decoder, i: Instruction, fall: int) -> Finish:
    condition = _condition(d, i, next((o for o in i.operands if isinstance(o, Predicate)), None))

    def leave(s: Scheduler, f: Frame) -> int:
        lanes = condition(f)
        if lanes is not None and not lanes.any():
            return fall
        words = _words(f, lanes)
        warps = s.warps
        s.split(words, fall, fall, keep_taken=False)
        s.groups.retire(warps, words)
        s.groups.release(warps)
        s.groups.release_barriers(warps)
        return MOVED

    return leave


@_finish("BPT", "TRAP DRAIN PAUSE")
def _trap(d: Decoder, i: Instruction, fall: int) -> Finish:
    condition = _condition(d, i)

    def trap(s: Scheduler, f: Frame) -> int:
        lanes = condition(f)
        lanes = f.lanes() if lanes is None else lanes
        if not lanes.any():
            return fall
        row, lane = (int(x[0]) for x in np.nonzero(lanes))
        raise EmulationError(f"{place(d.kernel, i)}: trap by {f.machine.thread_name(int(f.warps[row]), lane)}")

    return trap


# Convergence --------------------------------------------------------------------------------------


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
        value = np.broadcast_to(source(f), (f.rows, LANES))[np.arange(f.rows), f.leader()]
        takes_part = f.words() != 0
        f.machine.barriers[number][f.warps[takes_part]] = value[takes_part] & f.machine.live[f.warps[takes_part]]

    return restore


@_finish("BSYNC", "RECONVERGENT RELIABLE")
def _converge(d: Decoder, i: Instruction, fall: int) -> Finish:
    number = _barrier_number(i)
    condition = _condition(d, i)

    def converge(s: Scheduler, f: Frame) -> int:
        lanes = condition(f)
        words = _words(f, lanes)
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


@_finish("BREAK", "RELIABLE")
def _leave_convergence(d: Decoder, i: Instruction, fall: int) -> Finish:
    number = _barrier_number(i)
    condition = _condition(d, i, next((o for o in i.operands if isinstance(o, Predicate)), None))

    def leave(s: Scheduler, f: Frame) -> int:
        words = _words(f, condition(f))
        f.machine.barriers[number][s.warps] &= ~words
        if s.others_wait:
            s.groups.release(s.warps)
            s.refresh()
        return fall

    return leave


@_finish("WARPSYNC", "ALL COLLECTIVE EXCLUSIVE")
def _synchronise_warp(d: Decoder, i: Instruction, fall: int) -> Finish:
    condition = _condition(d, i)
    operand = next((o for o in i.operands if isinstance(o, Register | Immediate)), None)
    mask = (lambda f: ~ZERO) if operand is None else d.word(operand)

    def synchronise(s: Scheduler, f: Frame) -> int:
        wanted = _member_values(f, mask(f))
        words = _words(f, condition(f))
        missing = np.where(words != ZERO, wanted & f.machine.live[s.warps] & ~words, ZERO)
        if not missing.any():
            return fall
        s.park(words, fall, AT_WARPSYNC, wanted.astype(np.int64))
        s.groups.release(s.warps)
        return MOVED

    return synchronise


@_finish("ENDCOLLECTIVE NANOSLEEP", "SYNCS")
def _go_on(d: Decoder, i: Instruction, fall: int) -> Finish:
    return lambda s, f: fall


@_finish("YIELD")
def _yield(d: Decoder, i: Instruction, fall: int) -> Finish:
    """Compilers put YIELD into loops that may wait for lanes of the same warp.

    Lanes that stand at a convergence barrier must not wait for these, or a lock that they hold would
    never be given back.
    """

    def yield_(s: Scheduler, f: Frame) -> int:
        s.groups.yielded[s.warps] |= _words(f, None)
        if s.others_wait:
            s.groups.release(s.warps)
            s.refresh()
        return fall

    return yield_


# Block barriers -----------------------------------------------------------------------------------


@_finish("BAR", "SYNC ARV RED DEFER_BLOCKING POPC AND OR SYNCALL")
def _block_barrier(d: Decoder, i: Instruction, fall: int) -> Finish:
    condition = _condition(d, i)
    numbers = [o for o in i.operands if not isinstance(o, Predicate)]
    arrive_only, reduces = "ARV" in i.modifiers, "RED" in i.modifiers
    kind = next((n for n in i.modifiers if n in ("POPC", "AND", "OR")), "") if reduces else ""
    vote = d.predicate(i.operands[-1]) if reduces else None
    known = [d.known(o) for o in numbers]
    fetches = [d.word(o) for o in numbers]
    simple = known == [0] and not arrive_only and not reduces and i.guard is None

    def arrive(s: Scheduler, f: Frame) -> int:
        groups, warps = s.groups, s.warps
        if simple and s.whole_blocks(f) and not groups.arrived[0].any():
            return fall
        words = _words(f, condition(f))
        number = _member_values(f, fetches[0](f)).astype(np.int64) & 15 if fetches else np.zeros(len(warps), np.int64)
        threads = _member_values(f, fetches[1](f)).astype(np.int64) if len(fetches) > 1 else np.int64(0)
        for used in np.unique(number).tolist():
            groups.reduction[used] = kind
        if vote is not None:
            given = np.broadcast_to(vote(f), (f.rows, LANES)) & f.lanes()
            groups.votes[number, warps] |= _words(f, given) & words
        if arrive_only:
            groups.arrived[number, warps] |= words
            s.park(_words(f, None), fall, RUN, 0)
        else:
            s.park(words, fall, AT_BARRIER, number | threads << 8)
        groups.release_barriers(warps)
        return MOVED

    return arrive


@opcode("B2R", "RESULT")
def _barrier_result(d: Decoder, i: Instruction) -> Step:
    registers = [d.put(o) for o in i.operands if isinstance(o, Register)]
    predicates = [d.put_predicate(o) for o in i.operands if isinstance(o, Predicate)]
    if "RESULT" not in i.modifiers:
        raise UnsupportedInstructionError("barrier state")

    def read(f: Frame) -> None:
        machine = f.machine
        value = machine.barrier_result[f.warps // machine.warps_per_block][:, None]
        for put in registers:
            put(f, value)
        for put in predicates:
            put(f, value != ZERO)

    return read
