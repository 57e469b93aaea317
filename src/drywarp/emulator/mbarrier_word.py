"""Words of barriers in shared memory before sm_90, where arrivals are atomics and waits are loads.

With c = 2^30 - count the low half holds c of the arrivals that each phase expects. The high half holds the
phase in its top bit and below it 2^31 less the arrivals still pending: the last one's carry flips the phase.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_PHASE = np.uint64(1 << 31)
_PENDING = np.uint64((1 << 31) - 1)
_EXPECTED = np.uint64(1 << 30)


def arrived(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The words (uint64) after one arrival at each."""
    low, high = words & _LOW, ((words >> _HALF) + np.uint64(1)) & _LOW
    fresh = high & _PHASE | (low + _EXPECTED) & _PENDING
    return np.asarray(np.where(high & _PENDING, high, fresh) << _HALF | low)
