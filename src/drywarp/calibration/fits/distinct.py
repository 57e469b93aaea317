"""How many different places random draws reach."""

from __future__ import annotations

import math


def distinct(draws: float, places: float) -> float:
    """The expected number of different ones among so many draws, all equally likely, of so many places."""
    if places <= 1:
        return min(draws, places)
    return -places * math.expm1(draws * math.log1p(-1 / places))
