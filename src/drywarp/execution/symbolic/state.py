"""Registers of the warps that are walked together, each number with what is known about it.

A batch is some of these warps, at the same place, with the lanes that are present. Instructions are functions of a
batch. Its rows are the machine's own arrays if it holds all warps, else copies that are written back before another
batch runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernel.launch.launch import Launch

# What is known about a number besides its value, and the array shapes of a walk.

Lanes = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.uint16]

KNOWN, ASSUMED, DATA, VARYING = 0, 1, 2, 4
"""What is known about a number, one bit each; a result has the bits of everything that it is computed from.

ASSUMED: it depends on an argument that was not given. DATA: it depends on memory content. VARYING: it may differ
between the lanes of a warp.
"""
UNSURE = ASSUMED | DATA
ITERATIONS = (8, 16, 32, 64)
"""It changes between iterations of the loop that is watched at this depth, outermost first (see `forward`)."""
ANY_ITERATION = sum(ITERATIONS)
NON_AFFINE_SHIFT = 4
ANY_NON_AFFINE = ANY_ITERATION << NON_AFFINE_SHIFT
"""It is computed from such changing numbers but is not affine in them: a bit for each depth."""

Value = Any
"""An array that broadcasts against (rows, lanes)."""


def non_affine_flags(flags: Value) -> Value:
    """Flags of a result that is not affine in its sources; the same array if none of them moves."""
    if np.ndim(flags) and (flags >= ITERATIONS[0]).any():
        return flags | (flags & np.uint16(ANY_ITERATION)) << np.uint16(NON_AFFINE_SHIFT)
    return flags


def even_iterations(flags: Value) -> Value:
    """Where a number changes between iterations of some loop and is affine in that loop."""
    return flags & ANY_ITERATION & ~(flags >> np.uint16(NON_AFFINE_SHIFT)) != 0


@dataclass(frozen=True)
class FileShape:
    """A register file: number of registers, their type, and one value per lane or per warp."""

    count: int
    kind: type[np.generic]
    per_lane: bool


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A compare of two numbers that move with the iterations: `gap` is left minus right where `lanes` count."""

    instruction: int
    how: str
    rows: npt.NDArray[np.int64]
    lanes: Lanes
    gap: npt.NDArray[np.int64]


class RegisterFile:
    """Numbers and flags of one file: shape (registers, warps, lanes), or (registers, warps, 1)."""

    def __init__(self, shape: FileShape, warps: int, lanes: int) -> None:
        size = (shape.count, warps, lanes if shape.per_lane else 1)
        self.per_lane = shape.per_lane
        self.values: npt.NDArray[Any] = np.zeros(size, shape.kind)
        self.flags: Flags = np.zeros(size, np.uint16)


class State:
    """All warps of some thread blocks: warp w is warp w % warps_per_block of block w // warps_per_block.

    `live` are lanes that exist and have not left, `barriers` those that each convergence barrier waits
    for; both have a row per warp. `thread` numbers the threads of the grid, shape (warps, lanes).
    """

    def __init__(
        self, launch: Launch, blocks: Sequence[int], files: dict[str, FileShape], convergence_barriers: int
    ) -> None:
        self.launch = launch
        self.blocks = list(blocks)
        self.lanes = launch.warp_size
        per_block = launch.warps_per_block
        self.warps = len(self.blocks) * per_block
        self.files = {name: RegisterFile(shape, self.warps, self.lanes) for name, shape in files.items()}
        linear = np.arange(per_block * self.lanes)
        exists = (linear < launch.threads_per_block).reshape(per_block, self.lanes)
        self.live: Lanes = np.tile(exists, (len(self.blocks), 1))
        self.barriers: npt.NDArray[np.bool_] = np.zeros((convergence_barriers, self.warps, self.lanes), np.bool_)
        first = np.repeat(np.array(self.blocks, np.int64), per_block) * launch.threads_per_block
        self.in_block: npt.NDArray[np.int64] = np.tile(linear.reshape(per_block, self.lanes), (len(self.blocks), 1))
        self.thread: npt.NDArray[np.int64] = first[:, None] + self.in_block
        self.local: dict[int, tuple[Value, Flags]] = {}
        self.special: dict[str, Value] = {}
        self.clock = 0
        self.notes: set[str] = set()
        self.counters: dict[int, int] = {}
        self.compared: list[Compared] = []
        """Compares of numbers that change between iterations, in execution order."""
        self.non_affine = 0
        """Iteration flags of non-affine numbers on which an address or a condition depends."""


