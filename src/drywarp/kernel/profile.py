"""The record of a kernel run: the hardware-independent profile that the emulator produces, and measured profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .cfg import ControlFlowGraph
from .kernel import Kernel
from .launch.launch import Dim3, Launch

# Profiler measurements of one kernel launch: the common form that all readers of profiler exports deliver.

TIME = "gpu__time_duration.sum"
SM_CLOCK = "smsp__cycles_elapsed.avg.per_second"


@dataclass(frozen=True)
class MeasuredKernel:
    """One profiled launch.

    `name` as the profiler prints it; `grid` and `block` are None if the export does not give them. `metrics` maps
    Nsight Compute's names to values in base units: seconds, bytes, hertz, percent, plain counts. `place` is the file
    and line that it was read from.
    """

    name: str
    grid: Dim3 | None
    block: Dim3 | None
    metrics: Mapping[str, float] = field(default_factory=dict)
    device: str = ""
    place: str = ""

    @property
    def time_s(self) -> float | None:
        """The measured time of the launch in seconds."""
        return self.metrics.get(TIME)

    @property
    def clock_hz(self) -> float | None:
        """The SM clock during the measurement, in hertz."""
        return self.metrics.get(SM_CLOCK)


# How well a sample of thread blocks represents a grid.


@dataclass(frozen=True, slots=True)
class Sampling:
    """How well the emulated blocks represent the grid: `blocks` out of `of` were emulated.

    `estimate` is the number of warp instructions of the whole grid; `low` and `high` bound it with probability
    `confidence` (None if unknown). `basis` gives the reason:

    - ``all``: every block was emulated; ``proven``: no branch depends on the block index or on loaded data.
      Both are exact.
    - ``uniform``: no variation was seen within any stratum; exact if none was missed.
    - ``estimated``: neighbouring blocks differ, and were sampled at random.
    - ``limited``: the emulation limits left too few blocks for a confidence interval.
    - ``chosen``: the caller chose the blocks, or their number.

    `spread` of a ``limited`` sample is how short and how long the mean block of the grid may be, in warp instructions,
    relative to that of the sample: towards the shortest block that was run, and up to the longest, ended or not.
    `extrapolated_loops` is the number of loops that were not run to completion, but extrapolated from their
    repetition.
    """

    blocks: int
    of: int
    estimate: float
    low: float | None
    high: float | None
    basis: str
    confidence: float = 0.95
    extrapolated_loops: int = 0
    spread: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True)
class WarpPath:
    """A distinct path of a warp: the basic blocks that it issued, in order.

    `blocks` holds indices into `ControlFlowGraph.blocks`, shape (steps,). A divergent warp issues both sides one after
    the other; each side is a separate step. `lanes` is the mean number of active lanes at each step over the warps that
    took this path, shape (steps,).
    """

    blocks: npt.NDArray[np.int32]
    lanes: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SampledBlock:
    """One emulated thread block.

    `linear` is its index in launch order; `weight` the number of grid blocks that it represents (the weights of all
    samples add up to the grid); `paths` the path index of each of its warps.
    """

    linear: int
    coordinates: Dim3
    weight: float
    paths: tuple[int, ...]


@dataclass(frozen=True)
class AccessLog:
    """Every executed memory access of the sampled warps: one row each, grouped by warp, in issue order within a warp.

    `instruction` is the index in the kernel; `warp` is block_sample·warps_per_block + warp in the block; `base` is the
    byte address of the first active lane; `pattern` is the row in `offsets` (bytes from `base`, shape (patterns, 32))
    and `masks` (one bit per active lane, shape (patterns,)). Shared and local addresses count from the start of their
    window. A generic access to shared or local memory is logged with `space` 1 or 2 (0 is global), one to the shared
    memory of another block of the cluster with 3.
    """

    instruction: npt.NDArray[np.int32]
    warp: npt.NDArray[np.int32]
    base: npt.NDArray[np.int64]
    pattern: npt.NDArray[np.int32]
    space: npt.NDArray[np.int8]
    offsets: npt.NDArray[np.int64]
    masks: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.instruction)

    @cached_property
    def order(self) -> npt.NDArray[np.int64]:
        """How many accesses of its warp precede each."""
        begins = np.flatnonzero(np.diff(self.warp, prepend=-1))
        return np.arange(len(self)) - np.repeat(begins, np.diff(begins, append=len(self)))


SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_REMOTE = range(4)
GRID_BARRIER_AREA = "the grid barrier's area"
"""Allocation that holds the counter of a grid-wide barrier; the blocks of such a launch were run together."""
SYNC_SIGNAL, SYNC_WAIT, SYNC_SKIP = 1, 2, 3
SYNC_WARP, SYNC_STEP, SYNC_INSTRUCTION, SYNC_KIND, SYNC_BARRIER, SYNC_PHASE = range(6)
SYNC_COLUMNS = 6


ASKED_WARP, ASKED_REQUEST, ASKED_INSTRUCTION, ASKED_WORD = range(4)
ASKED_COLUMNS = 4
CONSTANT_WARPS, CONSTANTS = 64, 1 << 14


def _no_syncs() -> npt.NDArray[np.int64]:
    return np.zeros((0, SYNC_COLUMNS), np.int64)


def _none_asked() -> npt.NDArray[np.int64]:
    return np.zeros((0, ASKED_COLUMNS), np.int64)


@dataclass(frozen=True)
class Profile:
    """The record of one emulated launch.

    `thread_instructions` counts the lanes that executed each instruction with a true guard, shape (sampled blocks,
    instructions). `allocations` maps a parameter name (or ``argN``) to (address, bytes) of its buffer. `steps` is the
    number of warp instructions of the sampled blocks. `logged` is the fraction of each instruction's accesses in the
    log, shape (instructions,), if the log is incomplete; the missing accesses behave like the logged ones.
    `doubts` are reasons not to trust the profile.

    `syncs` records the barrier synchronisation within a block, one row each, in execution order: the warp (as in
    `AccessLog`), the step of its path and the instruction; SYNC_SIGNAL for an event that a barrier phase waits for (an
    arrival, a copy by the copy engine) or SYNC_WAIT for a wait on the phase; the barrier (an address in shared memory,
    or ~n for barrier n of BAR and ~16 for that of the cluster); and the phase, counted from 0 (-1 for a wait on a phase
    that was already complete at the start). Barriers of the whole block have no rows, but for warps whose guard lets
    them pass one: SYNC_SKIP.

    `products` are the shapes and element types that `Kernel.with_tensor_use` has given the kernel's instructions.
    `constant_addresses` is how many different words a mean request of a load of constants asks for, by instruction,
    where that is not 1. `constants` has a row for each such word whose address a register gives: the warp, a
    number of the warp's request, the instruction and the word, counted from the start of the bank. It has about the
    first CONSTANTS of each of the first CONSTANT_WARPS warps that were run, whether or not their blocks are in the
    sample, in order within a warp.
    """

    kernel: Kernel
    launch: Launch
    cfg: ControlFlowGraph
    blocks: tuple[SampledBlock, ...]
    paths: tuple[WarpPath, ...]
    accesses: AccessLog
    thread_instructions: npt.NDArray[np.int64]
    allocations: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    steps: int = 0
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    syncs: npt.NDArray[np.int64] = field(default_factory=_no_syncs)
    logged: npt.NDArray[np.float64] | None = None
    sampling: Sampling | None = None
    products: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    constant_addresses: Mapping[int, float] = field(default_factory=dict)
    constants: npt.NDArray[np.int64] = field(default_factory=_none_asked)

    def executions(self) -> npt.NDArray[np.float64]:
        """Warp-level executions of each instruction over the whole grid, shape (instructions,)."""
        per_block = np.stack([np.bincount(p.blocks, minlength=len(self.cfg.blocks)) for p in self.paths])
        total: npt.NDArray[Any] = np.zeros(len(self.cfg.blocks))
        for sample in self.blocks:
            for path in sample.paths:
                total += sample.weight * per_block[path]
        counts = np.zeros(len(self.kernel.instructions))
        for index, block in enumerate(self.cfg.blocks):
            counts[block.start : block.end] = total[index]
        # Weights are fractional if a sample represents many blocks; round counts that should be whole numbers.
        whole = np.rint(counts)
        return np.where(np.isclose(counts, whole, rtol=1e-9, atol=0), whole, counts)
