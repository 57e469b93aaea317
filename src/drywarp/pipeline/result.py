"""What a simulation answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..bound import TICKS_PER_CYCLE

Ticks = npt.NDArray[np.int64]

REASONS = (
    "selected",
    "not_selected",
    "math_pipe_throttle",
    "lg_throttle",
    "mio_throttle",
    "wait",
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "drain",
    "tex_throttle",
)
"""Why an instruction issued no earlier, by code; the names are Nsight Compute's stall reasons.

``selected`` stands where nothing held the instruction back: the first of a warp, at its launch.
``drain`` is no instruction's: it is the time from a warp's last issue to its end.
"""

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
class SimulationResult:
    """One SM's run of its share of the grid.

    `busy_ticks` holds, for each subsystem, the λ summed over what was issued there, per instance (a
    subsystem that is in each partition counts the mean over them); `issue_busy_ticks` the same for
    the valve. `warp_ends` are the end ticks of the simulated warps in launch order. `extrapolated`
    says that only a part was simulated; `issued` then counts that of the whole share.
    """

    total_ticks: int
    issued: int
    blocks: int
    busy_ticks: tuple[float, ...]
    issue_busy_ticks: float
    warp_ends: Ticks
    extrapolated: bool = False
    profile: ExecutionProfile | None = None

    @property
    def cycles(self) -> float:
        """Total time in SM cycles."""
        return self.total_ticks / TICKS_PER_CYCLE
