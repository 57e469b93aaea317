"""The results of a simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..workload.cost import TICKS_PER_CYCLE, CostedWorkload
from .reasons import REASONS

Ticks = npt.NDArray[np.int64]

PROFILE_COLUMNS = ("warp", "block", "node", "position", "issue", "completion", "reason")


@dataclass(frozen=True)
class ExecutionProfile:
    """What issued when, in the order of issue: one row per warp instruction.

    `table` has the columns PROFILE_COLUMNS. `warp` is the warp slot on the SM, `block` the block in
    launch order on the SM, `node` indexes `paths_nodes` (path, node within the path), `position` is
    the place in the warp's unrolled program, `reason` indexes REASONS: the check that held the
    instruction longest. Issue and completion are ticks.
    """

    table: Ticks
    paths_nodes: tuple[tuple[int, int], ...]

    def column(self, name: str) -> Ticks:
        """One column by its name in PROFILE_COLUMNS."""
        return self.table[:, PROFILE_COLUMNS.index(name)]


@dataclass(frozen=True)
class Recurrence:
    """A part of a run that recurs: the same events follow it `times` times, each `period` ticks later.

    `tick` is its end. `blocks` and `warps` number what started and what ended in it among the recorded blocks,
    `running` the warps on the SM at its end; anything with a higher number comes after all repetitions.
    """

    times: int
    period: int
    tick: int
    blocks: Ticks
    warps: Ticks
    running: Ticks


@dataclass(frozen=True)
class Mark:
    """Progress of a run at some `tick`: instructions issued, and the sums until then (see `SimulationResult`)."""

    issued: int
    tick: int
    busy: Ticks
    stalls: Ticks


@dataclass(frozen=True)
class SimulationResult:
    """One SM's run of its share of the grid.

    `busy_ticks` holds, for each subsystem, how long it was busy until the end, per instance (for a subsystem in each
    partition, the mean over them): the sum of λ over what was issued there, without what remains when the last warp
    ends; `issue_busy_ticks` is the same for the valve. `extrapolated` says that only a part was simulated; even so, all
    counts are those of the whole share.

    `warp_ticks` is the time of all warps together, each from launch to end: the active warps summed over the time.
    `stall_ticks` divides it (`reasons.py`): a row per node, in the order of `nodes` (path, node within the path), a
    column per reason of REASONS; its sum is exactly `warp_ticks`. It has no rows if it was not requested.
    `tail_ticks` is the time from the first end of a block after the last has started, to the last end.

    Data on single warps and blocks cover the simulated part, which took `simulated_ticks`: `warp_ends` are the end
    ticks of its warps in launch order, `block_starts` the launch ticks of its blocks, `block_slots` the slot in which
    each ran. Warp i of a block in slot b runs in partition (b · warps per block + i) mod `partitions`. For a part that
    recurs they hold the first occurrence; its exact repetitions are in `recurrences`. `jumped` is the number of
    instructions of the exact result that were not simulated individually. `marks` are intermediate moments, if
    requested.
    """

    total_ticks: int
    issued: int
    blocks: int
    busy_ticks: tuple[float, ...]
    issue_busy_ticks: float
    warp_ticks: int
    stall_ticks: Ticks
    nodes: tuple[tuple[int, int], ...]
    partitions: int
    simulated_ticks: int
    tail_ticks: int
    warp_ends: Ticks
    block_starts: Ticks
    block_slots: Ticks
    recurrences: tuple[Recurrence, ...] = ()
    jumped: int = 0
    marks: tuple[Mark, ...] = ()
    extrapolated: bool = False
    profile: ExecutionProfile | None = None

    @property
    def cycles(self) -> float:
        """Total time in SM cycles."""
        return self.total_ticks / TICKS_PER_CYCLE

    @property
    def mean_occupancy(self) -> float:
        """Achieved occupancy: active warps, weighted by time."""
        return self.warp_ticks / self.total_ticks if self.total_ticks else 0.0

    def node_stalls(self, workload: CostedWorkload) -> dict[int, dict[str, float]]:
        """The same for each instruction of the kernel, by its index: over all paths that it is on."""
        if not len(self.stall_ticks):
            return {}
        paths = [path.nodes for path in workload.paths]
        index = np.array([paths[path][node].instruction for path, node in self.nodes], dtype=np.int64)
        order = np.argsort(index, kind="stable")
        numbers, first = np.unique(index[order], return_index=True)
        rows = np.add.reduceat(self.stall_ticks[order], first, axis=0)
        return {number: named for number, ticks in zip(numbers.tolist(), rows, strict=True) if (named := _named(ticks))}

    def stalls(self) -> dict[str, float]:
        """Warp-cycles of this SM by reason, in the order of REASONS; reasons without any are left out."""
        return _named(self.stall_ticks.sum(axis=0))


def _named(ticks: Ticks) -> dict[str, float]:
    return {name: count / TICKS_PER_CYCLE for name, count in zip(REASONS, ticks.tolist(), strict=True) if count}
