"""A kernel as the emulator runs it: basic blocks, decoded when they are first reached."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import EmulationError
from ..kernel.cfg import BasicBlock, ControlFlowGraph, ends_block
from ..kernel.instruction import Instruction
from ..kernel.operand import RZ, Register
from . import (
    atomics,
    bitwise,
    block_barriers,
    compare,
    control,
    convergence,
    convert,
    double,
    floating,
    half,
    integer,
    memory_ops,
    special,
    tensor,
    warp_ops,
)
from .decode import Decoder, Step
from .finish import Finish, build_finish
from .frame import Frame
from .operands import Touched

HANDLER_MODULES = (
    atomics,
    bitwise,
    block_barriers,
    compare,
    control,
    convergence,
    convert,
    double,
    floating,
    half,
    integer,
    memory_ops,
    special,
    tensor,
    warp_ops,
)
"""Modules whose import registers the handlers of the opcodes."""
_CONVENTION_REGISTERS = 21
"""Registers that calls of code outside the kernel use, named or not (see `control`)."""
_WIDEST_VECTOR = 8


@dataclass(frozen=True)
class DecodedBlock:
    """A basic block: `steps` and then `finish`; `spins` if it belongs to a loop that may wait for others."""

    index: int
    start: int
    length: int
    steps: tuple[Step, ...]
    finish: Finish
    touched: Touched
    spins: bool

    def gather(self, frame: Frame) -> None:
        """Copy the registers that the block touches into a gathered frame."""
        machine, warps, read = frame.machine, frame.warps, self.touched.read
        for index in read["R"]:
            np.take(machine.registers[index], warps, axis=0, out=frame.R[index], mode="clip")
        for index in read["P"]:
            np.take(machine.predicates[index], warps, axis=0, out=frame.P[index], mode="clip")
        for index in read["U"]:
            np.take(machine.uniform[index], warps, axis=0, out=frame.U[index], mode="clip")
        for index in read["UP"]:
            np.take(machine.uniform_predicates[index], warps, axis=0, out=frame.UP[index], mode="clip")

    def scatter(self, frame: Frame) -> None:
        """Write the registers that the block changes back from a gathered frame."""
        machine, warps, written = frame.machine, frame.warps, self.touched.written
        for index in written["R"]:
            machine.registers[index][warps] = frame.R[index]
        for index in written["P"]:
            machine.predicates[index][warps] = frame.P[index]
        for index in written["U"]:
            machine.uniform[index][warps] = frame.U[index]
        for index in written["UP"]:
            machine.uniform_predicates[index][warps] = frame.UP[index]


class Program:
    """The blocks of a kernel, decoded lazily under one launch's constants."""

    def __init__(self, decoder: Decoder, cfg: ControlFlowGraph) -> None:
        self.decoder = decoder
        self.cfg = cfg
        self.instructions = decoder.kernel.instructions
        self._blocks: dict[int, DecodedBlock] = {}
        self._spinning = _spinning_blocks(self.instructions, cfg)

    def block_at(self, pc: int) -> DecodedBlock:
        """The block that starts at a byte offset. Raises EmulationError past the end of the code."""
        block = self._blocks.get(pc)
        if block is None:
            index = pc // 16
            if index >= len(self.instructions):
                raise EmulationError(f"{self.decoder.kernel.name} ran past its last instruction at {pc:#06x}")
            number = self.cfg.block_of[index]
            block = self._blocks[pc] = self._decode(self.cfg.blocks[number], index)
        return block

    def _decode(self, block: BasicBlock, start: int) -> DecodedBlock:
        # An indirect jump may land inside a block that the graph does not know to start there.
        body = self.instructions[start : block.end]
        decoder = self.decoder
        decoder.touched = Touched()
        last = body[-1]
        finish: Finish
        if ends_block(last):
            steps = tuple(decoder.decode(i) for i in body[:-1])
            finish = build_finish(decoder, last)
        else:
            steps = tuple(decoder.decode(i) for i in body)
            finish = _falls_to(block.end * 16)
        return DecodedBlock(
            block.index, start * 16, len(body), steps, finish, decoder.touched, block.index in self._spinning
        )


def _falls_to(pc: int) -> Finish:
    return lambda s, f: pc


def _may_wait(instruction: Instruction) -> bool:
    """Whether an instruction in a loop suggests that the loop waits for other threads."""
    names = instruction.modifiers
    # Not YIELD: the compiler puts one into any loop with atomics.
    if instruction.opcode == "NANOSLEEP":
        return True
    if instruction.opcode.startswith("ATOM"):
        return "CAS" in names or "EXCH" in names or "CAST" in names
    return instruction.opcode in ("LDG", "LD", "LDS") and "STRONG" in names


def _spinning_blocks(instructions: tuple[Instruction, ...], cfg: ControlFlowGraph) -> frozenset[int]:
    """Blocks of the innermost loops that hold such instructions, inner loops left out."""
    spinning: set[int] = set()
    for index, instruction in enumerate(instructions):
        if _may_wait(instruction):
            block = cfg.block_of[index]
            loop = cfg.innermost_loop(block)
            if loop is not None:
                spinning |= {b for b in loop.blocks if cfg.innermost_loop(b) == loop}
    return frozenset(spinning)


def register_counts(instructions: tuple[Instruction, ...]) -> tuple[int, int]:
    """How many general and uniform registers a kernel may touch.

    One more than the highest that any operand names, and room for the widest vector that starts there.
    """
    highest = [_CONVENTION_REGISTERS, 0]
    for instruction in instructions:
        for operand in instruction.operands:
            named = (operand, *(getattr(operand, part, None) for part in ("base", "register", "uniform", "descriptor")))
            for register in named:
                if isinstance(register, Register) and register.index != RZ:
                    highest[register.uniform] = max(highest[register.uniform], register.index)
    return highest[0] + _WIDEST_VECTOR, highest[1] + _WIDEST_VECTOR
