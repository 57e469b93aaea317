"""What a walk must know about an instruction set: classes for calls, returns, exits, and for the walk itself.

An architecture is a subclass of `Architecture`; `nvidia.Nvidia` is one. The walk, the trip counts and the rules for
branches do not depend on opcodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ...errors import UnsupportedInstructionError
from ...kernel.cfg import ControlFlowGraph, ends_block
from ...kernel.instruction import Instruction
from ...kernel.isa.nvidia.registers import Place, accessed
from ...kernel.kernel import Kernel
from .parameters import StaticLaunch
from .report import Record
from .state import Batch, FileShape, Flags, Lanes, State

Step = Callable[[Batch], None]
Pair = tuple[Place, Place]


def safely(step: Step, otherwise: Step) -> Step:
    """A step that falls back to another where made-up numbers have no result; no other error is hidden."""

    def run(batch: Batch) -> None:
        try:
            step(batch)
        except (UnsupportedInstructionError, ArithmeticError):
            otherwise(batch)

    return run


def reaching(instructions: Sequence[Instruction], wanted: set[Place]) -> frozenset[int]:
    """Indices of instructions whose results may reach these registers.

    By register names over the whole kernel, in any order: some too many, never too few.
    """
    touched = [accessed(i) for i in instructions]
    writers: dict[Place, list[int]] = {}
    for index, places in enumerate(touched):
        for place in places.writes:
            writers.setdefault(place, []).append(index)
    chosen: set[int] = set()
    pending = list(wanted)
    while pending:
        for index in writers.get(pending.pop(), ()):
            if index not in chosen:
                chosen.add(index)
                new = touched[index].reads - wanted
                wanted = wanted | new
                pending.extend(new)
    return frozenset(chosen)


class ControlWords(Protocol):
    """Which instructions call, return, exit; and their targets."""

    def is_call(self, instruction: Instruction) -> bool:
        """Whether it calls a function that returns."""

    def is_return(self, instruction: Instruction) -> bool:
        """Whether it returns to the caller."""

    def is_exit(self, instruction: Instruction) -> bool:
        """Whether it ends the thread."""

    def callee(self, instruction: Instruction) -> int | None:
        """Index of the target instruction of a direct call."""

    def is_slow(self, instruction: Instruction) -> bool:
        """Whether it calls a compiler-provided function for rare operands."""


@dataclass(frozen=True)
class Branch:
    """Ends a block: lanes for which `test` holds go to block `taken`, the others to `fall`.

    `test` gives booleans and flags per lane. `settle`, if present, updates the tested registers to the decision. A side
    may be `flow.EXIT_BLOCK`.
    """

    test: Callable[[Batch], tuple[Lanes, Flags]]
    taken: int
    fall: int
    settle: Callable[[Batch, Lanes], None] | None = None


@dataclass(frozen=True)
class Goto:
    """Ends a block: all lanes go to block `to`; `flow.EXIT_BLOCK` ends them."""

    to: int


@dataclass(frozen=True)
class Scatter:
    """Ends a block: each lane goes to the block that `target` names (-1: unknown), else to one of `choices`."""

    target: Callable[[Batch], tuple[npt.NDArray[np.int64], Flags]]
    choices: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """Ends a block: goes to block `to` (None: unknown) and returns to `back`."""

    to: int | None
    back: int
    test: Callable[[Batch], tuple[Lanes, Flags]] | None = None


@dataclass(frozen=True)
class Return:
    """Ends a block: returns to the origin of the latest call."""

    test: Callable[[Batch], tuple[Lanes, Flags]] | None
    fall: int


@dataclass(frozen=True)
class Rejoin:
    """Ends a block: lanes wait for those of their warp that `needed` names, then continue at `to` together.

    `needed` gives booleans per lane, shape (rows, lanes). With `barrier` they are those of that convergence barrier,
    which removes them as they pass.
    """

    to: int
    barrier: int | None = None
    needed: Callable[[Batch], Lanes] | None = None


@dataclass(frozen=True)
class Forget:
    """Ends a block: lanes for which `test` holds are no longer waited for at a convergence barrier.

    `beside` is the block that ends with a branch on the same condition, if there is one.
    """

    barrier: int
    to: int
    test: Callable[[Batch], tuple[Lanes, Flags]] | None = None
    beside: int | None = None


Finish = Branch | Goto | Scatter | Call | Return | Rejoin | Forget


@dataclass(frozen=True)
class Code:
    """A basic block prepared for a walk."""

    steps: Sequence[Step]
    finish: Finish


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk follows: a kernel's blocks under a completed launch, for so many warps; accesses go to `record`.

    `patterns` and `shares` are user hints by instruction: the pattern of an access, the share of threads for which a
    condition holds.
    """

    kernel: Kernel
    cfg: ControlFlowGraph
    given: StaticLaunch
    record: Record
    warps: int
    patterns: Mapping[int, str]
    shares: Mapping[int, float]


