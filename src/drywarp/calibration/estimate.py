"""A number with its spread, and what becomes of that in sums and quotients of independent ones."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MEDIAN_OVER_MEAN = 1.2533
"""How much wider a median of normal noise is spread than a mean: √(π/2)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and one standard deviation of it, in the value's unit."""

    value: float
    spread: float = 0.0

    @classmethod
    def of(cls, samples: Sequence[float]) -> Estimate:
        """The median of repeated measurements, robust against single slow ones."""
        middle = statistics.median(samples)
        if len(samples) < 2:
            return cls(middle, 0.0)
        # The median distance from the median, as a normal distribution's deviation.
        deviation = 1.4826 * statistics.median(abs(s - middle) for s in samples)
        return cls(middle, MEDIAN_OVER_MEAN * deviation / math.sqrt(len(samples)))

    def __add__(self, other: Estimate | float) -> Estimate:
        if isinstance(other, Estimate):
            return Estimate(self.value + other.value, math.hypot(self.spread, other.spread))
        return Estimate(self.value + other, self.spread)

    def __sub__(self, other: Estimate | float) -> Estimate:
        return self + (other * -1.0)

    def __mul__(self, factor: float) -> Estimate:
        return Estimate(self.value * factor, abs(self.spread * factor))

    def __truediv__(self, factor: float) -> Estimate:
        return self * (1 / factor)

    def into(self, numerator: float) -> Estimate:
        """`numerator` divided by this."""
        value = numerator / self.value
        return Estimate(value, abs(value * self.spread / self.value))


def mean(parts: Sequence[Estimate]) -> Estimate:
    """The mean of estimates; its spread is the larger of what they state and of how far they lie apart."""
    count = len(parts)
    value = sum(part.value for part in parts) / count
    stated = math.sqrt(sum(part.spread**2 for part in parts)) / count
    apart = statistics.stdev([part.value for part in parts]) / math.sqrt(count) if count > 1 else 0.0
    return Estimate(value, max(stated, apart))
