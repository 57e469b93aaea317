"""Dispatch: an instruction becomes a step, a function of the frame that it runs on.

Modules of this folder register a handler per opcode with `opcode`; a handler reads the operands once and returns the
closure. An instruction without a handler becomes a step that raises when it is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import PT, Instruction, Register
from ...kernel.kernel import Kernel
from .bits import pack, popcount
from .constants import ConstantBanks
from .frame import Frame
from .memory import DeviceMemory
from .operands import Fetch, Operands

if TYPE_CHECKING:
    from .recorder import Recorder

Step = Callable[[Frame], None]
Handler = Callable[["Decoder", Instruction], Step]

_HANDLERS: dict[str, tuple[Handler, frozenset[str] | None]] = {}


def opcode(names: str, modifiers: str | None = "") -> Callable[[Handler], Handler]:
    """Register a handler for space-separated opcodes, with the modifiers that it supports.

    `modifiers` None leaves the check to the handler.
    """

    def register(handler: Handler) -> Handler:
        for name in names.split():
            _HANDLERS[name] = (handler, None if modifiers is None else frozenset(modifiers.split()))
        return handler

    return register


def computed() -> frozenset[str]:
    """The opcodes with a handler; importing `program` registers all. Each has a row in the table of opcodes."""
    return frozenset(_HANDLERS)


def place(kernel: Kernel, instruction: Instruction) -> str:
    """The location of an instruction, for messages: kernel, address and source line."""
    source = f" ({instruction.source})" if instruction.source else ""
    return f"{kernel.name} at {instruction.pc:#06x}{source}"


class Decoder(Operands):
    """Makes steps of the instructions of one kernel under one launch."""

    def __init__(self, kernel: Kernel, banks: ConstantBanks, memory: DeviceMemory, recorder: Recorder) -> None:
        super().__init__(banks)
        self.kernel = kernel
        self.memory = memory
        self.recorder = recorder

    def decode(self, instruction: Instruction) -> Step:
        """The step of an instruction, its guard included."""
        try:
            step = self._step(instruction)
        except UnsupportedInstructionError as error:
            step = self.refusal(instruction, str(error))
        return self._guarded(instruction, step)

    def _step(self, instruction: Instruction) -> Step:
        if instruction.opcode not in _HANDLERS:
            raise UnsupportedInstructionError("opcode")
        handler, allowed = _HANDLERS[instruction.opcode]
        if allowed is not None:
            for modifier in instruction.modifiers:
                if modifier not in allowed:
                    raise UnsupportedInstructionError(f"modifier .{modifier}")
        return handler(self, instruction)

    def refusal(self, instruction: Instruction, what: str) -> Step:
        """A step that raises UnsupportedInstructionError naming the instruction."""
        message = (
            f"{place(self.kernel, instruction)}: {instruction.full_opcode} is not supported by the emulator"
            f" ({what}): {instruction.text}"
        )

        def refuse(f: Frame) -> None:
            raise UnsupportedInstructionError(message)

        return refuse

    def _guarded(self, instruction: Instruction, step: Step) -> Step:
        guard = instruction.guard
        if guard is None or (guard.index == PT and not guard.negate):
            return step
        test = self.predicate(guard)
        index = instruction.pc // 16
        # R2UR may compare lanes in a predicate before it names its uniform register.
        first = next(iter(instruction.operands), None)
        if guard.uniform or instruction.opcode == "R2UR" or (isinstance(first, Register) and first.uniform):
            return _guarded_uniform(step, test, index)

        def guarded(f: Frame) -> None:
            lanes = test(f)
            if f.exec is not None:
                lanes = lanes & f.exec
            total = int(np.count_nonzero(lanes))
            if total == 0:
                return
            if total == f.total:
                f.machine.guarded[f.machine.guards[index]][f.index] += f.counts
                step(f)
                return
            f.machine.guarded[f.machine.guards[index]][f.index] += popcount(pack(lanes))
            saved = f.narrow(lanes)
            try:
                step(f)
            finally:
                f.restore(saved)

        return guarded


def _guarded_uniform(step: Step, test: Fetch, index: int) -> Step:
    """A step under a uniform predicate, or one that writes a uniform register: whole warps are masked."""

    def guarded(f: Frame) -> None:
        lanes = f.spread(test(f)) & f.lanes()
        counts = popcount(pack(lanes))
        if not counts.any():
            return
        f.machine.guarded[f.machine.guards[index]][f.index] += counts
        saved_uniform = f.uniform_mask
        saved = f.narrow(lanes)
        f.uniform_mask = (counts != 0)[:, None]
        try:
            step(f)
        finally:
            f.restore(saved)
            f.uniform_mask = saved_uniform

    return guarded
