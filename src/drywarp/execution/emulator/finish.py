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
from ...kernel.instruction import PT, Instruction, Operand
from .bits import pack, popcount
from .decode import Decoder
from .frame import Frame
from .groups import Groups, PhaseWait
from .machine import U32, Machine
from .operands import Fetch
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
