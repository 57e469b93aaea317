"""What one warp's memory request costs: sectors and lines in global memory, wavefronts in shared.

Pure functions over lane offsets; nothing here knows a GPU but by the sizes handed in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def lane_masks(masks: npt.NDArray[np.unsignedinteger[Any]]) -> Bools:
    """Bit masks, shape (n,), as booleans per lane, shape (n, 32), or (n, 64) for masks of 64 bits."""
    bits = np.arange(masks.dtype.itemsize * 8, dtype=masks.dtype)
    return ((masks[:, None] >> bits) & masks.dtype.type(1)).astype(bool)


def distinct_per_row(values: Ints, active: Bools) -> Ints:
    """Number of distinct values among the active lanes of each row; 0 for a row without any.

    `values` and `active` have shape (n, lanes); the result (n,).
    """
    if not len(values):
        return np.zeros(0, np.int64)
    first = values[np.arange(len(values)), active.argmax(1)]
    filled = np.sort(np.where(active, values, first[:, None]), axis=1)
    count = 1 + (filled[:, 1:] != filled[:, :-1]).sum(1)
    return np.where(active.any(1), count, 0)


def sectors_of(addresses: Ints, active: Bools, sector_bytes: int) -> Ints:
    """Sectors that each request touches. Accesses are aligned, so that no lane spans two."""
    return distinct_per_row(addresses // sector_bytes, active)


def shared_wavefronts(addresses: Ints, active: Bools, width: int, banks: int, bank_bytes: int) -> tuple[Ints, Ints]:
    """Wavefronts (passes) of each shared-memory request, and those without bank conflicts; (n,) each.

    A wavefront serves each bank once; lanes that want the same word share it. Up to 4 bytes a lane the
    warp is one group. With 8 bytes the half-warps go apart, with 16 the quarter-warps, unless the
    lanes of a pair of groups coincide in neighbours (lane i as lane i^1, or as i^2), when the two go
    together. The last rule is published reverse engineering, not documentation. Without conflicts
    each group takes one wavefront. A warp of 64 lanes (AMD's) goes in groups whose words fill the banks once.
    """
    if addresses.shape[1] > 32:
        return _in_groups(addresses, active, width, banks, bank_bytes)
    if width <= 4:
        one: Ints = np.asarray(active.any(1), np.int64)
        return _group_wavefronts(addresses, active, width, banks, bank_bytes), one
    size = 16 if width == 8 else 8
    total: Ints = np.zeros(len(addresses), np.int64)
    ideal: Ints = np.zeros(len(addresses), np.int64)
    for start in range(0, 32, 2 * size):
        lanes, on = addresses[:, start : start + 2 * size], active[:, start : start + 2 * size]
        halves = [(lanes[:, part], on[:, part]) for part in (slice(0, size), slice(size, 2 * size))]
        together = _coincide(lanes, on, 1) | _coincide(lanes, on, 2)
        first, second = (_group_wavefronts(where, lit, width, banks, bank_bytes) for where, lit in halves)
        apart = first + second
        groups: Ints = np.asarray(halves[0][1].any(1), np.int64) + halves[1][1].any(1)
        joint = _group_wavefronts(lanes, on, width, banks, bank_bytes)
        total = total + np.where(together, joint, apart)
        ideal = ideal + np.where(together, np.minimum(groups, 1), groups)
    return total, ideal


def _in_groups(addresses: Ints, active: Bools, width: int, banks: int, bank_bytes: int) -> tuple[Ints, Ints]:
    """Wavefronts, and those without conflicts, where neighbouring lanes go together as far as the banks reach."""
    size = banks * bank_bytes // max(bank_bytes, 1 << (width - 1).bit_length())
    total: Ints = np.zeros(len(addresses), np.int64)
    ideal: Ints = np.zeros(len(addresses), np.int64)
    for start in range(0, addresses.shape[1], size):
        lanes, on = addresses[:, start : start + size], active[:, start : start + size]
        total = total + _group_wavefronts(lanes, on, width, banks, bank_bytes)
        ideal = ideal + on.any(axis=1)
    return total, ideal


def _coincide(addresses: Ints, active: Bools, distance: int) -> Bools:
    """Rows where every active lane i has the address of lane i ^ distance, where that is active."""
    lanes = np.arange(addresses.shape[1])
    other = lanes ^ distance
    same = (addresses == addresses[:, other]) | ~active | ~active[:, other]
    result: Bools = same.all(1)
    return result


def _group_wavefronts(addresses: Ints, active: Bools, width: int, banks: int, bank_bytes: int) -> Ints:
    """The largest number of distinct words that any bank must deliver, shape (n,)."""
    rows, lanes = addresses.shape
    words_per_lane = max(1, width // bank_bytes)
    words = addresses[:, :, None] // bank_bytes + np.arange(words_per_lane)
    words = words.reshape(rows, lanes * words_per_lane)
    on = np.repeat(active, words_per_lane, axis=1)
    # Distinct words in order, then the longest run of one bank when sorted by (bank, word).
    # Offsets may lie below the first lane's: rows of banks count from the lowest.
    row = words // banks
    key = np.where(on, (words % banks) * (1 << 40) + row - row.min(initial=0), -1)
    key.sort(axis=1)
    fresh = np.ones_like(key, dtype=bool)
    fresh[:, 1:] = key[:, 1:] != key[:, :-1]
    fresh &= key >= 0
    bank = np.where(fresh, key >> 40, -1)
    worst = np.zeros(rows, np.int64)
    for number in range(banks):
        np.maximum(worst, (bank == number).sum(1), out=worst)
    return worst
