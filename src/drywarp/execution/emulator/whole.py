"""Whole launches for what they compute: every block runs, and of the record only counts remain."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import StarvationError
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Launch
from ...support.folders import thread_count
from .apart import PARTS
from .compiled.layout import LANE_STEPS, PATTERNS, STEPS, WARP_STEPS
from .constants import check_whole_grid, fits_at_once, uses_grid_barrier
from .memory import DeviceMemory
from .recorder import Recorder
from .sampling import Limits
from .session import WAVE_WARPS, Session

_UNLIMITED = 1 << 62
_WAVES_A_PART = 4
"""Waves of a part between two looks at the record: it stays small, and threads rarely wait for each other."""
_MOST_KINDS = 1 << 22
"""Pairs of an instruction and a lane pattern that are told apart; of more, only instructions are counted."""


@dataclass(frozen=True)
class WholeRun:
    """A launch that was run to its end: the device memory that it leaves, and what it did.

    `digest` stands for how often each basic block ran and each instruction accessed memory with each lane pattern,
    wherever the buffers lie: launches with the same one take the same time but for the caches' content.
    """

    memory: DeviceMemory
    warp_instructions: int
    digest: str


def run_whole(kernel: Kernel, launch: Launch, most: int) -> WholeRun | None:
    """Run every block of a launch; None if that takes more than `most` warp instructions.

    Raises EmulationError for a faulty access, a deadlock or a trap, UnsupportedInstructionError for an unsupported
    instruction, UsageError if the launch does not fit the kernel.
    """
    limits = Limits(lane_steps=_UNLIMITED, accesses=_UNLIMITED)
    if uses_grid_barrier(kernel):
        check_whole_grid(kernel, launch)
        return _at_once(kernel, launch, limits, most)
    tally = Tally()
    session = Session(kernel, launch, limits, tally=tally)
    size = max(WAVE_WARPS // launch.warps_per_block, 1) * PARTS * thread_count() * _WAVES_A_PART
    try:
        for first in range(0, launch.blocks, size):
            session.run(range(first, min(first + size, launch.blocks)))
            if session.budget.warp_steps > most:
                return None
    except StarvationError:
        if not fits_at_once(launch):
            raise
        return _at_once(kernel, launch, limits, most)
    return WholeRun(session.memory, session.budget.warp_steps, tally.digest())


def _at_once(kernel: Kernel, launch: Launch, limits: Limits, most: int) -> WholeRun | None:
    """All blocks concurrently, for those that wait for each other."""
    tally = Tally()
    session = Session(kernel, launch, limits, tally=tally)
    session.run(range(launch.blocks), whole=True)
    steps = session.budget.warp_steps
    return WholeRun(session.memory, steps, tally.digest()) if steps <= most else None


class Tally:
    """Counts what recorders have recorded, and empties them."""

    def __init__(self) -> None:
        self._steps: dict[Recorder, npt.NDArray[np.int64]] = {}
        self._accesses: dict[Recorder, npt.NDArray[np.int64]] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._steps.clear()
        self._accesses.clear()

    def take(self, recorder: Recorder) -> None:
        """Count a record and empty it; the numbers of its lane patterns remain."""
        log, state = recorder.log, recorder.state
        steps, accesses = log.step_block[: int(state[STEPS])], log.instruction[: recorder.accesses]
        lanes = np.bincount(steps, log.step_lanes[: len(steps)])
        counts = np.concatenate([np.bincount(steps), lanes.astype(np.int64)]).reshape(2, -1)
        _add(self._steps, recorder, counts)
        patterns = int(state[PATTERNS])
        kinds = accesses.astype(np.int64)
        if (int(kinds.max(initial=0)) + 1) * patterns <= _MOST_KINDS and patterns:
            seen = np.bincount(log.pattern[: len(kinds)] + kinds * patterns)
            padded = np.zeros(-(-len(seen) // patterns) * patterns, np.int64)
            padded[: len(seen)] = seen
            _add(self._accesses, recorder, padded.reshape(-1, patterns))
        else:
            _add(self._accesses, recorder, np.bincount(kinds).reshape(-1, 1))
        recorder.back_to((0, 0, 0))
        state[[WARP_STEPS, LANE_STEPS]] = 0

    def digest(self) -> str:
        """A digest of all counts, which does not depend on how the blocks were spread over recorders."""
        steps: npt.NDArray[np.int64] = np.zeros((2, 0), np.int64)
        for counted in self._steps.values():
            steps = _sum(steps, counted)
        accesses: dict[tuple[int, bytes], int] = {}
        for recorder, seen in self._accesses.items():
            offsets, masks = recorder.log.offsets.reshape(-1, 32), recorder.log.masks
            for instruction, pattern in np.argwhere(seen).tolist():
                kind = offsets[pattern].tobytes() + masks[pattern].tobytes() if seen.shape[1] > 1 else b""
                accesses[instruction, kind] = accesses.get((instruction, kind), 0) + int(seen[instruction, pattern])
        found = hashlib.sha256(steps.tobytes())
        for (instruction, kind), count in sorted(accesses.items()):
            found.update(f"{instruction} {count} ".encode() + kind)
        return found.hexdigest()


def _add(sums: dict[Recorder, npt.NDArray[np.int64]], recorder: Recorder, counts: npt.NDArray[np.int64]) -> None:
    sums[recorder] = _sum(sums[recorder], counts) if recorder in sums else counts


def _sum(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The sum of two tables, each of which may have rows and columns that the other lacks."""
    rows, columns = max(one.shape[0], other.shape[0]), max(one.shape[1], other.shape[1])
    total = np.zeros((rows, columns), np.int64)
    total[: one.shape[0], : one.shape[1]] += one
    total[: other.shape[0], : other.shape[1]] += other
    return total
