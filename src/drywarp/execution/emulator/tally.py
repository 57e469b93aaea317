"""What recorders have recorded, counted, for runs that need no more than that of it."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from .apart import Strand
from .compiled.layout import LANE_STEPS, PATTERNS, STEPS, WARP_STEPS
from .recorder import Recorder

_MOST_KINDS = 1 << 22
"""Pairs of an instruction and a lane pattern that are told apart; of more, only instructions are counted."""


class Tally:
    """Counts what recorders have recorded, and empties them."""

    def __init__(self) -> None:
        self._steps: dict[Recorder, npt.NDArray[np.int64]] = {}
        self._accesses: dict[Recorder, npt.NDArray[np.int64]] = {}
        self.prints: list[str] = []
        """What the kernel has printed, in the order of its blocks."""

    def clear(self) -> None:
        """Forget everything."""
        self._steps.clear()
        self._accesses.clear()
        self.prints.clear()

    def take(self, strand: Strand) -> None:
        """Count a record and what was printed, and empty both; the numbers of the record's lane patterns remain."""
        recorder = strand.recorder
        if strand.prints:
            self.prints += strand.prints
            strand.prints.clear()
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
        recorder.back_to((0, 0, 0, {}, 0))
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
