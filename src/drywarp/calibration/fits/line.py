"""A straight line through points, each with a spread of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..estimate import Estimate


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope · x."""

    intercept: Estimate
    slope: Estimate

    def at(self, x: float) -> float:
        """y at x."""
        return self.intercept.value + self.slope.value * x


def fit_line(xs: Sequence[float], ys: Sequence[Estimate]) -> Line:
    """The line of least squares, each point weighted by its relative noise: 1/y²."""
    weights = [1 / y.value**2 for y in ys]
    total = sum(weights)
    middle = sum(w * x for w, x in zip(weights, xs, strict=True)) / total
    height = sum(w * y.value for w, y in zip(weights, ys, strict=True)) / total
    width = sum(w * (x - middle) ** 2 for w, x in zip(weights, xs, strict=True))
    slope = sum(w * (x - middle) * y.value for w, x, y in zip(weights, xs, ys, strict=True)) / width
    left = [y.value - height - slope * (x - middle) for x, y in zip(xs, ys, strict=True)]
    stated = sum((y.spread / y.value) ** 2 for y in ys) / len(ys)
    free = max(1, len(xs) - 2)
    noise = max(stated, sum(w * r * r for w, r in zip(weights, left, strict=True)) / free)
    slope_spread = math.sqrt(noise / width)
    at_zero = math.sqrt(noise / total + noise * middle**2 / width)
    return Line(Estimate(height - slope * middle, at_zero), Estimate(slope, slope_spread))
