"""How a basic block ends: what a finish is, how opcodes register one, and what they all need.

A finish runs after the block's other instructions. It returns the PC at which the whole batch goes
on, or `MOVED` when it has placed the groups itself because they part or wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedInstructionError
from ..kernel.instruction import Instruction
from ..kernel.operand import PT, Operand
from .bits import pack, popcount
from .decode import Decoder
from .frame import Frame
from .operands import Fetch

if TYPE_CHECKING:
    from .scheduler import Scheduler

MOVED = -1
Finish = Callable[["Scheduler", Frame], int]
Builder = Callable[[Decoder, Instruction, int], Finish]
Lanes = npt.NDArray[np.bool_]
_BUILDERS: dict[str, tuple[Builder, frozenset[str]]] = {}


def finish(names: str, modifiers: str = "") -> Callable[[Builder], Builder]:
    """Register a builder of finishes for space-separated opcodes, with the modifiers that it understands."""

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

        def refused(s: Scheduler, f: Frame) -> int:
            refuse(f)
            return MOVED

        return refused


def condition_of(d: Decoder, i: Instruction, extra: Operand | None = None) -> Callable[[Frame], Lanes | None]:
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


def words_of(f: Frame, lanes: Lanes | None) -> npt.NDArray[np.uint32]:
    """Lanes as a word per member warp of the frame."""
    words = f.active if lanes is None else pack(lanes)
    return words if f.members is None else words[f.members]


def member_values(f: Frame, value: Any) -> npt.NDArray[np.uint32]:
    """A per-warp value, taken from each member's first executing lane."""
    full = f.spread(value)
    picked: npt.NDArray[np.uint32] = full[np.arange(f.rows), f.leader()]
    return picked if f.members is None else picked[f.members]
