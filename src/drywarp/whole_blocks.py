"""Emulating whole waves of blocks for their addresses, in what time the sample has left."""

from __future__ import annotations

from time import perf_counter

from .emulator.limits import Limits
from .errors import EmulationLimitError
from .kernel.profile import Profile

WAVE_WARP_STEPS, WAVE_ACCESSES = 20_000_000, 6_000_000
"""Warp instructions and accesses that one whole wave may take: a few seconds, and a few hundred MB."""
SHARE = 0.4
"""Part of the time limit that all waves together may take, working out what they touch included."""


class WholeBlocks:
    """Runs ranges of blocks of the launch of a profile; None where that would take too long.

    `spent` is what the profile itself took of the time limit, in seconds. The time runs from the first call.
    """

    def __init__(self, seen: Profile, limits: Limits, spent: float) -> None:
        self._seen, self._limits = seen, limits
        self._seconds = min(limits.seconds - spent, SHARE * limits.seconds)
        self._began: float | None = None
        self._between = 0.0

    def __call__(self, part: range) -> Profile | None:
        """The profile of all blocks of a range; None where there is no time for it."""
        seen, now = self._seen, perf_counter()
        blocks = len(part) / len(seen.blocks)
        if seen.steps * blocks > WAVE_WARP_STEPS or len(seen.accesses) * blocks > WAVE_ACCESSES:
            return None
        if self._began is None:
            self._began = self._last = now
        # The next wave will take about as long as the last one did, until somebody asked again.
        self._between, self._last = now - self._last, now
        left = self._began + self._seconds - now
        if left <= self._between:
            return None
        from .emulator import emulate  # here, because loading it takes longer than an answer that is kept

        limits = Limits(seconds=left, lane_steps=self._limits.lane_steps)
        try:
            return emulate(seen.kernel, seen.launch, blocks=list(part), limits=limits).profile
        except EmulationLimitError:
            return None
