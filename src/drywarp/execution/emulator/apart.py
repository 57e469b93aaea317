"""What shortens a run, and whether that changes anything: waves in several threads, and code that leaves results out.

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
from ...errors import EmulationError
from ...kernel.instruction import Instruction
from ...kernel.kernel import Kernel
from ...kernel.profile import SPACE_GLOBAL, AccessLog
from .bits import LANES
from .compiled.layout import Log
from .constants import uses_grid_barrier
from .control import launches_kernels, needs_heap
from .machine import RANK_SHIFT, Machine, Store
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
"""Bytes of a bank."""
_WIDEST = 16
"""Bytes of the widest access of a thread to shared memory."""
_PLAIN = ("load", "store", "copy")
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


def may_run_apart(kernel: Kernel) -> bool:
    """Whether blocks can only influence each other by plain loads and stores of global memory."""
    if needs_heap(kernel) or uses_grid_barrier(kernel) or launches_kernels(kernel):
        return False
    return all(_harmless(instruction) for instruction in kernel.instructions)


def _harmless(instruction: Instruction) -> bool:
    access = instruction.memory
    if access is None:
        return True
    if access.space in ("global", "generic"):
        return access.kind in _PLAIN
    return access.space in ("shared", "local", "constant") and not access.kind.startswith("bulk")


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


# Brief code: it leaves out what seems to reach neither an address nor a branch, and the record shows whether it does.


@dataclass(frozen=True, slots=True)
class Brief:
    """Code that does the same as a kernel's but for what it computes.

    `watched` are the accesses to memory whose results matter, if they must not read what a tensor copy leaves out or
    what a store in `wrong` writes: whether they do is seen as the code runs. `uncounted` are instructions left out
    although not every lane executes them.
    """

    code: tuple[Instruction, ...]
    watched: frozenset[int] = frozenset()
    wrong: frozenset[int] = frozenset()
    uncounted: frozenset[int] = frozenset()


class UncopiedError(EmulationError):
    """Brief code reads what it leaves out: the launch must run without it."""


def check_reads(recorder: Recorder, machine: Machine, first: int, brief: Brief) -> None:
    """Raise UncopiedError if watched accesses from row `first` on read what had been left out, or was wrong, before."""
    read, last = _touched(recorder, machine, first, brief.watched, latest=True)
    per_unit = machine.warps_per_block * machine.cluster_blocks
    for (start, size), row in machine.uncopied.items():
        block, at = divmod(start, machine.shared_stride)
        at += (recorder.first_warp // per_unit + block // machine.cluster_blocks) << RANK_SHIFT
        inside = slice(*np.searchsorted(read, (at - _WORD_BYTES + 1, at + size)))
        if (last[inside] >= row).any():
            raise UncopiedError("an address or a branch depends on what a tensor copy brings")
    written, earliest = _touched(recorder, machine, first, brief.wrong)
    _, mine, theirs = np.intersect1d(read, written, assume_unique=True, return_indices=True)
    log, end = recorder.log, recorder.logged
    far = [rows[log.space[rows] == SPACE_GLOBAL] for rows in (
        _rows_of(log.instruction[first:end], brief.watched) + first, _rows_of(log.instruction[:end], brief.wrong)
    )]  # fmt: skip
    if (last[mine] > earliest[theirs]).any() or _meet(log._replace(offsets=log.offsets.reshape(-1, LANES)), *far):
        raise UncopiedError("an address or a branch depends on what was left out")


def _touched(
    recorder: Recorder, machine: Machine, first: int, accesses: frozenset[int], latest: bool = False
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The words of shared memory that these instructions access from row `first` on, and the first or latest row.

    A word is its address plus the number of the block or cluster in units of what a block can address.
    """
    log, per_unit, step = recorder.log, machine.warps_per_block * machine.cluster_blocks, -1 if latest else 1
    words, order = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number in accesses:
        mine = (np.flatnonzero(log.instruction[first : recorder.logged] == number) + first)[::step]
        mine = mine[log.space[mine] != SPACE_GLOBAL]
        unit = log.warp[mine].astype(np.int64) // per_unit
        _, chosen = np.unique(np.stack([unit, log.base[mine], log.pattern[mine]]), axis=1, return_index=True)
        rows, memory = mine[chosen], machine.kernel.instructions[number].memory
        each = _WORD_BYTES * np.arange(max(memory.width if memory else _WIDEST, _WORD_BYTES) // _WORD_BYTES)
        lanes = (log.masks[log.pattern[rows]][:, None] >> np.arange(LANES, dtype=np.uint32) & 1).astype(np.bool_)
        places = (log.base[rows, None] + log.offsets.reshape(-1, LANES)[log.pattern[rows]]) % (1 << RANK_SHIFT)
        places += unit[chosen, None] << RANK_SHIFT
        words.append((places[lanes][:, None] // _WORD_BYTES * _WORD_BYTES + each).reshape(-1))
        order.append(np.repeat(np.broadcast_to(rows[:, None], lanes.shape)[lanes], len(each)))
    found, at = np.concatenate(words), np.concatenate(order)
    sort = np.lexsort((step * at, found))
    unique, chosen = np.unique(found[sort], return_index=True)
    return unique, at[sort][chosen]


def reads_back(log: AccessLog, watched: frozenset[int], wrong: frozenset[int]) -> bool:
    """Whether some instructions read from memory what others write there, as far as a log shows."""
    return _meet(log, _rows_of(log.instruction, watched), _rows_of(log.instruction, wrong))


def _rows_of(instruction: npt.NDArray[np.int32], some: frozenset[int]) -> npt.NDArray[np.intp]:
    return np.flatnonzero(np.isin(instruction, np.array(sorted(some), np.int32)))


def _meet(log: AccessLog | Log, some: npt.NDArray[np.intp], others: npt.NDArray[np.intp]) -> bool:
    """Whether rows of a log touch the same memory as others, in units as wide as the widest access."""
    return len(some) > 0 and len(others) > 0 and len(np.intersect1d(_units(log, some), _units(log, others))) > 0


def _units(log: AccessLog | Log, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """What rows of a log touch: numbers of units in global memory, negative ones in shared or local memory."""
    place = np.stack([log.base[rows], log.pattern[rows].astype(np.int64), log.space[rows].astype(np.int64)])
    base, pattern, space = np.unique(place, axis=1)
    on = (log.masks[pattern][:, None] >> np.arange(LANES, dtype=np.uint32)) & 1 == 1
    first = base[:, None] + log.offsets[pattern]
    near = np.broadcast_to((space != SPACE_GLOBAL)[:, None], on.shape)
    first = np.where(near, first % (1 << RANK_SHIFT), first)[on]
    units = np.stack([first, first + _WIDEST - 1]) // _WIDEST
    return np.unique(np.where(near[on], -1 - units, units))
