"""How a change of λ, Λ or occupancy changes a launch's time, in milliseconds: tried on a small stand-in of it.

The same code with fewer turns of its loops and two waves of blocks. Only the ratio of two of its times means anything.
"""

from __future__ import annotations

from ..bound import BoundWorkload
from ..models.pipeline import limiter, utilization
from ..pipeline.blocks import share_of
from ..pipeline.extrapolate import instructions, shorten, simulate

WAVES = 2
"""Waves of blocks that are simulated."""

BUDGET = 40_000
"""Warp instructions that the stand-in is to have at the highest occupancy."""

FEWEST_TURNS = 3
"""Turns that a loop keeps at least."""


class StandIn:
    """The stand-in of one bound kernel."""

    def __init__(self, bound: BoundWorkload) -> None:
        share = share_of(bound, bound.max_blocks_per_sm)
        self._whole = instructions(bound, share.blocks) <= BUDGET  # then it stands for itself
        total = instructions(bound, min(share.blocks, WAVES * bound.max_blocks_per_sm))
        # Turns left out of one warp's loop would be missed by another's that waits for it.
        self._scale = 1.0 if bound.synchronises or self._whole else min(1.0, BUDGET / max(1, total))
        self._usual = self._cycles(bound)[0]

    def ratio(self, changed: BoundWorkload) -> tuple[float, str]:
        """The time of the changed workload over that of the kernel as it is, and what limits it."""
        cycles, found = self._cycles(changed)
        return (cycles / self._usual if self._usual else 1.0), found

    def _cycles(self, bound: BoundWorkload) -> tuple[float, str]:
        """Cycles of the whole share, as far as waves are alike, and the limiter."""
        whole = share_of(bound, bound.blocks_per_sm)
        share = whole
        if not self._whole and whole.blocks > WAVES * whole.resident:
            share = whole.shortened(WAVES * whole.resident + whole.blocks % whole.resident)
        small = shorten(bound, self._scale, FEWEST_TURNS) if self._scale < 1 else bound
        result = simulate(small, share, stalls=False)
        waves = -(-whole.blocks // whole.resident), -(-share.blocks // share.resident)
        return result.cycles * waves[0] / waves[1], limiter(utilization(small, result))