class _Copies:
    """Rows of some warps, copied when first asked for."""

    def __init__(self, whole: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> None:
        self._whole = whole
        self._rows = rows
        self._held: dict[int, npt.NDArray[Any]] = {}

    def __getitem__(self, index: int) -> npt.NDArray[Any]:
        held = self._held.get(index)
        if held is None:
            held = self._held[index] = self._whole[index][self._rows]
        return held

    def write_back(self) -> None:
        for index, held in self._held.items():
            self._whole[index][self._rows] = held
        self._held.clear()


class Batch:
    """Warps `rows` of a state with the lanes `there`, shape (rows, lanes), that execute.

    Register files are attributes under their names, with their flags in `flags`. `exec` is None if every lane of every
    row executes. The names are those of the emulator's frames, so its opcode functions also run on a batch.
    """

    def __init__(self, state: State, rows: npt.NDArray[np.int64], there: Lanes) -> None:
        self.state = state
        self.machine = SimpleNamespace(special=state.special, clock=state.clock, notes=state.notes)
        self.warps = rows
        self.rows = len(rows)
        self.whole = len(rows) == state.warps
        self.index: Any = slice(None) if self.whole else rows
        self.there = there
        self.exec: Lanes | None = None if there.all() else there
        self.uniform_mask: Lanes | None = None
        self.flags: dict[str, Any] = {}
        self._copies: list[_Copies] = []
        for name, file in state.files.items():
            setattr(self, name, self._rows_of(file.values))
            self.flags[name] = self._rows_of(file.flags)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def _rows_of(self, whole: npt.NDArray[Any]) -> Any:
        if self.whole:
            return list(whole)
        copies = _Copies(whole, self.warps)
        self._copies.append(copies)
        return copies

    def write_back(self) -> None:
        """Write the batch's changes back to the state."""
        for copies in self._copies:
            copies.write_back()

    # What functions of opcodes use -----------------------------------------------------------------

    def write(self, row: Value, value: Value) -> None:
        """Write values to a row of a per-lane file, for the lanes that execute."""
        if self.exec is None:
            row[...] = value
        else:
            np.copyto(row, value, where=self.exec, casting="unsafe")

    write_predicate = write

    def write_uniform(self, row: Value, value: Value) -> None:
        """Write values to a row of a per-warp file, shape (rows, 1)."""
        if self.uniform_mask is None:
            row[...] = value
        else:
            np.copyto(row, value, where=self.uniform_mask, casting="unsafe")

    def put_flags(self, name: str, index: int, flags: Value) -> None:
        """Flags of a register that the executing lanes wrote."""
        row = self.flags[name][index]
        if row.shape[1] > 1:
            self.write(row, flags)
            return
        if np.ndim(flags) and flags.shape[-1] > 1:
            flags = np.bitwise_or.reduce(np.where(self.lanes(), flags, 0), axis=1, keepdims=True)
        self.write_uniform(row, flags & np.uint16(~VARYING & 0xFFFF))

    def spill(self, place: int, registers: Sequence[int | None]) -> None:
        """Store general registers from a place in the local memory of all threads on; None is zero."""
        lanes, shape = self.lanes(), (self.state.warps, self.state.lanes)
        for word, index in enumerate(registers):
            nothing = (np.zeros(shape, np.uint32), np.full(shape, DATA, np.uint16))
            held = self.state.local.setdefault(place + 4 * word, nothing)
            new = (np.uint32(0), np.uint16(0)) if index is None else (self.R[index], self.flags["R"][index])
            for whole, part in zip(held, new, strict=True):
                whole[self.warps] = np.where(lanes, part, whole[self.warps])

    def reload(self, place: int, registers: Sequence[int]) -> bool:
        """Write to general registers what was stored from a place on; False where nothing was."""
        local = self.state.local
        if any(place + 4 * word not in local for word in range(len(registers))):
            return False
        for word, index in enumerate(registers):
            values, marks = local[place + 4 * word]
            self.write(self.R[index], values[self.warps])
            self.put_flags("R", index, marks[self.warps])
        return True

    def narrow(self, lanes: Lanes) -> tuple[Any, ...]:
        """Restrict execution to `lanes`; returns the argument of `restore`."""
        saved = (self.exec, self.uniform_mask)
        self.exec = lanes
        some: Lanes = np.asarray(lanes.any(axis=1, keepdims=True))
        self.uniform_mask = some
        return saved

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Undo `narrow`."""
        self.exec, self.uniform_mask = saved

    def spread(self, value: Value) -> Value:
        """A value per lane, shape (rows, lanes)."""
        shape = (self.rows, self.state.lanes)
        return value if np.shape(value) == shape else np.broadcast_to(value, shape)

    def lanes(self) -> Lanes:
        """The executing lanes, shape (rows, lanes)."""
        return np.ones((self.rows, self.state.lanes), np.bool_) if self.exec is None else self.exec

    def words(self) -> Value:
        """The executing lanes as a word per row, of warps of 32 lanes."""
        return np.packbits(self.lanes(), axis=1, bitorder="little").view(np.uint32)[:, 0]

    def leader(self) -> npt.NDArray[np.int64]:
        """The first executing lane of each row."""
        first: npt.NDArray[np.int64] = self.lanes().argmax(axis=1)
        return first

    def rely_on(self, flags: Value) -> None:
        """Record that an address or a condition depends on numbers with these flags."""
        if np.ndim(flags) and (flags & ANY_NON_AFFINE).any():
            relevant = np.where(self.lanes() & (flags & DATA == 0), flags, 0)
            found = int(np.bitwise_or.reduce(relevant, axis=None)) & ANY_NON_AFFINE
            self.state.non_affine |= found >> NON_AFFINE_SHIFT

    def executions(self, instruction: int) -> int:
        """How often any batch reached this instruction before; counts this time."""
        counters = self.state.counters
        counters[instruction] = counters.get(instruction, 0) + 1
        return counters[instruction] - 1
