"""Whole numbers in proportion."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .result import Ticks


def apportion(parts: npt.NDArray[np.float64], total: int) -> Ticks:
    """Whole numbers in proportion to `parts` that add up to `total`; parts below zero count as none.

    A line that falls reaches below zero where a reason becomes rarer the longer a run is. Rounding goes
    to the largest remainders (the first of equals).
    """
    parts = np.maximum(parts, 0.0)
    known = parts.sum()
    if known <= 0 or total <= 0:
        return np.zeros(parts.shape, dtype=np.int64)
    shares = (parts * (total / known)).ravel()
    whole = np.floor(shares).astype(np.int64)
    # Beyond 2⁵³ ticks the sum of the shares may be off by more than one for each part.
    missing = total - int(whole.sum())
    each, rest = divmod(missing, len(whole))
    order = np.argsort(whole - shares, kind="stable")
    whole += each
    whole[order[:rest]] += 1
    result: Ticks = whole.reshape(parts.shape)
    return result
