"""A kernel of AMD machine code, made ready for a walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...kernel.cfg import ControlFlowGraph, ends_block
from ...kernel.instruction import Instruction
from ...kernel.kernel import Kernel
from ...kernel.operand import RegisterRange
from ...kernel.registers import Place
from ..flow import Flow
from ..parameters import SLOT_BYTES, StaticLaunch
from ..record import Record
from ..state import State
from ..words import Code, FileShape, Step, safely
from .control import AmdWords, Finishes
from .memory import MemorySteps
from .needed import needed_instructions
from .operands import SCALARS, Operands
from .start import Handed, start
from .turns import Loops, with_turns
from .values import Values
from .wide_loads import wide_loads

_VARIABLE_BYTES = SLOT_BYTES >> 16
"""Address space for one variable of the module."""


class Amd(AmdWords):
    """The code of one kernel under one launch, block by block as the walk comes to it; see `nvidia.Nvidia`."""

    convergence_barriers = 0

    def __init__(
        self,
        kernel: Kernel,
        cfg: ControlFlowGraph,
        given: StaticLaunch,
        record: Record,
        warps: int,
        patterns: Mapping[int, str],
        shares: Mapping[int, float],
    ) -> None:
        self.kernel, self.instructions, self.cfg = kernel, kernel.instructions, cfg
        highest = {"v": 2, "a": 0}
        for i in kernel.instructions:
            for o in i.operands:
                if isinstance(o, RegisterRange) and o.file in highest:
                    highest[o.file] = max(highest[o.file], o.index + o.count - 1)
        self.files = {
            "v": FileShape(highest["v"] + 1, np.uint32, True),
            "a": FileShape(highest["a"] + 1, np.uint32, True),
            "s": FileShape(SCALARS, np.uint32, False),
        }
        self.counts = np.zeros((len(kernel.instructions), warps), np.int64)
        self._places: dict[str, int] = {}
        self._image = given.image
        self._operands = operands = Operands(self._address_of)
        wide = wide_loads(kernel.instructions)
        self.memory = MemorySteps(operands, Handed(kernel, given), record, patterns, len(given.places) + 1, wide)
        self._values = Values(operands, shares)
        self._finishes = Finishes(operands, kernel.instructions, cfg)
        self._needed = needed_instructions(kernel.instructions)
        self._codes: dict[int, Code] = {}
        self._loops = Loops(kernel.instructions, cfg, Flow(kernel.instructions, cfg, self).loops, self._needed)

    def _address_of(self, symbol: str) -> int:
        """Where a variable of the module lies: each has a place of its own."""
        return self._image + self._places.setdefault(symbol, len(self._places)) * _VARIABLE_BYTES

    @property
    def unsure(self) -> Mapping[int, int]:
        """Flags of addresses that are not all known, by memory instruction."""
        return self.memory.unsure

    def changed(self, loop: int) -> Sequence[Place]:
        """Registers that a loop changes and that matter."""
        return self._loops.changed(loop)

    def pairs(self, loop: int) -> Sequence[tuple[Place, Place]]:
        """Halves of numbers of 64 bits among them."""
        return self._loops.pairs(loop)

    def start(self, state: State) -> None:
        """Make the registers say which work-item each lane is."""
        start(state, self.kernel)

    def code(self, block: int) -> Code:
        """A basic block as steps; instructions that no address or branch depends on are left out."""
        code = self._codes.get(block)
        if code is None:
            body = self.instructions[self.cfg.blocks[block].start : self.cfg.blocks[block].end]
            if body and ends_block(body[-1]):
                body = body[:-1]
            steps = [step for i in body if (step := self._step(i)) is not None]
            code = self._codes[block] = Code(tuple(steps), self._finishes.finish(block))
        return code

    def _step(self, i: Instruction) -> Step | None:
        needed = i.pc // 16 in self._needed
        if i.memory is not None:
            return self.memory.step(i, needed)
        if not needed:
            return None
        unknown = self._values.unknown(i)
        try:
            step = self.memory.scalar_load(i) or self._values.step(i)
            return with_turns(self._operands, i, safely(step, unknown))
        except LookupError:  # fewer operands than the opcode takes
            return unknown
