"""Running further blocks of a launch for their addresses, within limits that are counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .emulator.limits import Limits
from .errors import EmulationLimitError
from .kernel.cfg import ControlFlowGraph, Loop
from .kernel.profile import SPACE_GLOBAL, Profile
from .memory.followed import Look

if TYPE_CHECKING:
    from .emulator.skim import Skim

MOST_ACCESSES = 20_000_000
"""Accesses to global memory of all blocks together: some hundred MB."""
MOST_WARP_STEPS = 40_000_000
"""Warp instructions of all blocks that have to be run in full: a few seconds."""
LANE_STEPS = 10_000_000_000
"""Instructions times lanes of one wave that is run for its addresses, those that are left out counted: seconds."""


class WholeBlocks:
    """Runs blocks of the launch of a profile; None where that would pass a limit."""

    def __init__(self, seen: Profile, limits: Limits) -> None:
        self._seen, self._limits = seen, limits
        self._steps: float = MOST_WARP_STEPS
        self._accesses: float = MOST_ACCESSES
        self._addresses: Skim | None = None

    def __call__(self, blocks: Sequence[int]) -> Profile | None:
        """The accesses to global memory of some blocks, given as linear indices."""
        seen = self._seen
        share = len(blocks) / len(seen.blocks)
        self._accesses -= int((seen.accesses.space == SPACE_GLOBAL).sum()) * share
        if self._accesses < 0:
            return None
        if self._addresses is None:
            self._addresses = self._skim()
        found = self._addresses(blocks)
        return found if found is not None else self._in_full(blocks, seen.steps * share)

    def _in_full(self, blocks: Sequence[int], steps: float) -> Profile | None:
        """For kernels of which it is not clear what may be left out."""
        self._steps -= steps
        if self._steps < 0:
            return None
        from .emulator import emulate  # here, because loading it takes longer than an answer that is kept

        try:
            return emulate(self._seen.kernel, self._seen.launch, blocks=list(blocks), limits=self._limits).profile
        except EmulationLimitError:
            return None

    def briefly(self) -> Iterator[Look]:
        """Ways to look at blocks, the cheapest first: every loop run once, those in others, those in those."""
        cfg = self._seen.cfg
        deepest = max((_depth(cfg, loop) for loop in cfg.loops), default=0)
        for level in range(deepest + 1):
            yield self._skim([loop for loop in cfg.loops if _depth(cfg, loop) >= level])

    def _skim(self, once: Sequence[Loop] = ()) -> Skim:
        from .emulator.skim import Skim

        seen = self._seen
        return Skim(seen.kernel, seen.launch, seen.cfg, Limits(lane_steps=LANE_STEPS), once)


def _depth(cfg: ControlFlowGraph, loop: Loop) -> int:
    depth = 0
    while loop.parent is not None:
        loop, depth = cfg.loops[loop.parent], depth + 1
    return depth
