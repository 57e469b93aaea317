"""Run a launch: sampled blocks of it (`emulate`), or every block for what they compute (`run_whole`)."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import EmulationLimitError, StarvationError, UsageError
from ...kernel.cfg import ControlFlowGraph, build_cfg
from ...kernel.draws import with_draws_in_turn
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Launch
from ...support.folders import thread_count
from .apart import PARTS
from .bits import LANES
from .brief import UncopiedError
from .constants import check_whole_grid, fits_at_once, uses_grid_barrier
from .control import DeviceLaunch
from .memory import DeviceMemory
from .sampling import Blocks, Limits
from .sequential import chosen, survey, whole_grid
from .session import WAVE_WARPS, Emulation, Session
from .skim import without_results
from .tally import Tally
from .watch import Watch

DEFAULT_LIMITS = Limits()
_UNLIMITED = 1 << 62
_SHORT_WARP = 64
"""Instructions of a warp below which most of a wave's time goes into what only one thread does at a time."""
_WAVES_A_PART = 4
"""Waves of a part between two looks at the record: it stays small, and threads rarely wait for each other."""


def emulate(
    kernel: Kernel,
    launch: Launch,
    *,
    blocks: Blocks = None,
    confidence: float | None = None,
    limits: Limits = DEFAULT_LIMITS,
    compiled: bool = True,
    results: bool = True,
) -> Emulation:
    """Run a kernel's machine code on the CPU, for some blocks of the grid.

    `blocks` None takes a stratified sample, refined as long as necessary (see `survey`); a number, about that many
    blocks; a list, those linear indices; "all", the whole grid. `confidence` is the target half-width of the 95 %
    confidence interval of the instruction count, relative to the total, if blocks differ at random; None accepts less
    if that would take many blocks, 0 runs them all. Blocks run in parallel in waves and share device memory; `compiled`
    false runs everything in NumPy. With `results` false, only the first block of a default sample computes what reaches
    neither an address nor a branch: the profile is the same, the content of memory is not. Clusters are run and sampled
    as a whole.

    Raises EmulationError for a faulty access, a deadlock or a trap, UnsupportedInstructionError for an unsupported
    instruction, EmulationLimitError past `limits` (for the default sample only if not one block ends within them),
    UsageError if the launch does not fit the kernel.
    """
    if confidence is not None and not 0 <= confidence < 1:
        raise UsageError(f"confidence {confidence:g}: expected a fraction from 0 up to 1")
    if uses_grid_barrier(kernel):
        check_whole_grid(kernel, launch)
        return whole_grid(kernel, launch, limits, compiled)
    surveys = blocks is None and confidence != 0
    try:
        cfg = build_cfg(kernel.instructions, kernel.code_entries)
        drawing = with_draws_in_turn(kernel, cfg)
        brief = without_results(drawing, cfg) if surveys and not results else None
        session = Session(kernel, launch, limits, compiled, cfg, brief=brief, runs=drawing)
        return survey(session, confidence) if surveys else chosen(session, "all" if blocks is None else blocks)
    except UncopiedError:
        return emulate(kernel, launch, confidence=confidence, limits=limits, compiled=compiled)
    except EmulationLimitError as stopped:
        if surveys:
            stopped.iterations = session.iterations()
        raise
    except StarvationError:
        if fits_at_once(launch):
            return whole_grid(kernel, launch, limits, compiled)
        if not surveys:
            raise
        # A concurrent block may do what a block waits for.
        return survey(Session(kernel, launch, limits, compiled), confidence, together=True)


# Whole launches: of the record only counts remain.


@dataclass(frozen=True)
class WholeRun:
    """A launch that was run to its end: the device memory that it leaves, and what it did.

    `digest` stands for how often each basic block ran and each instruction accessed memory with each lane pattern,
    wherever the buffers lie: launches with the same one take the same time but for the caches' content. `printed` is
    what device code printed, in the order of the blocks, and `launched` are the launches that it asked for, in theirs.
    """

    memory: DeviceMemory
    warp_instructions: int
    digest: str
    printed: str = ""
    launched: tuple[DeviceLaunch, ...] = ()


def run_whole(
    kernel: Kernel,
    launch: Launch,
    most: int,
    cfg: ControlFlowGraph | None = None,
    watch: Watch | None = None,
) -> WholeRun | None:
    """Run every block of a launch; None if that takes more than `most` warp instructions.

    `cfg` is the kernel's control flow, if already available. `watch` finds faults that the results do not show.

    Raises EmulationError for a faulty access, a deadlock or a trap, UnsupportedInstructionError for an unsupported
    instruction, UsageError if the launch does not fit the kernel.
    """
    limits = Limits(lane_steps=min(most * LANES, _UNLIMITED), accesses=_UNLIMITED)
    if uses_grid_barrier(kernel):
        check_whole_grid(kernel, launch)
        return _at_once(kernel, launch, limits, most, watch)
    tally = Tally()
    session = Session(kernel, launch, limits, cfg=cfg, tally=tally, watch=watch)
    together = launch.cluster_blocks
    clusters = launch.blocks // together
    wave = max(WAVE_WARPS // (launch.warps_per_block * together), 1)
    size = wave * PARTS * thread_count() * _WAVES_A_PART
    try:
        for first in (0, *range(wave, clusters, size)):
            part = range(first, min(first + (size if first else wave), clusters))
            session.run(part if together == 1 else [block for one in part for block in launch.members(one)])
            if session.budget.warp_steps > most:
                return None
            if not first and session.budget.warp_steps < _SHORT_WARP * launch.warps_per_block * together * len(part):
                session.stay_together()
    except StarvationError:
        if not fits_at_once(launch):
            raise
        return _at_once(kernel, launch, limits, most, watch)
    except EmulationLimitError:
        return None
    return _ended(session, tally)


def _at_once(kernel: Kernel, launch: Launch, limits: Limits, most: int, watch: Watch | None) -> WholeRun | None:
    """All blocks concurrently, for those that wait for each other."""
    tally = Tally()
    session = Session(kernel, launch, limits, tally=tally, watch=watch)
    try:
        session.run(range(launch.blocks), whole=True)
    except EmulationLimitError:
        return None
    return _ended(session, tally) if session.budget.warp_steps <= most else None


def _ended(session: Session, tally: Tally) -> WholeRun:
    launched = tuple(sorted(session.memory.launched, key=lambda one: one.tail))
    return WholeRun(session.memory, session.budget.warp_steps, tally.digest(), "".join(tally.prints), launched)
