"""λ and Λ of one instruction class from a dependent chain over occupancies.

Lemeire, Cornelis and Segers, "Microbenchmarks for GPU characteristics: the occupancy roofline and the pipeline
model" (PDP 2016), and Lemeire, Cornelis and Konstantinidis, §4.3: n warps that each run a chain of one class take
T(n) = max(Λ, n·λ) cycles for an instruction of each of them. The bend lies at n = Λ / λ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..estimate import Estimate, mean


@dataclass(frozen=True, slots=True)
class BoatHull:
    """Λ in cycles and λ in cycles per warp instruction of the SM; None where the points do not reach that part."""

    latency: Estimate | None
    lambda_: Estimate | None

    def at(self, warps: float) -> float:
        """T(n)."""
        flat = self.latency.value if self.latency else 0.0
        return max(flat, warps * self.lambda_.value if self.lambda_ else 0.0)


def fit_boat_hull(warps: Sequence[float], cycles: Sequence[Estimate]) -> BoatHull:
    """Fit T(n) = max(Λ, n·λ) to points in ascending order of n, by the least squares of relative errors.

    Every split of the points into a flat and a rising part is tried. A rising part of a single point is taken only
    where it lies clearly (5 %) above the flat one.
    """
    best, least = BoatHull(None, None), math.inf
    for split in range(len(warps) + 1):
        flat = mean(cycles[:split]) if split else None
        rising = [c / n for n, c in zip(warps[split:], cycles[split:], strict=True)]
        slope = mean(rising) if rising else None
        hull = BoatHull(flat, slope)
        if flat and len(rising) == 1 and cycles[split].value < 1.05 * flat.value:
            continue
        error = sum((hull.at(n) / c.value - 1) ** 2 for n, c in zip(warps, cycles, strict=True))
        if error < least - 1e-15:
            best, least = hull, error
    return best
