"""What a walk must know of an instruction set: the words for calls, returns, exits, and for the walk itself.

An architecture is a class that follows `Architecture`; `nvidia` is one. The walk, the trip counts and the
rules for branches know no opcode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import DrywarpError
from ..kernel.instruction import Instruction

if TYPE_CHECKING:
    from .state import Batch, State

Lanes = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.uint16]

KNOWN, ASSUMED, DATA, VARYING = 0, 1, 2, 4
"""What is known of a number, a bit each; a result has the bits of all that it is computed from.

ASSUMED: it depends on an argument that nobody gave. DATA: it depends on what is in memory. VARYING: it may
differ between the lanes of a warp.
"""
UNSURE = ASSUMED | DATA
TURNS = (8, 16, 32, 64)
"""It changes from turn to turn of the loop that is watched at this depth, outermost first (see `forward`)."""
ANY_TURN = sum(TURNS)
BENT_SHIFT = 4
ANY_BENT = ANY_TURN << BENT_SHIFT
"""It is made of numbers that change so, and does not move evenly with them: a bit for each depth."""

Step = Callable[["Batch"], None]


def safely(step: Step, otherwise: Step) -> Step:
    """A step that falls back to another where made-up numbers, or operands that it does not take, lead it astray."""

    def run(batch: Batch) -> None:
        try:
            step(batch)
        except (DrywarpError, ArithmeticError, LookupError, ValueError, TypeError):
            otherwise(batch)

    return run


class ControlWords(Protocol):
    """Which instructions call, return, leave; what they name."""

    def is_call(self, instruction: Instruction) -> bool:
        """Whether it calls a function that comes back."""

    def is_return(self, instruction: Instruction) -> bool:
        """Whether it goes back to where a function was called."""

    def is_exit(self, instruction: Instruction) -> bool:
        """Whether it ends the thread."""

    def callee(self, instruction: Instruction) -> int | None:
        """Index of the instruction that a direct call goes to."""

    def is_slow(self, instruction: Instruction) -> bool:
        """Whether it calls a function of the compiler's that is meant for rare operands."""


@dataclass(frozen=True)
class Branch:
    """Ends a block: lanes for which `test` holds go to block `taken`, the others to `fall`.

    `test` gives booleans and flags per lane. `settle`, where there is one, makes the tested registers say
    what was decided. A side may be `flow.EXIT_BLOCK`.
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
    """Ends a block: each lane goes to the block that `target` names (-1: not known), else to one of `choices`."""

    target: Callable[[Batch], tuple[npt.NDArray[np.int64], Flags]]
    choices: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """Ends a block: goes to block `to` (None: not known) and comes back to `back`."""

    to: int | None
    back: int
    test: Callable[[Batch], tuple[Lanes, Flags]] | None = None


@dataclass(frozen=True)
class Return:
    """Ends a block: goes back to where the latest call came from."""

    test: Callable[[Batch], tuple[Lanes, Flags]] | None
    fall: int


@dataclass(frozen=True)
class Rejoin:
    """Ends a block: lanes wait for those of their warp that `needed` names, then go on at `to` together.

    `needed` gives booleans per lane, shape (rows, lanes). With `barrier` they are those of that
    convergence barrier, which forgets them as they pass.
    """

    to: int
    barrier: int | None = None
    needed: Callable[[Batch], Lanes] | None = None


@dataclass(frozen=True)
class Forget:
    """Ends a block: lanes for which `test` holds are no longer waited for at a convergence barrier.

    `beside` is the block that ends with a branch on the same condition, where there is one.
    """

    barrier: int
    to: int
    test: Callable[[Batch], tuple[Lanes, Flags]] | None = None
    beside: int | None = None


Finish = Branch | Goto | Scatter | Call | Return | Rejoin | Forget


@dataclass(frozen=True)
class Code:
    """A basic block made ready to be walked."""

    steps: Sequence[Step]
    finish: Finish


@dataclass(frozen=True)
class FileShape:
    """A register file: how many registers, of which type, one value per lane or one per warp."""

    count: int
    kind: type[np.generic]
    per_lane: bool


class Architecture(ControlWords, Protocol):
    """An instruction set, for one kernel under one launch."""

    files: dict[str, FileShape]
    """Register files by name."""

    convergence_barriers: int

    counts: npt.NDArray[np.int64]
    """Lanes that executed each guarded instruction, shape (instructions, warps)."""

    def changed(self, loop: int) -> Sequence[tuple[str, int]]:
        """Registers, by file and number, that a loop changes and that matter for addresses and branches."""

    def pairs(self, loop: int) -> Sequence[tuple[tuple[str, int], tuple[str, int]]]:
        """Those among them that are the lower and the upper half of one 64-bit number."""

    def start(self, state: State) -> None:
        """Put what registers hold when a thread starts."""

    def code(self, block: int) -> Code:
        """A basic block as steps."""


Value = Any
"""An array that broadcasts against (rows, lanes)."""
