"""The papers' formulas, fitted to points. First: λ and Λ of one instruction class from a dependent chain.

Lemeire, Cornelis and Segers, "Microbenchmarks for GPU characteristics: the occupancy roofline and the pipeline
model" (PDP 2016), and Lemeire, Cornelis and Konstantinidis, §4.3: n warps that each run a chain of one class take
T(n) = max(Λ, n·λ) cycles for one instruction of each warp. The cusp is at n = Λ / λ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .result import Estimate, mean


@dataclass(frozen=True, slots=True)
class BoatHull:
    """Λ in cycles and λ in cycles per warp instruction of the SM; None if the points do not reach that part."""

    latency: Estimate | None
    lambda_: Estimate | None

    def at(self, warps: float) -> float:
        """T(n)."""
        flat = self.latency.value if self.latency else 0.0
        return max(flat, warps * self.lambda_.value if self.lambda_ else 0.0)


def fit_boat_hull(warps: Sequence[float], cycles: Sequence[Estimate]) -> BoatHull:
    """Fit T(n) = max(Λ, n·λ) to points in ascending order of n, by least squares of relative errors.

    Every split of the points into a flat and a rising part is tried. A rising part of a single point is accepted only
    if it is clearly (5 %) above the flat one.
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


# Latency under load: Volkov, "Understanding latency hiding on GPUs", §6.4.
#
# Mean memory latency at throughput x is a + b · x / (c − x): a is the unloaded latency, c the peak throughput, and b
# determines how quickly the latency rises.


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
    """The a, b and c that minimize squared relative errors; for each candidate c, a and b ≥ 0 follow linearly.

    `throughput` in GB/s, `latency` in cycles; needs at least three points.
    """
    x, y = np.asarray(throughput, float), np.asarray(latency, float)
    least, best = np.inf, Contention(0.0, 0.0, 0.0, 0.0)
    low, high = float(x.max()) * (1 + 1e-6), float(x.max()) * 2
    for _ in range(3):  # refine between the neighbours of the best
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


# One pipe, two pipes, or two pipes behind an issue limit: the instruction mix.
#
# Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs and extracting the
# underlying Pipeline model", §4.2, Eq. 43 to 45: β instructions with λ_1 and one with λ_2, repeated, at full occupancy.
# Here in cycles per round of one SM, instead of the IPC of the first kind.


def one_subsystem(beta: float, lambda_1: float, lambda_2: float) -> float:
    """Eq. 43: both kinds share a pipe."""
    return beta * lambda_1 + lambda_2


def two_subsystems(beta: float, lambda_1: float, lambda_2: float) -> float:
    """Eq. 44: one pipe each, no issue limit."""
    return max(beta * lambda_1, lambda_2)


def two_with_issue_limit(beta: float, lambda_1: float, lambda_2: float, issue_limit: float) -> float:
    """Eq. 45: one pipe each, and at most `issue_limit` instructions per cycle of both kinds together."""
    return max(beta * lambda_1, lambda_2, (beta + 1) / issue_limit)


def best_model(
    betas: Sequence[float], cycles: Sequence[float], lambda_1: float, lambda_2: float, issue_limit: float
) -> tuple[str, dict[str, float]]:
    """The name of the equation closest to the measured cycles per round, and each equation's mean relative error.

    If two are equally close (the mix does not reach the issue limit), the simpler one is chosen.
    """
    models = {
        "one subsystem": [one_subsystem(b, lambda_1, lambda_2) for b in betas],
        "two subsystems": [two_subsystems(b, lambda_1, lambda_2) for b in betas],
        "two subsystems with issue limit": [two_with_issue_limit(b, lambda_1, lambda_2, issue_limit) for b in betas],
    }
    errors = {
        name: sum(abs(p / c - 1) for p, c in zip(predicted, cycles, strict=True)) / len(betas)
        for name, predicted in models.items()
    }
    least = min(errors.values())
    return next(name for name in models if errors[name] <= least + 0.002), errors


# The capacity of a cache from the time of repeated walks over footprints of different size.
#
# Inside the cache a pass takes t0 + h·F. Beyond its capacity C it takes longer, in one of two ways: only what does not
# fit misses (t0 + h·F + m·(F − C)), or everything misses, as with LRU (t0 + (h + m)·F).

