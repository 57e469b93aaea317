"""Latency under load: Volkov, "Understanding latency hiding on GPUs", §6.4.

Mean memory latency at throughput x is a + b · x / (c − x): a is the latency without load, c the peak throughput, b how
quickly the latency rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Contention:
    """a and b in cycles, c in GB/s, and the mean relative error of the fit."""

    a: float
    b: float
    c: float
    error: float

    def at(self, x: float) -> float:
        """Latency in cycles at a throughput in GB/s below c."""
        return self.a + self.b * x / (self.c - x)


def fit_contention(throughput: Sequence[float], latency: Sequence[float]) -> Contention:
    """The a, b and c of least squares of relative errors; for each c tried, a and b follow linearly, b from 0 on.

    `throughput` in GB/s, `latency` in cycles; three points at least.
    """
    x, y = np.asarray(throughput, float), np.asarray(latency, float)
    least, best = np.inf, Contention(0.0, 0.0, 0.0, 0.0)
    low, high = float(x.max()) * (1 + 1e-6), float(x.max()) * 2
    for _ in range(3):  # ever finer between the neighbours of the best
        tried = np.geomspace(low - x.max(), high - x.max(), 200) + x.max()
        for c in tried:
            rise = x / (c - x)
            rows = np.stack([1 / y, rise / y], axis=1)
            a, b = np.linalg.lstsq(rows, np.ones(len(y)), rcond=None)[0]
            if b < 0:
                a, b = float((1 / y).sum() / (1 / y**2).sum()), 0.0
            relative = (a + b * rise) / y - 1
            error = float((relative**2).sum())
            if error < least:
                least, best = error, Contention(float(a), float(b), float(c), float(np.abs(relative).mean()))
        at = int(np.argmin(np.abs(tried - best.c)))
        low, high = float(tried[max(0, at - 1)]), float(tried[min(len(tried) - 1, at + 1)])
    return best
