"""Waves of blocks in several threads, and whether that changes anything.

Waves share device memory, and otherwise run one after the other, in the order of their blocks. They may run at the same
time if no wave reads or writes a word that another one writes. Kernels whose code may depend on the order otherwise
(atomics on global memory, the heap, barriers of the grid, textures) never do. For the others, the record of accesses is
searched after the run: where waves did meet, everything is run again, one wave after the other. So the answer does not
depend on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...core.library import Function
from ...kernel.instruction import Instruction
from .machine import Store
from .memory import DeviceMemory
from .program import Program
from .recorder import Recorder
from .sampling import Limits
from .scheduler import Budget

T = TypeVar("T")
PARTS = 4
"""Parts that a run is cut into for each thread: they need not take equally long."""
_MOST_PARTS = (1 << 16) - 1
_WORD_BYTES = 4
_find_shared = Function("find_shared", "aaaannn")


class StoppedError(Exception):
    """Another thread has failed, or all together have reached a limit."""


@dataclass(frozen=True)
class Strand:
    """What runs waves one after the other: a record, the code that writes it, the engine of a wave, and its memory."""

    recorder: Recorder
    program: Program
    budget: Budget
    schedule: Callable[..., Any]
    prints: list[str] | None = None
    """What its kernel prints; None if nobody asks for it."""
    store: Store = field(default_factory=Store)


class SharedBudget:
    """The limits of strands that run at the same time."""

    def __init__(self, before: Budget, recorder: Recorder) -> None:
        self._before, self._recorder = before, recorder
        self._parts: list[_Part] = []
        self._stop = threading.Event()

    def part(self) -> Budget:
        """The budget of one more strand: what was left before any began."""
        part = _Part(self)
        part.lane_steps = self._before.lane_steps
        self._parts.append(part)
        return part

    @property
    def limits(self) -> Limits:
        """As they were given."""
        return self._before.limits

    @property
    def lane_steps(self) -> int:
        """Lane steps before, and those of all strands."""
        return self._before.lane_steps + sum(part.ran for part in self._parts)

    @property
    def warp_steps(self) -> int:
        """Warp steps before, and those of all strands."""
        return self._before.warp_steps + sum(part.warp_steps for part in self._parts)

    def exceeded(self) -> bool:
        """Whether all strands together are past a limit."""
        accesses = self._recorder.accesses + sum(part.accesses for part in self._parts)
        steps = self._recorder.steps + sum(part.steps for part in self._parts)
        limits = self.limits
        return self.lane_steps > limits.lane_steps or accesses > limits.accesses or steps > limits.basic_blocks

    def check(self) -> None:
        """Raise StoppedError if the others have stopped, or if all together should."""
        if self._stop.is_set() or self.exceeded():
            raise StoppedError

    def stop(self) -> None:
        """Let all strands end at their next check."""
        self._stop.set()

    def end(self) -> None:
        """Forget all strands: they refer to this, and would hold their records until Python looks for cycles."""
        self._parts.clear()

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Stop the others if what is done here fails."""
        try:
            yield
        except BaseException:
            self.stop()
            raise


class _Part(Budget):
    def __init__(self, shared: SharedBudget) -> None:
        super().__init__(shared.limits)
        self._shared = shared
        self.ran = self.accesses = self.steps = 0

    def checked(self, recorder: Recorder) -> int:
        """Note what is recorded so far; returns the lane steps of all. Raises StoppedError if this strand is to end."""
        self.ran, self.accesses, self.steps = recorder.lane_steps, recorder.accesses, recorder.steps
        self._shared.check()
        return self._shared.lane_steps


def in_parts(waves: Sequence[T], count: int) -> list[list[T]]:
    """The waves in at most `count` parts of about the same number, in order."""
    bounds = np.linspace(0, len(waves), min(len(waves), count, _MOST_PARTS) + 1).astype(int).tolist()
    return [list(waves[begin:end]) for begin, end in pairwise(bounds)]


def ran_alone(
    instructions: Sequence[Instruction], memory: DeviceMemory, recorders: Sequence[Recorder], pool: Executor
) -> bool:
    """Whether no part of a run accesses a word of device memory that another part writes."""
    stores, loads = _widths(instructions, ("store",)), _widths(instructions, ("load", "copy"))
    owners = np.zeros(memory.size // _WORD_BYTES + 1, np.uint16)
    bounds = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min], np.int64)
    for number, recorder in enumerate(recorders, 1):
        if _find_shared(recorder.places, stores, owners, bounds, memory.start, number, True):
            return False
    if bounds[0] > bounds[1]:
        return True

    def loads_foreign(number: int, recorder: Recorder) -> int:
        return _find_shared(recorder.places, loads, owners, bounds, memory.start, number, False)

    return not any(pool.map(loads_foreign, range(1, len(recorders) + 1), recorders))


def _widths(instructions: Sequence[Instruction], kinds: Sequence[str]) -> npt.NDArray[np.int64]:
    """Bytes per lane that each instruction moves, 0 for those of other kinds."""
    accesses = [instruction.memory for instruction in instructions]
    return np.array([a.width if a is not None and a.kind in kinds else 0 for a in accesses], np.int64)
