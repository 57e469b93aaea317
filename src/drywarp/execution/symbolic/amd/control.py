"""Branches and ends of AMD machine code. Whole warps branch; lanes diverge through the exec mask only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....kernel.cfg import ControlFlowGraph, jump_target
from ....kernel.instruction import Instruction
from ....kernel.isa.amd import opcodes
from ..flow import EXIT_BLOCK
from ..state import Batch, Flags, Lanes
from ..words import Branch, Call, Finish, Goto
from .iterations import bent_flags
from .operands import EXEC, SCC, VCC, Operands, active, lanes_of
from .values import settled_exec


class AmdWords:
    """Which instructions call and exit; code of the HSA runtime never returns from a kernel."""

    def is_call(self, instruction: Instruction) -> bool:
        """Whether it calls; the compiler inlines every function that it can."""
        return opcodes.is_call(instruction.opcode)

    def is_return(self, instruction: Instruction) -> bool:
        """Whether it jumps to an address in registers."""
        return opcodes.is_return(instruction.opcode)

    def is_exit(self, instruction: Instruction) -> bool:
        """Whether the warp ends."""
        return opcodes.is_exit(instruction.opcode)

    def callee(self, instruction: Instruction) -> int | None:
        """The code of called functions is not followed."""
        return None

    def is_slow(self, instruction: Instruction) -> bool:
        """There are no slow paths behind calls."""
        return False


Test = Callable[[Batch], tuple[Lanes, Flags]]


class Finishes:
    """Builds the ends of blocks of one kernel."""

    def __init__(self, operands: Operands, instructions: Sequence[Instruction], cfg: ControlFlowGraph) -> None:
        self.o, self.instructions, self.cfg = operands, instructions, cfg

    def finish(self, block: int) -> Finish:
        """How a block ends."""
        i = self.instructions[self.cfg.blocks[block].end - 1]
        fall = block + 1 if block + 1 < len(self.cfg.blocks) else EXIT_BLOCK
        if opcodes.is_exit(i.opcode):
            return Goto(EXIT_BLOCK)
        if opcodes.is_call(i.opcode):
            return Call(None, fall)
        if not opcodes.is_jump(i.opcode):
            return Goto(EXIT_BLOCK if opcodes.is_return(i.opcode) else fall)
        target = jump_target(i)
        to = EXIT_BLOCK if target is None else self.cfg.block_of[target // 16]
        return Goto(to) if i.opcode == "s_branch" else self._branch(i, to, fall)

    def _branch(self, i: Instruction, to: int, fall: int) -> Finish:
        what = i.opcode.removeprefix("s_cbranch_")
        if what in ("scc0", "scc1"):
            wanted = what == "scc1"

            def by_code(b: Batch) -> tuple[Lanes, Flags]:
                file: Any = b.s
                return b.spread((file[SCC] != 0) == wanted), b.spread(bent_flags(b.flags["s"][SCC]))

            return Branch(by_code, to, fall)
        if what in ("vccz", "vccnz"):
            return Branch(self._mask_test(VCC, what == "vccnz"), to, fall)
        if what in ("execz", "execnz"):
            goes_on = what == "execnz"

            def settle(b: Batch, taken: Lanes) -> None:
                settled_exec(b, taken, goes_on)

            return Branch(self._mask_test(EXEC, goes_on), to, fall, settle)
        return Goto(fall)

    def _mask_test(self, register: int, nonzero: bool) -> Test:
        def test(b: Batch) -> tuple[Lanes, Flags]:
            file: Any = b.s
            if register == EXEC:
                any_lane = active(b).any(axis=1, keepdims=True)
            else:
                word = file[register].astype(np.uint64) | file[register + 1].astype(np.uint64) << np.uint64(32)
                any_lane = (lanes_of(word, b) & b.there).any(axis=1, keepdims=True)
            flags = b.flags["s"][register] | b.flags["s"][register + 1]
            return b.spread(any_lane == nonzero), b.spread(bent_flags(flags))

        return test
