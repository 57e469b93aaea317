"""Where a cache ends: time of a walk over a footprint, again and again, over the footprint.

Inside the cache a pass takes t0 + h·F. Beyond its capacity C it takes longer, in one of two ways: what does not fit is
missed and the rest is kept (t0 + h·F + m·(F − C)), or nothing is kept, as with LRU (t0 + (h + m)·F).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..estimate import Estimate

CLEAR = 0.1
"""A rise by less than this part of the time inside is no end."""
FINER = 64
"""Capacities that are tried between two footprints."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """`capacity` in the footprints' unit, None where the points show no end; the others as in the module's formulas."""

    capacity: Estimate | None
    overhead: float
    inside: float
    more: float
    keeps: bool

    def at(self, footprint: float) -> float:
        """Time of a pass."""
        beyond = 0.0
        if self.capacity and footprint > self.capacity.value:
            beyond = footprint - self.capacity.value if self.keeps else footprint
        return self.overhead + self.inside * footprint + self.more * beyond


def fit_capacity(footprints: Sequence[float], times: Sequence[Estimate]) -> Capacity:
    """The fit of least relative squares, of ascending footprints, five at least; two of them stay on either side."""
    x, y = np.asarray(footprints, float), np.asarray([t.value for t in times])
    best, least = _solved(x, y, None, False)
    simple, found = best, best
    for keeps in (True, False):
        for low, high in pairwise(x[1:-1]):
            # Where nothing is kept, the points tell no more than between which two of them the end lies.
            tried = np.linspace(low, high, FINER, endpoint=False) if keeps else [(low + high) / 2]
            for capacity in tried:
                fit, error = _solved(x, y, Estimate(float(capacity), float(high - low) / 2), keeps)
                if error < least and fit.more > 0:
                    found, least = fit, error
    top = float(x[-1])
    plain = found.overhead + found.inside * top
    if found.capacity is None or found.at(top) < (1 + CLEAR) * plain:
        return simple
    if not found.keeps:
        return found
    # What the relative noise of a pass does to the place of the bend.
    noise = float(np.sqrt(least / max(1, len(x) - 4))) * plain / found.more
    return Capacity(Estimate(found.capacity.value, noise), found.overhead, found.inside, found.more, True)


def _solved(
    x: np.ndarray[tuple[int], np.dtype[np.float64]],
    y: np.ndarray[tuple[int], np.dtype[np.float64]],
    capacity: Estimate | None,
    keeps: bool,
) -> tuple[Capacity, float]:
    """Overhead, slope and further slope for one capacity, and the sum of squared relative errors."""
    columns = [np.ones_like(x), x]
    if capacity:
        beyond = x > capacity.value
        columns.append(np.where(beyond, x - capacity.value if keeps else x, 0.0))
    rows = np.stack(columns, axis=1)
    found = np.linalg.lstsq(rows / y[:, None], np.ones_like(y), rcond=None)[0]
    error = float(((rows @ found / y - 1) ** 2).sum())
    more = float(found[2]) if capacity else 0.0
    return Capacity(capacity, float(found[0]), float(found[1]), more, keeps), error
