"""A kernel of AMD machine code, prepared for a walk: its words, its branches and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ....kernel.cfg import ControlFlowGraph, jump_target
from ....kernel.instruction import Immediate, Instruction, RegisterRange
from ....kernel.isa.amd import opcodes
from ....kernel.isa.amd.opcodes import adds_address, is_jump, works_on_long
from ....kernel.isa.amd.registers import reads_and_writes, result_count
from ....kernel.isa.nvidia.registers import Place
from ..flow import EXIT_BLOCK, Flow
from ..parameters import INTEGER, POINTER, SLOT_BYTES
from ..state import Batch, FileShape, Flags, Lanes, State, non_affine_flags
from ..words import Architecture, Branch, Call, Finish, Goto, Pair, Step, Walked, reaching, safely
from .iterations import halves_of, with_iterations
from .memory import Handed, MemorySteps, start
from .operands import EXEC, SCALARS, SCC, VCC, Operands, active, lanes_of, place_of
from .values import Values, settled_exec

# Which AMD instructions must be evaluated to know where every warp goes and what it accesses.


def needed_instructions(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Indices of instructions whose results may reach an address, the exec mask or a branch."""
    wanted: set[Place] = {("exec", 0), ("exec", 1)}
    for i in instructions:
        if is_jump(i.opcode):
            wanted |= reads_and_writes(i)[0]
        if i.memory is not None:
            wanted |= _address_places(i)
    return reaching(instructions, wanted)


def _address_places(i: Instruction) -> set[Place]:
    """Registers of a memory instruction's addresses; a store's data follow its first operand."""
    rest = i.operands[result_count(i) :]
    places: set[Place] = {("m0", 0)} if i.memory is not None and i.memory.kind == "copy" else set()
    for position, operand in enumerate(rest):
        if isinstance(operand, RegisterRange):
            data = operand.file in ("v", "a") and (position > 0) != i.opcode.startswith(("buffer_", "tbuffer_"))
            if not data:
                places |= {(operand.file, operand.index + k) for k in range(operand.count)}
    return places


# What a 64-bit load returns, judged by its first use: an address, a long integer, or neither.

_LOOK_AHEAD = 96


def wide_loads(instructions: Sequence[Instruction]) -> dict[int, str]:
    """Kinds of 64-bit loads by instruction index; loads of two words or of a double are excluded."""
    found = {}
    for index, i in enumerate(instructions):
        target = i.operands[0] if i.operands else None
        vector = i.memory is not None and i.memory.kind == "load" and i.memory.width == 8
        if not (vector or i.opcode.startswith("s_load_dwordx2")) or not isinstance(target, RegisterRange):
            continue
        if target.count == 2 and (kind := _kind(instructions[index + 1 : index + 1 + _LOOK_AHEAD], target)):
            found[index] = kind
    return found


def _kind(after: Sequence[Instruction], pair: RegisterRange) -> str:
    places = {(pair.file, pair.index), (pair.file, pair.index + 1)}
    for i in after:
        reads, writes = reads_and_writes(i)
        if places & reads:
            return _use(i, pair)
        if places & writes:
            return ""
    return ""


def _use(i: Instruction, pair: RegisterRange) -> str:
    """How one instruction uses the register pair."""
    sources = i.operands[result_count(i) :]
    mine = [
        n
        for n, o in enumerate(sources)
        if isinstance(o, RegisterRange) and (o.file, o.index) == (pair.file, pair.index)
    ]
    if i.memory is not None or i.opcode.startswith("s_load_"):
        # The data of a store are not its address; a scalar base follows the vector part.
        return POINTER if any(n == 0 or pair.file == "s" for n in mine) and _is_pair(sources, mine) else ""
    if i.opcode == "v_lshl_add_u64" and mine:
        amount = sources[1]
        return INTEGER if mine[0] == 0 and not (isinstance(amount, Immediate) and amount.value == 0) else POINTER
    if works_on_long(i.opcode):
        return INTEGER
    return POINTER if adds_address(i.opcode) and mine else ""


def _is_pair(sources: Sequence[object], positions: Sequence[int]) -> bool:
    return any(isinstance(o := sources[n], RegisterRange) and o.count == 2 for n in positions)


_VARIABLE_BYTES = SLOT_BYTES >> 16
"""Address space for one variable of the module."""


# Branches and ends of AMD machine code. Whole warps branch; lanes diverge through the exec mask only.


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
                return b.spread((file[SCC] != 0) == wanted), b.spread(non_affine_flags(b.flags["s"][SCC]))

            return Branch(by_code, to, fall)
        if what in ("vccz", "vccnz"):
            return Branch(self._mask_test(VCC, what == "vccnz"), to, fall)
        if what in ("execz", "execnz"):
            while_nonzero = what == "execnz"

            def settle(b: Batch, taken: Lanes) -> None:
                settled_exec(b, taken, while_nonzero)

            return Branch(self._mask_test(EXEC, while_nonzero), to, fall, settle)
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
            return b.spread(any_lane == nonzero), b.spread(non_affine_flags(flags))

        return test


class Amd(AmdWords, Architecture):
    """The code of one kernel under one launch."""

    convergence_barriers = 0

    def __init__(self, walked: Walked) -> None:
        super().__init__(walked)
        highest = {"v": 2, "a": 0}
        for i in self.instructions:
            for o in i.operands:
                if isinstance(o, RegisterRange) and o.file in highest:
                    highest[o.file] = max(highest[o.file], o.index + o.count - 1)
        self.files = {
            "v": FileShape(highest["v"] + 1, np.uint32, True),
            "a": FileShape(highest["a"] + 1, np.uint32, True),
            "s": FileShape(SCALARS, np.uint32, False),
        }
        self._places: dict[str, int] = {}
        self._image = walked.given.image
        self._operands = operands = Operands(self._address_of)
        handed, places, wide = (
            Handed(self.kernel, walked.given),
            len(walked.given.places) + 1,
            wide_loads(self.instructions),
        )
        self._memory = MemorySteps(operands, handed, walked.record, walked.patterns, places, wide)
        self.unsure = self._memory.unsure
        self._values = Values(operands, walked.shares)
        self.finish = Finishes(operands, self.instructions, self.cfg).finish
        self._needed = needed_instructions(self.instructions)
        self.loop_blocks = [loop.blocks for loop in Flow(self.instructions, self.cfg, self).loops]

    def _address_of(self, symbol: str) -> int:
        """The address of a module variable: each has its own slot."""
        return self._image + self._places.setdefault(symbol, len(self._places)) * _VARIABLE_BYTES

    def written(self, number: int) -> Iterable[Place]:
        """Relevant registers that an instruction writes."""
        writes = reads_and_writes(self.instructions[number])[1] if number in self._needed else ()
        return [place_of(*place) for place in writes]

    def halves(self, number: int) -> Iterable[Pair]:
        """Halves of the 64-bit numbers of a relevant instruction."""
        return halves_of(self.instructions[number]) if number in self._needed else ()

    def start(self, state: State) -> None:
        """Set the registers that identify each lane's work-item."""
        start(state, self.kernel)

    def step(self, i: Instruction) -> Step | None:
        """An instruction as a step; None if it affects no address or branch."""
        needed = i.pc // 16 in self._needed
        if i.memory is not None:
            return self._memory.step(i, needed)
        if not needed:
            return None
        unknown = self._values.unknown(i)
        try:
            step = self._memory.scalar_load(i) or self._values.step(i)
            return with_iterations(self._operands, i, safely(step, unknown))
        except LookupError:  # fewer operands than the opcode takes
            return unknown
