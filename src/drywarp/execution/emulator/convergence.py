"""How a basic block ends: what a finish is, how opcodes register one, and shared helpers.

A finish runs after the block's other instructions. It returns the PC at which the whole batch continues, or `MOVED` if
it has placed the groups itself because they diverge or wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import PT, Immediate, Instruction, Operand, Predicate, Register, Special
from .bits import pack, popcount, unpack
from .decode import Decoder, Step, opcode
from .frame import Frame
from .groups import AT_CONVERGENCE, AT_WARPSYNC, RUN, Groups, PhaseWait
from .machine import U32, Machine
from .operands import ZERO, Fetch
from .recorder import Recorder

MOVED = -1


class Scheduling(Protocol):
    """The part of the scheduler that the end of a block reads and changes (see `scheduler.Scheduler`)."""

    machine: Machine
    groups: Groups
    recorder: Recorder
    warps: npt.NDArray[np.int64]
    others_wait: bool

    def refresh(self) -> None:
        """Update which group of which warps forms the batch."""

    def split(self, taken: U32, target: int, fall: int, keep_taken: bool = True) -> None:
        """Split the batch: lanes `taken` go to `target`, the others to `fall`."""

    def scatter(self, parts: list[tuple[int, U32]]) -> None:
        """Split the batch into lanes by their target PC."""

    def park(self, words: U32, pc: int, state: int, argument: Any) -> None:
        """Make lanes wait at `pc`, for what `state` and `argument` specify."""

    def park_for_phases(self, words: U32, pc: int, waits: Sequence[PhaseWait | None]) -> int:
        """Make warps wait for phases of mbarriers; None: for nothing."""

    def place(self, pc: int, words: U32, parts: Sequence[tuple[U32, int, Any]]) -> None:
        """Make some lanes wait, each part for what it names; the others go to `pc`."""

    def whole_blocks(self, frame: Frame) -> bool:
        """Whether the batch is all that remains of its thread blocks."""


Finish = Callable[[Scheduling, Frame], int]
Builder = Callable[[Decoder, Instruction, int], Finish]
Lanes = npt.NDArray[np.bool_]
_BUILDERS: dict[str, tuple[Builder, frozenset[str]]] = {}


def finish(names: str, modifiers: str = "") -> Callable[[Builder], Builder]:
    """Register a builder of finishes for space-separated opcodes, with the modifiers that it supports."""

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

        def refused(s: Scheduling, f: Frame) -> int:
            refuse(f)
            return MOVED

        return refused


def condition_of(d: Decoder, i: Instruction, extra: Operand | None = None) -> Callable[[Frame], Lanes | None]:
    """Lanes for which an instruction takes effect: guard and `extra` true; None means all of the frame's."""
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
                f.machine.guarded[f.machine.guards[index]][f.index] += popcount(pack(result))
        return result

    return lanes if tests else (lambda f: None)


def words_of(f: Frame, lanes: Lanes | None) -> npt.NDArray[np.uint32]:
    """Lanes as a word per member warp of the frame."""
    words = f.active if lanes is None else pack(lanes)
    return words if f.members is None else words[f.members]


def member_values(f: Frame, value: Any) -> npt.NDArray[np.uint32]:
    """A per-warp value, taken from each member's first executing lane."""
    full = f.spread(value)
    picked: npt.NDArray[np.uint32] = full[np.arange(f.rows), f.leader()]
    return picked if f.members is None else picked[f.members]


# Convergence barriers and warp synchronisation: where divergent lanes of a warp reconverge.


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
