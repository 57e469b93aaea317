"""What a simulation answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..bound import TICKS_PER_CYCLE, BoundWorkload
from .reasons import REASONS

Ticks = npt.NDArray[np.int64]

PROFILE_COLUMNS = ("warp", "block", "node", "position", "issue", "completion", "reason")


@dataclass(frozen=True)
class ExecutionProfile:
    """Who issued what when, in the order of issue: one row per warp instruction.

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
    """A part of a run that was found to recur: after it came the same `times` times again, each `period` ticks later.

    `tick` is its end. `blocks` and `warps` number what started and what ended in it among the blocks that were
    written down, `running` the warps that were on the SM at its end; all with higher numbers came after all the
    repetitions.
    """

    times: int
    period: int
    tick: int
    blocks: Ticks
    warps: Ticks
    running: Ticks


@dataclass(frozen=True)
class Mark:
    """Where a run was at some `tick`: instructions issued, and the sums until then (see `SimulationResult`)."""

    issued: int
    tick: int
    busy: Ticks
    stalls: Ticks


@dataclass(frozen=True)
class SimulationResult:
    """One SM's run of its share of the grid.

    `busy_ticks` holds, for each subsystem, the λ summed over what was issued there, per instance (a
    subsystem that is in each partition counts the mean over them); `issue_busy_ticks` the same for
    the valve. `extrapolated` says that only a part was simulated; all counts are those of the whole
    share even so.

    `warp_ticks` is the time of all warps together, each from launch to end: the active warps summed over
    the time. `stall_ticks` divides it (`reasons.py`): a row per node, in the order of `nodes` (path, node
    within the path), a column per reason of REASONS; its sum is exactly `warp_ticks`. It has no rows where
    it was not asked for.

    What is known of single warps and blocks is that of the simulated part, which took
    `simulated_ticks`: `warp_ends` are the end ticks of its warps in launch order, `block_starts` the launch
    ticks of its blocks, `block_slots` where each ran. Warp i of a block in slot b runs in partition
    (b · warps per block + i) mod `partitions`. Of a part that recurs they hold the first time: what came
    again, exactly so many times and so much later, is in `recurrences`; `jumped` is how many instructions
    of the exact result were not simulated one by one. `marks` are moments on the way, where they were asked for.
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

    def node_stalls(self, workload: BoundWorkload) -> dict[int, dict[str, float]]:
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
