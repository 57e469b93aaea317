"""What a run of the kernel did: the hardware-independent record that the emulator leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .cfg import ControlFlowGraph
from .kernel import Kernel
from .launch import Dim3, Launch
from .sampling import Sampling


@dataclass(frozen=True)
class WarpPath:
    """A distinct path of a warp: the basic blocks that it issued, in order.

    `blocks` holds indices into `ControlFlowGraph.blocks`, shape (steps,). A divergent warp issues
    both sides one after the other, and each side is a step of its own. `lanes` is the mean number of
    active lanes at each step over the warps that took this path, shape (steps,).
    """

    blocks: npt.NDArray[np.int32]
    lanes: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SampledBlock:
    """One emulated thread block.

    `linear` is its index in launch order; `weight` how many blocks of the grid it stands for (the
    weights of all samples add up to the grid); `paths` the path index of each of its warps.
    """

    linear: int
    coordinates: Dim3
    weight: float
    paths: tuple[int, ...]


@dataclass(frozen=True)
class AccessLog:
    """Every executed memory access of the sampled warps, one row each, warp after warp and in issue order of each.

    `instruction` index in the kernel; `warp` is block_sample·warps_per_block + warp of the block;
    `order` counts the accesses of the warp; `base` is the byte address of the first active lane and
    `pattern` the row in `offsets` (bytes from `base`, shape (patterns, 32)) and `masks` (bit per
    active lane, shape (patterns,)). Shared and local addresses count from the start of their window.
    A generic access that hits shared or local memory is logged with `space` 1 or 2 (0 is global).
    """

    instruction: npt.NDArray[np.int32]
    warp: npt.NDArray[np.int32]
    order: npt.NDArray[np.int64]
    base: npt.NDArray[np.int64]
    pattern: npt.NDArray[np.int32]
    space: npt.NDArray[np.int8]
    offsets: npt.NDArray[np.int64]
    masks: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.instruction)


SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL = 0, 1, 2
SYNC_SIGNAL, SYNC_WAIT = 1, 2
SYNC_WARP, SYNC_STEP, SYNC_INSTRUCTION, SYNC_KIND, SYNC_BARRIER, SYNC_PHASE = range(6)
SYNC_COLUMNS = 6


def _no_syncs() -> npt.NDArray[np.int64]:
    return np.zeros((0, SYNC_COLUMNS), np.int64)


@dataclass(frozen=True)
class Profile:
    """The record of one emulated launch.

    `thread_instructions` counts lanes that executed each instruction with its guard true, shape
    (sampled blocks, instructions). `allocations` maps a parameter name (or ``argN``) to (address,
    bytes) of its buffer. `steps` is the number of warp instructions of the sampled blocks.
    `logged` is the share of each instruction's accesses that the log holds, shape (instructions,), where
    that is not all of them; the rest did likewise.
    `exact` is false where counts depend on timing (spin locks, clocks) or on blocks not sampled.

    `syncs` says who waited for whom within a block, one row each, in execution order: the warp (as in
    `AccessLog`), the step of its path and the instruction; SYNC_SIGNAL for what a phase of a barrier waits
    for (an arrival, a copy of the copy engine) or SYNC_WAIT for a wait for it; the barrier, an address in
    shared memory or ~n for barrier n of BAR; and the phase, counted from 0 (a wait for one that was over
    from the start has -1). Barriers of the whole block leave no rows.
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
    syncs: npt.NDArray[np.int64] = field(default_factory=_no_syncs)
    logged: npt.NDArray[np.float64] | None = None
    sampling: Sampling | None = None

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
        # Weights are fractions where a sample stands for many blocks; whole counts should read so.
        whole = np.rint(counts)
        return np.where(np.isclose(counts, whole, rtol=1e-9, atol=0), whole, counts)
