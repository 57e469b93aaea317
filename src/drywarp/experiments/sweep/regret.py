"""The expected loss from trying only some configurations, as functions of predicted times.

Measured times are modelled as mᵢ = c · tᵢ · exp(σ zᵢ), with predicted tᵢ, a factor c that all configurations of a
kernel on a GPU share, and independent standard normal zᵢ. c cancels in all results here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_STEPS = 4000
_REACH = 8.0
"""Standard deviations by which the grid of logarithms extends beyond the predictions."""


def expected_regret(kept: ArrayLike, others: ArrayLike, sigma: float) -> float:
    """The expectation of min(m over kept) / min(m over all) − 1, for predicted times in seconds; 0 without others.

    `sigma` is the standard deviation of the logarithm of measured over predicted time within a kernel. Raises
    ValueError for non-positive times, and if nothing is kept.
    """
    return _compare(kept, others, sigma)[0]


def chance_of_best(kept: ArrayLike, others: ArrayLike, sigma: float) -> float:
    """The probability that the fastest configuration is among those kept."""
    return _compare(kept, others, sigma)[1]


def _compare(kept: ArrayLike, others: ArrayLike, sigma: float) -> tuple[float, float]:
    ours, rest = _logs(kept), _logs(others)
    if not len(ours):
        raise ValueError("nothing is kept, expected one configuration or more")
    if not len(rest):
        return 0.0, 1.0
    if sigma <= 0:
        lost = max(0.0, float(ours.min() - rest.min()))
        return math.expm1(lost), float(ours.min() <= rest.min())
    low = min(ours.min(), rest.min()) - _REACH * sigma
    high = max(ours.min(), rest.min()) + _REACH * sigma
    edges = np.linspace(low, high, _STEPS + 1)
    x = (edges[1:] + edges[:-1]) / 2 - low
    a, b = (-np.diff(_survival(edges, logs, sigma)) for logs in (ours, rest))
    # If the others' minimum is in a lower cell than ours, exp(difference) − 1 is lost; in the same cell, nothing.
    below, scaled = np.cumsum(b) - b, np.cumsum(b * np.exp(-x)) - b * np.exp(-x)
    return max(0.0, float(a @ (np.exp(x) * scaled - below))), float(1 - a @ (below + b / 2))


def _logs(times: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(times, np.float64)
    if values.size and not (np.isfinite(values).all() and values.min() > 0):
        raise ValueError("a predicted time is not positive")
    return np.log(values)


def _survival(x: NDArray[np.float64], logs: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """The probability that the minimum of normal variables with these means lies above each x."""
    total = np.zeros(len(x))
    for mean, times in zip(*np.unique(logs, return_counts=True), strict=True):
        total += times * _log_tail((x - mean) / sigma)
    survival: NDArray[np.float64] = np.exp(total)
    return survival


_erfc = np.frompyfunc(math.erfc, 1, 1)


def _log_tail(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """log P(Z > z) for a standard normal Z."""
    tail = np.maximum(np.asarray(_erfc(z / math.sqrt(2)), np.float64) / 2, 1e-300)
    logarithm: NDArray[np.float64] = np.log(tail)
    return logarithm
