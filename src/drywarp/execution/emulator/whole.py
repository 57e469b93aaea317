"""Whole launches for what they compute: every block runs, and of the record only counts remain."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import StarvationError
from ...kernel.cfg import ControlFlowGraph
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Launch
from ...support.folders import thread_count
from .apart import PARTS
from .constants import check_whole_grid, fits_at_once, uses_grid_barrier
from .memory import DeviceMemory
from .sampling import Limits
from .session import WAVE_WARPS, Session
from .tally import Tally

_UNLIMITED = 1 << 62
_WAVES_A_PART = 4
"""Waves of a part between two looks at the record: it stays small, and threads rarely wait for each other."""


@dataclass(frozen=True)
class WholeRun:
    """A launch that was run to its end: the device memory that it leaves, and what it did.

    `digest` stands for how often each basic block ran and each instruction accessed memory with each lane pattern,
    wherever the buffers lie: launches with the same one take the same time but for the caches' content. `printed` is
    what device code printed, in the order of the blocks.
    """

    memory: DeviceMemory
    warp_instructions: int
    digest: str
    printed: str = ""


def run_whole(kernel: Kernel, launch: Launch, most: int, cfg: ControlFlowGraph | None = None) -> WholeRun | None:
    """Run every block of a launch; None if that takes more than `most` warp instructions.

    `cfg` is the kernel's control flow, if already available.

    Raises EmulationError for a faulty access, a deadlock or a trap, UnsupportedInstructionError for an unsupported
    instruction, UsageError if the launch does not fit the kernel.
    """
    limits = Limits(lane_steps=_UNLIMITED, accesses=_UNLIMITED)
    if uses_grid_barrier(kernel):
        check_whole_grid(kernel, launch)
        return _at_once(kernel, launch, limits, most)
    tally = Tally()
    session = Session(kernel, launch, limits, cfg=cfg, tally=tally)
    together = launch.cluster_blocks
    clusters = launch.blocks // together
    size = max(WAVE_WARPS // (launch.warps_per_block * together), 1) * PARTS * thread_count() * _WAVES_A_PART
    try:
        for first in range(0, clusters, size):
            part = range(first, min(first + size, clusters))
            session.run(part if together == 1 else [block for one in part for block in launch.members(one)])
            if session.budget.warp_steps > most:
                return None
    except StarvationError:
        if not fits_at_once(launch):
            raise
        return _at_once(kernel, launch, limits, most)
    return WholeRun(session.memory, session.budget.warp_steps, tally.digest(), "".join(tally.prints))


def _at_once(kernel: Kernel, launch: Launch, limits: Limits, most: int) -> WholeRun | None:
    """All blocks concurrently, for those that wait for each other."""
    tally = Tally()
    session = Session(kernel, launch, limits, tally=tally)
    session.run(range(launch.blocks), whole=True)
    steps = session.budget.warp_steps
    return WholeRun(session.memory, steps, tally.digest(), "".join(tally.prints)) if steps <= most else None