CLEAR = 0.1
"""A rise below this fraction of the time inside does not count as the capacity limit."""
FINER = 64
"""Candidate capacities between two footprints."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """`capacity` in the footprints' unit, None if the points show no limit; the others as in the formulas above."""

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
    """The least relative squares fit to at least five ascending footprints; at least two remain on either side."""
    x, y = np.asarray(footprints, float), np.asarray([t.value for t in times])
    best, least = _solved(x, y, None, False)
    simple, found = best, best
    for keeps in (True, False):
        for low, high in pairwise(x[1:-1]):
            # If everything misses, the points only show between which two of them the limit is.
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
    # The effect of a pass's relative noise on the position of the cusp.
    noise = float(np.sqrt(least / max(1, len(x) - 4))) * plain / found.more
    return Capacity(Estimate(found.capacity.value, noise), found.overhead, found.inside, found.more, True)


def _solved(
    x: np.ndarray[tuple[int], np.dtype[np.float64]],
    y: np.ndarray[tuple[int], np.dtype[np.float64]],
    capacity: Estimate | None,
    keeps: bool,
) -> tuple[Capacity, float]:
    """Overhead, slope and additional slope for one capacity, and the sum of squared relative errors."""
    columns = [np.ones_like(x), x]
    if capacity:
        beyond = x > capacity.value
        columns.append(np.where(beyond, x - capacity.value if keeps else x, 0.0))
    rows = np.stack(columns, axis=1)
    found = np.linalg.lstsq(rows / y[:, None], np.ones_like(y), rcond=None)[0]
    error = float(((rows @ found / y - 1) ** 2).sum())
    more = float(found[2]) if capacity else 0.0
    return Capacity(capacity, float(found[0]), float(found[1]), more, keeps), error


# The number of distinct places that random draws reach.


def distinct(draws: float, places: float) -> float:
    """The expected number of distinct places in `draws` uniformly random draws from `places` places."""
    if places <= 1:
        return min(draws, places)
    return -places * math.expm1(draws * math.log1p(-1 / places))


# A straight line through points with individual spreads.


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope · x."""

    intercept: Estimate
    slope: Estimate

    def at(self, x: float) -> float:
        """y at x."""
        return self.intercept.value + self.slope.value * x


def fit_line(xs: Sequence[float], ys: Sequence[Estimate]) -> Line:
    """The least squares line, with each point weighted by its relative noise: 1/y²."""
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


# Curves with steps: where a footprint exceeds a cache, values of two kinds, and when more warps stop helping.


def plateaus(xs: Sequence[float], ys: Sequence[float], tolerance: float = 0.08) -> list[tuple[float, float, float]]:
    """Runs of at least two adjacent points within `tolerance` of their mean: first x, last x, mean y."""
    found: list[tuple[float, float, float]] = []
    start = 0
    for end in range(1, len(ys) + 1):
        part = ys[start:end]
        level = sum(part) / len(part)
        if end < len(ys) and abs(ys[end] / level - 1) <= tolerance:
            continue
        if end - start >= 2:
            found.append((xs[start], xs[end - 1], level))
        start = end
    return found


def two_kinds(values: Sequence[float], gap: float = 0.05) -> tuple[float, float]:
    """The means of a lower and an upper group, split at the widest gap; both are the overall mean without a gap.

    `gap` is relative to the overall mean. L2 latencies of a GPU with two L2 partitions form two groups.
    """
    ordered = sorted(values)
    middle = sum(ordered) / len(ordered)
    widest = max(range(1, len(ordered)), key=lambda i: ordered[i] - ordered[i - 1], default=0)
    if not widest or ordered[widest] - ordered[widest - 1] < gap * middle:
        return middle, middle
    low, high = ordered[:widest], ordered[widest:]
    return sum(low) / len(low), sum(high) / len(high)


def in_flight(throughput: Sequence[float], latency: Sequence[float]) -> list[float]:
    """Little's law: accesses in flight at each point, from throughput (accesses per cycle) and latency (cycles)."""
    return [x * y for x, y in zip(throughput, latency, strict=True)]


def limit_of(asked: Sequence[float], reached: Sequence[float], tolerance: float = 0.05) -> float | None:
    """The number in flight that is not exceeded however many are requested; None if it keeps rising.

    There is a limit if the last three points reach the same number, and the last requests at least twice as many as the
    first of them.
    """
    tail = list(zip(asked, reached, strict=True))[-3:]
    if len(tail) < 3 or tail[-1][0] < 2 * tail[0][0]:
        return None
    level = sum(y for _, y in tail) / 3
    if all(abs(y / level - 1) <= tolerance for _, y in tail) and level < tail[0][0] * (1 - tolerance):
        return level
    return None
