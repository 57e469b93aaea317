"""A grid's total work estimated from a sample.

The stratified estimator of a total with the finite population correction, its degrees of freedom by
Satterthwaite's approximation, and Student's t (Cochran, Sampling Techniques, 3rd edition, §5.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
"""Probability with which an interval should contain the true total."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


_LARGE = 1e6
"""Degrees of freedom above which t is treated as normal."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate of a total, and the half-width of its confidence interval."""

    total: float
    half: float

    @property
    def relative(self) -> float:
        """The half-width, relative to the estimate."""
        return self.half / self.total if self.total else 0.0


def estimate(strata: Sequence[tuple[int, Sequence[float]]], confidence: float = CONFIDENCE) -> Interval:
    """The total over all strata, each given by its size and the values of a random sample of its members.

    Every stratum needs two values, or all of them. Raises ValueError where there are fewer.
    """
    total = variance = spread = 0.0
    for size, values in strata:
        count = len(values)
        if count == 0 or (count < 2 and count < size):
            raise ValueError(f"{count} values of a stratum of {size}: expected two, or all")
        total += size * float(np.mean(values))
        if count < size:
            part = size * (size - count) / count * float(np.var(values, ddof=1))
            variance += part
            spread += part * part / (count - 1)
    if variance == 0:
        return Interval(total, 0.0)
    freedom = variance * variance / spread
    return Interval(total, quantile(confidence, freedom) * math.sqrt(variance))


def quantile(confidence: float, freedom: float) -> float:
    """The number below which |t| stays with this probability, for Student's distribution."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: float) -> float:
    """The probability that |t| stays below a number.

    With t = sqrt(freedom) tan(angle) the density is a power of a cosine, which is integrated by Gaussian quadrature.
    """
    if freedom > _LARGE:
        return math.erf(t / math.sqrt(2))
    angle = math.atan(t / math.sqrt(freedom))
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(math.pi)
    # Far from the centre the density is negligible: integrate only as far as the cosine's power is visible.
    end = min(angle, 12 / math.sqrt(freedom + 1))
    points = (_NODES + 1) * end / 2
    values = np.exp((freedom - 1) * np.log(np.cos(points)))
    return float(2 * math.exp(log_scale) * end / 2 * (_WEIGHTS @ values))
