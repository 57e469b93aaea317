"""The effect of λ, Λ and occupancy on a launch's time, estimated within milliseconds on a small stand-in.

The stand-in is the same code with fewer loop iterations and two waves of blocks. Only ratios of its times are
meaningful.
"""

from __future__ import annotations

from ...models.pipeline import limiter, utilization
from ...pipeline.blocks import share_of
from ...pipeline.extrapolate import StandIn, instructions
from ...workload.cost import CostedWorkload

WAVES = 2
"""Simulated waves of blocks."""
BUDGET = 40_000
"""Target number of warp instructions of the stand-in at the highest occupancy."""
ALIKE = 0.01
"""How far the mix of loops of one shortened run may be from the launch's: a slider may multiply it by 20."""


class SmallLaunch:
    """The stand-in of one kernel."""

    def __init__(self, costed: CostedWorkload) -> None:
        share = share_of(costed, costed.max_blocks_per_sm)
        self._whole = instructions(costed, share.blocks) <= BUDGET  # small enough to be its own stand-in
        total = instructions(costed, min(share.blocks, WAVES * costed.max_blocks_per_sm))
        self._iterations = StandIn(costed, 1.0 if self._whole else BUDGET / max(1, total), ALIKE)
        self._usual = self._cycles(costed)[0]

    def ratio(self, changed: CostedWorkload) -> tuple[float, str]:
        """The time of the changed workload relative to the original kernel, and its limiter."""
        cycles, found = self._cycles(changed)
        return (cycles / self._usual if self._usual else 1.0), found

    def _cycles(self, costed: CostedWorkload) -> tuple[float, str]:
        """Cycles of one SM's whole share, assuming similar waves, and the limiter."""
        whole = share_of(costed, costed.blocks_per_sm)
        share = whole
        if not self._whole and whole.blocks > WAVES * whole.resident:
            share = whole.shortened(WAVES * whole.resident + whole.blocks % whole.resident)
        result = self._iterations.trial(costed).run(share)
        waves = -(-whole.blocks // whole.resident), -(-share.blocks // share.resident)
        return result.cycles * waves[0] / waves[1], limiter(utilization(costed, result))
