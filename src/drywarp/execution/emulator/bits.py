"""Masks of lanes as words and as booleans, and the barrier words in shared memory before sm_90."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

LANES = 32
LANE = np.arange(LANES, dtype=np.uint32)
"""Lane numbers 0 to 31, which broadcast against (warp, 32)."""
FULL = np.uint32(0xFFFFFFFF)


def unpack(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Booleans per lane, shape (warps, 32), of one word per warp, shape (warps,)."""
    return (words[:, None] >> LANE & np.uint32(1)).astype(np.bool_)


def pack(lanes: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """One word per warp, shape (warps,), of booleans per lane, shape (warps, 32)."""
    packed: npt.NDArray[np.uint32] = np.packbits(lanes, axis=1, bitorder="little").view(np.uint32)[:, 0]
    return packed


def _popcount_by_halving(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Set bits of 32-bit words, for NumPy before 2.0."""
    x = np.asarray(words, np.uint32)
    x = x - ((x >> np.uint32(1)) & np.uint32(0x55555555))
    x = (x & np.uint32(0x33333333)) + ((x >> np.uint32(2)) & np.uint32(0x33333333))
    x = (x + (x >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    return (x * np.uint32(0x01010101)) >> np.uint32(24)


popcount: Any = getattr(np, "bitwise_count", _popcount_by_halving)
"""Number of set bits of each 32-bit word."""


def first_lane(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Lowest set bit of each word, shape (warps,); 0 for an empty word."""
    lowest = words & (~words + np.uint32(1))
    return np.asarray(popcount(lowest - np.uint32(1)), np.int64) % LANES


# Barrier words in shared memory before sm_90, where arrivals are atomics and waits are loads.
#
# With c = 2^30 - count the low half holds c of the arrivals that each phase expects. The high half holds the
# phase in its top bit and below it 2^31 less the arrivals still pending: the last one's carry flips the phase.

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