class Architecture(ControlWords, ABC):
    """An instruction set, for one kernel under one launch: blocks are decoded as the walk reaches them."""

    files: dict[str, FileShape]
    """Register files by name."""
    convergence_barriers: int
    unsure: Mapping[int, int]
    """Flags of the addresses of each memory instruction whose addresses are not fully known."""
    finish: Callable[[int], Finish]
    """How a block ends."""
    loop_blocks: Sequence[Collection[int]]
    """The blocks of each loop."""

    def __init__(self, walked: Walked) -> None:
        self.kernel, self.instructions, self.cfg = walked.kernel, walked.kernel.instructions, walked.cfg
        self.counts: npt.NDArray[np.int64] = np.zeros((len(self.instructions), walked.warps), np.int64)
        """Lanes that executed each guarded instruction, shape (instructions, warps)."""
        self.products: dict[int, set[tuple[str, ...]]] = {}
        """Shapes and types of products whose instructions do not state them, as in `Kernel.with_tensor_use`."""
        self.untracked: set[int] = set()
        """Copies of the copy engine that ran and whose pieces of global memory are not known."""
        self.tensor_columns = 0
        """The most columns of tensor memory that an instruction is seen to allocate."""
        self._codes: dict[int, Code] = {}
        self._changed: dict[int, tuple[list[Place], list[Pair]]] = {}

    @abstractmethod
    def written(self, number: int) -> Iterable[Place]:
        """Registers, by file and number, that an instruction writes and that affect addresses and branches."""

    @abstractmethod
    def halves(self, number: int) -> Iterable[Pair]:
        """The lower and the upper half of each 64-bit number that an instruction reads or writes."""

    def inside(self, loop: int) -> Iterable[int]:
        """Instructions that an iteration of a loop may run."""
        blocks = (self.cfg.blocks[block] for block in self.loop_blocks[loop])
        return [number for block in blocks for number in range(block.start, block.end)]

    def changed(self, loop: int) -> tuple[list[Place], list[Pair]]:
        """Registers that a loop changes and that affect addresses and branches; the 64-bit numbers among them."""
        if loop not in self._changed:
            inside = self.inside(loop)
            names = {place for number in inside for place in self.written(number)}
            pairs = {pair for number in inside for pair in self.halves(number) if names.issuperset(pair)}
            # A register that is the lower half of one number and the upper half of another counts on its own.
            uppers = {high for _, high in pairs}
            self._changed[loop] = sorted(names), sorted(pair for pair in pairs if pair[0] not in uppers)
        return self._changed[loop]

    @abstractmethod
    def start(self, state: State) -> None:
        """Set the initial register values of a thread."""

    @abstractmethod
    def step(self, i: Instruction) -> Step | None:
        """An instruction within a block as a step; None if it affects no address or branch."""

    def code(self, block: int) -> Code:
        """A basic block as steps."""
        code = self._codes.get(block)
        if code is None:
            body = self.instructions[self.cfg.blocks[block].start : self.cfg.blocks[block].end]
            if body and ends_block(body[-1]) and body[-1].opcode != "SYNCS":
                body = body[:-1]
            steps = [step for i in body if (step := self.step(i)) is not None]
            code = self._codes[block] = Code(tuple(steps), self.finish(block))
        return code
