"""What one memory request costs (sectors, lines, wavefronts), and which requests are in flight together.

Pure functions over lane offsets; the only hardware knowledge is the sizes passed in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernel.instruction import Instruction
from ..kernel.profile import Profile

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def lane_masks(masks: npt.NDArray[np.unsignedinteger[Any]]) -> Bools:
    """Bit masks, shape (n,), as booleans per lane, shape (n, 32), or (n, 64) for masks of 64 bits."""
    bits = np.arange(masks.dtype.itemsize * 8, dtype=masks.dtype)
    return ((masks[:, None] >> bits) & masks.dtype.type(1)).astype(bool)


def distinct_per_row(values: Ints, active: Bools) -> Ints:
    """Number of distinct values among the active lanes of each row; 0 for a row with none.

    `values` and `active` have shape (n, lanes); the result (n,).
    """
    if not len(values):
        return np.zeros(0, np.int64)
    first = values[np.arange(len(values)), active.argmax(1)]
    filled = np.sort(np.where(active, values, first[:, None]), axis=1)
    count = 1 + (filled[:, 1:] != filled[:, :-1]).sum(1)
    return np.where(active.any(1), count, 0)


def sectors_of(addresses: Ints, active: Bools, sector_bytes: int) -> Ints:
    """Sectors that each request touches. Accesses are aligned, so no lane spans two."""
    return distinct_per_row(addresses // sector_bytes, active)


def shared_wavefronts(addresses: Ints, active: Bools, width: int, banks: int, bank_bytes: int) -> tuple[Ints, Ints]:
    """Wavefronts (passes) of each shared-memory request, and those without bank conflicts; (n,) each.

    A wavefront serves each bank once; lanes that access the same word share it. With up to 4 bytes per lane the warp is
    one group. With 8 bytes the half-warps are served separately, with 16 bytes the quarter-warps, unless the lanes of a
    pair of groups coincide in neighbours (lane i with lane i^1, or with i^2): then the two are served together. This
    last rule comes from published reverse engineering, not from documentation. Without conflicts each group takes one
    wavefront. A warp of 64 lanes (AMD) is served in groups whose words fill the banks once.
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
    """Wavefronts, total and without conflicts, if neighbouring lanes are served together up to the banks' width."""
    size = banks * bank_bytes // max(bank_bytes, 1 << (width - 1).bit_length())
    total: Ints = np.zeros(len(addresses), np.int64)
    ideal: Ints = np.zeros(len(addresses), np.int64)
    for start in range(0, addresses.shape[1], size):
        lanes, on = addresses[:, start : start + size], active[:, start : start + size]
        total = total + _group_wavefronts(lanes, on, width, banks, bank_bytes)
        ideal = ideal + on.any(axis=1)
    return total, ideal


def _coincide(addresses: Ints, active: Bools, distance: int) -> Bools:
    """Rows in which every active lane i has the address of lane i ^ distance, if that lane is active."""
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
    # Offsets may lie below the first lane's: bank rows count from the lowest.
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


# Which of a warp's memory accesses are in flight together: all that it issues before it must wait for one of them.
#
# A warp continues past its loads until an instruction needs a result. What it issues up to there is a burst: each
# access issues within a few cycles, while a result takes hundreds. Between two bursts other warps and blocks issue.

_LOADS = ("load", "atomic", "copy")
_FAR = ("global", "generic", "local", "texture")


def bursts_of(profile: Profile, rows: npt.NDArray[np.intp]) -> Ints:
    """The number of the burst that each of these log rows belongs to, from 0 in each warp; shape (rows,)."""
    log = profile.accesses
    waits = _waits_before(profile.kernel.instructions)
    order = np.lexsort((log.order[rows], log.warp[rows]))
    warp, instruction = log.warp[rows][order], log.instruction[rows][order]
    later = np.zeros(len(rows), bool)
    # A step backwards in the code is another iteration of a loop, with its waits in between.
    later[1:] = (instruction[1:] <= instruction[:-1]) | (waits[instruction[1:]] != waits[instruction[:-1]])
    number = np.cumsum(later)
    first = np.r_[True, warp[1:] != warp[:-1]][: len(rows)]
    bursts = np.zeros(len(rows), np.int64)
    bursts[order] = number - np.maximum.accumulate(np.where(first, number, 0))
    return bursts


def _waits_before(instructions: tuple[Instruction, ...]) -> Ints:
    """Number of waits for an access in the code up to and including each instruction."""
    counted = np.zeros(len(instructions), np.int64)
    outstanding = waits = 0
    for index, instruction in enumerate(instructions):
        control = instruction.control
        if instruction.counting is not None:
            waits += bool(instruction.counting.waits)
        elif control.wait_mask & outstanding:
            waits += 1
            outstanding &= ~control.wait_mask
        memory = instruction.memory
        if memory and memory.kind in _LOADS and memory.space in _FAR and control.write_barrier is not None:
            outstanding |= 1 << control.write_barrier
        counted[index] = waits
    return counted


def awaited_at(instructions: tuple[Instruction, ...]) -> Ints:
    """The place in the code where the result of each load is first waited for; its end where nothing says so."""
    found = np.full(len(instructions), len(instructions), np.int64)
    waiting: dict[int, list[int]] = {}
    for index, instruction in enumerate(instructions):
        control = instruction.control
        for barrier in [number for number in waiting if control.wait_mask >> number & 1]:
            found[waiting.pop(barrier)] = index
        if instruction.memory and control.write_barrier is not None:
            waiting.setdefault(control.write_barrier, []).append(index)
    return found


def interleave_local(offsets: Ints, active: Bools, width: int) -> tuple[Ints, Bools]:
    """Local memory as it lies in DRAM: the same word of a warp's lanes is consecutive.

    Each lane's access becomes one address per word of it; both results have shape (n, lanes · words).
    """
    words, lanes = max(1, width // 4), offsets.shape[1]
    lane = np.arange(lanes, dtype=np.int64)[:, None] * 4
    placed = (offsets[:, :, None] // 4 + np.arange(words)) * (4 * lanes) + lane + offsets[:, :, None] % 4
    return placed.reshape(len(offsets), lanes * words), np.repeat(active, words, axis=1)
