"""Error statistics of predictions against measurements: pure functions over arrays of equal length.

`predicted` and `measured` are times in seconds (or any positive quantity), one entry per configuration. Errors are
relative: 0.2 is 20 %. All raise ValueError for arrays that are empty or of different length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.ndim != 1 or a.shape != b.shape or not a.size:
        raise ValueError(f"expected two non-empty lists of equal length, got shapes {a.shape} and {b.shape}")
    return a, b


def relative_errors(predicted: ArrayLike, measured: ArrayLike) -> Array:
    """(predicted − measured) / measured, signed."""
    p, m = _pair(predicted, measured)
    return (p - m) / m


def mape(predicted: ArrayLike, measured: ArrayLike) -> float:
    """Mean absolute percentage error: Σ|pᵢ − mᵢ| / mᵢ / n, as a fraction."""
    return float(np.abs(relative_errors(predicted, measured)).mean())


def quantile_error(predicted: ArrayLike, measured: ArrayLike, share: float) -> float:
    """The absolute relative error that `share` of the rows do not exceed, linear between rows; 0.5 is the median."""
    return float(np.quantile(np.abs(relative_errors(predicted, measured)), share))


def bias(predicted: ArrayLike, measured: ArrayLike) -> float:
    """The mean of the signed relative errors: positive if predictions are too long."""
    return float(relative_errors(predicted, measured).mean())


def median_ratio(predicted: ArrayLike, measured: ArrayLike) -> float:
    """The median of pᵢ / mᵢ."""
    p, m = _pair(predicted, measured)
    return float(np.median(p / m))


def spread_error(predicted: ArrayLike, measured: ArrayLike) -> float:
    """The median absolute relative error that remains after dividing all predictions by the median ratio."""
    p, m = _pair(predicted, measured)
    return float(np.median(np.abs(p / m / np.median(p / m) - 1)))


def mape_shape(predicted: ArrayLike, measured: ArrayLike, occupancy: ArrayLike) -> float:
    """MAPE of the performance over occupancy after subtracting the best linear fit.

    Σ|Pᵢ − Rᵢ − lf(ωᵢ)| / Rᵢ / n, with P = 1 / predicted and R = 1 / measured time and lf the least-squares line through
    all Pᵢ − Rᵢ over the occupancies ωᵢ. (Lemeire, Cornelis, Konstantinidis, "Analysis of the analytical performance
    models for GPUs", §6.3, where the performance is warps per cycle: for one kernel over occupancy that is 1 / time but
    for a factor, on which the figure does not depend.) With a single occupancy the line is the mean.
    """
    p, m = _pair(predicted, measured)
    w, _ = _pair(occupancy, measured)
    real = 1 / m
    difference = 1 / p - real
    centred = w - w.mean()
    squares = float(centred @ centred)
    slope = float(centred @ difference) / squares if squares else 0.0
    fit = difference.mean() + slope * centred
    return float((np.abs(difference - fit) / real).mean())


def ranks(values: ArrayLike) -> Array:
    """Ranks starting from 1; equal values share their mean rank."""
    v = np.asarray(values, np.float64)
    _, place, counts = np.unique(v, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]


def spearman(predicted: ArrayLike, measured: ArrayLike) -> float | None:
    """Spearman's ρ: the correlation of the ranks (ties at their mean rank). None if one side has no order at all."""
    p, m = _pair(predicted, measured)
    a, b = ranks(p), ranks(m)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm else None


def kendall(predicted: ArrayLike, measured: ArrayLike) -> float | None:
    """Kendall's τ-b: (concordant − discordant pairs) / √((n₀ − n₁)(n₀ − n₂)).

    n₀ counts all pairs, n₁ and n₂ those that are tied on each side. None if one side has no order at all. The run time
    grows with the square of the rows: a second for 20,000.
    """
    p, m = _pair(predicted, measured)
    agree, tied_p, tied_m = 0, 0, 0
    for at in range(len(p) - 1):
        a, b = np.sign(p[at + 1 :] - p[at]), np.sign(m[at + 1 :] - m[at])
        agree += int(a @ b)
        tied_p += int((a == 0).sum())
        tied_m += int((b == 0).sum())
    pairs = len(p) * (len(p) - 1) // 2
    norm = ((pairs - tied_p) * (pairs - tied_m)) ** 0.5
    return agree / norm if norm else None


def top_k_regret(predicted: ArrayLike, measured: ArrayLike, k: int) -> float:
    """How much slower the best of the `k` rows predicted fastest is than the fastest measured row: 0 is perfect.

    min(m over the k smallest p) / min(m) − 1. Ties in prediction count against the model: the slower rows go first.
    """
    p, m = _pair(predicted, measured)
    if k < 1:
        raise ValueError(f"k is {k}, expected 1 or more")
    order = np.lexsort((-m, p))[:k]
    return float(m[order].min() / m.min() - 1)


def explained_share(values: ArrayLike, groups: ArrayLike) -> float:
    """The share of the variance of `values` between groups (the correlation ratio η²), corrected for chance.

    1 − (within / (n − g)) / (total / (n − 1)), where g is the number of groups (Kelley's ε², 1935): its expectation for
    meaningless groups is 0. Never below 0; 0 if values or groups do not differ, or every row is a group.
    """
    v = np.asarray(values, np.float64)
    _, place = np.unique(np.asarray(groups), return_inverse=True)
    count, rows = int(place.max()) + 1, len(v)
    total = float(((v - v.mean()) ** 2).sum())
    if count < 2 or rows <= count or total <= 0:
        return 0.0
    means = np.bincount(place, v) / np.bincount(place)
    within = float(((v - means[place]) ** 2).sum())
    return max(0.0, 1 - within / (rows - count) / (total / (rows - 1)))
