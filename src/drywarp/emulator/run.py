"""`emulate`: run sampled blocks of a launch and hand back the profile and the buffers."""

from __future__ import annotations

from ..errors import StarvationError, UsageError
from ..kernel.kernel import Kernel
from ..kernel.launch import Launch
from .grid_barrier import check_whole_grid, fits_at_once, uses_grid_barrier
from .limits import Limits
from .sampling import Blocks, sample_blocks
from .session import Emulation, Session
from .survey import survey

DEFAULT_LIMITS = Limits()


def emulate(
    kernel: Kernel,
    launch: Launch,
    *,
    blocks: Blocks = None,
    confidence: float | None = None,
    limits: Limits = DEFAULT_LIMITS,
    compiled: bool = True,
) -> Emulation:
    """Run a kernel's machine code on the CPU, for some blocks of the grid.

    `blocks` None takes a sample: a stratified one, which is refined as long as it needs to be (see `survey`);
    a number about so many, a list those linear indices, "all" the whole grid. `confidence` is the half-width,
    relative to the total, that the 95 % confidence interval of the number of instructions is to reach where
    blocks differ at random; None settles for less where that takes many blocks, 0 runs them all. Blocks run
    side by side in waves and share device memory; `compiled` false runs all of it in NumPy.

    Raises EmulationError for a faulty access, a deadlock or a trap, UnsupportedInstructionError for
    an instruction that is not supported, EmulationLimitError past `limits`, UsageError where the
    launch does not fit the kernel.
    """
    if confidence is not None and not 0 <= confidence < 1:
        raise UsageError(f"confidence {confidence:g}: expected a fraction from 0 up to 1")
    if uses_grid_barrier(kernel):
        check_whole_grid(kernel, launch)
        return _whole_grid(kernel, launch, limits, compiled)
    surveys = blocks is None and confidence != 0
    try:
        session = Session(kernel, launch, limits, compiled)
        return survey(session, confidence) if surveys else _chosen(session, "all" if blocks is None else blocks)
    except StarvationError:
        if fits_at_once(launch):
            return _whole_grid(kernel, launch, limits, compiled)
        if not surveys:
            raise
        # What a block waits for, one beside it may do.
        return survey(Session(kernel, launch, limits, compiled), confidence, together=True)


def _chosen(session: Session, blocks: Blocks) -> Emulation:
    """The blocks that the caller wants, no fewer and no others."""
    weights = dict(sample_blocks(session.launch.grid, blocks))
    session.run(list(weights))
    if len(weights) == session.launch.blocks:
        return session.finish(weights, "all", 0.0)
    return session.finish(weights, "chosen")


def _whole_grid(kernel: Kernel, launch: Launch, limits: Limits, compiled: bool) -> Emulation:
    """All blocks side by side, for those that wait for each other."""
    session = Session(kernel, launch, limits, compiled)
    weights = dict(sample_blocks(launch.grid, "all"))
    session.run(list(weights), whole=True)
    return session.finish(weights, "all", 0.0)
