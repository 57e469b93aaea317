"""The code of a kernel as tables for the compiled loop, filled block by block as they are reached."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..decode import Step
from ..finish import Finish, build_finish
from ..frame import Frame
from ..operands import Touched
from ..program import Program
from ..scheduler import Scheduler
from . import encode_float, encode_integer, encode_memory
from .encode import encode
from .layout import BLOCK_ACCESSES, BLOCK_COLUMNS, BLOCK_END, BLOCK_NUMBER, BLOCK_SPINS, COLUMNS, PLACES, Log

ENCODERS = (encode_float, encode_integer, encode_memory)
"""Modules whose import registers the encoders of the opcodes."""
_ACCESSES = 2
"""Most accesses that one memory instruction records: a copy reads and writes."""


@dataclass(frozen=True, slots=True)
class HandledStep:
    """An instruction inside a block that is left to its handler."""

    step: Step
    touched: Touched

    def run(self, frame: Frame) -> None:
        """Execute it for a frame."""
        if frame.gathered:
            self.touched.gather(frame)
        self.step(frame)
        if frame.gathered:
            self.touched.scatter(frame)


@dataclass(frozen=True, slots=True)
class HandledEnd:
    """An instruction that ends a block and is left to its handler."""

    finish: Finish
    touched: Touched

    def run(self, scheduler: Scheduler, frame: Frame) -> int:
        """Execute it for a frame: the next PC, or MOVED."""
        if frame.gathered:
            self.touched.gather(frame)
        pc = self.finish(scheduler, frame)
        if frame.gathered:
            self.touched.scatter(frame)
        return pc


class Table:
    """Rows of instructions (`code`) and of blocks by their first instruction (`entries`; see `layout`)."""

    def __init__(self, program: Program) -> None:
        count = len(program.instructions)
        self.program = program
        self.code: npt.NDArray[np.int64] = np.zeros((count, COLUMNS), np.int64)
        self.entries: npt.NDArray[np.int64] = np.full((count, BLOCK_COLUMNS), -1, np.int64)
        self.places: npt.NDArray[np.int64] = np.zeros(PLACES, np.int64)
        """Addresses of the arrays of a run, and those of the record that were `located` there."""
        self.located: Log | None = None
        self._encoded = np.zeros(count, np.bool_)
        self._steps: dict[int, HandledStep] = {}
        self._ends: dict[int, HandledEnd] = {}

    def enter(self, pc: int) -> None:
        """Decode the block that begins at a byte offset. Raises EmulationError past the end of the code."""
        program = self.program
        index, block = pc // 16, program.basic_block(pc)
        banks = program.decoder.banks
        for k in range(index, block.end):
            if not self._encoded[k]:
                self.code[k] = encode(banks, program.instructions[k])
                self._encoded[k] = True
        touching = sum(i.memory is not None for i in program.instructions[index : block.end])
        row = self.entries[index]
        row[BLOCK_NUMBER], row[BLOCK_END] = block.index, block.end
        row[BLOCK_SPINS], row[BLOCK_ACCESSES] = block.index in program.spinning, touching * _ACCESSES

    def step(self, k: int) -> HandledStep:
        """The handler of instruction `k` inside a block."""
        if k not in self._steps:
            decoder = self.program.decoder
            touched = decoder.touched = Touched()
            self._steps[k] = HandledStep(decoder.decode(self.program.instructions[k]), touched)
        return self._steps[k]

    def end(self, k: int) -> HandledEnd:
        """The handler of instruction `k` at the end of a block."""
        if k not in self._ends:
            decoder = self.program.decoder
            touched = decoder.touched = Touched()
            self._ends[k] = HandledEnd(build_finish(decoder, self.program.instructions[k]), touched)
        return self._ends[k]
