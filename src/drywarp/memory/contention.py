"""Atomics on global memory that want the same address: the L2 does them one lane after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..kernel.profile import SPACE_GLOBAL, Profile
from .table import active_lanes

ATOMIC = ("atomic", "reduction")
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Busiest:
    """The address that most lanes of a grid's atomics want: how many of each instruction, shape (instructions,).

    `shared` says whether several blocks want it.
    """

    lanes: npt.NDArray[np.float64]
    shared: bool


def busiest_address(profile: Profile) -> Busiest:
    """What the sampled blocks' atomics say of the whole grid's.

    An address that several of the sampled blocks want is taken for one that all blocks like them want; one that a
    single block wants, of several that were sampled, for its own.
    """
    count = len(profile.kernel.instructions)
    log = profile.accesses
    kinds = np.array([bool(i.memory and i.memory.kind in ATOMIC) for i in profile.kernel.instructions], np.bool_)
    rows = np.flatnonzero(kinds[log.instruction] & (log.space == SPACE_GLOBAL)) if len(log) else np.zeros(0, np.intp)
    found = [_wanted(profile, rows[start : start + _CHUNK]) for start in range(0, len(rows), _CHUNK)]
    # Columns: address, sampled block, instruction, lanes; equal ones put together.
    keys, inverse = np.unique(np.concatenate([np.zeros((0, 3), np.int64), *(part for part, _ in found)]), axis=0,
                              return_inverse=True)  # fmt: skip
    if not len(keys):
        return Busiest(np.zeros(count), shared=False)
    lanes = np.bincount(inverse.ravel(), np.concatenate([part for _, part in found]))
    if profile.logged is not None:
        lanes = lanes / profile.logged[keys[:, 2]]
    places, of_place = np.unique(keys[:, 0], return_inverse=True)
    weight = np.array([sample.weight for sample in profile.blocks])[keys[:, 1]]
    first, last = np.full(len(places), len(profile.blocks)), np.full(len(places), -1)
    np.minimum.at(first, of_place, keys[:, 1])
    np.maximum.at(last, of_place, keys[:, 1])
    alone = (first == last)[of_place] & (len(profile.blocks) > 1)
    lanes = np.where(alone, lanes, lanes * weight)
    busiest = int(np.bincount(of_place, lanes).argmax())
    there = of_place == busiest
    total = np.bincount(keys[there, 2], lanes[there], minlength=count).astype(np.float64)
    return Busiest(total, bool(first[busiest] < last[busiest]))


def contended_loop(profile: Profile, busiest: Busiest) -> int | None:
    """A compare-and-swap that a loop repeats until no other block came first; None where there is none.

    Sampled blocks are run apart from one another, so that only a block's own attempts are counted.
    """
    cfg = profile.cfg
    for number, block in enumerate(cfg.blocks):
        if not busiest.shared or cfg.innermost_loop(number) is None:
            continue
        for index in range(block.start, block.end):
            if "CAS" in profile.kernel.instructions[index].modifiers and busiest.lanes[index]:
                return index
    return None


def _wanted(profile: Profile, rows: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Addresses that these requests want, with sampled block and instruction, shape (n, 3), and by how many lanes."""
    log = profile.accesses
    addresses, active = active_lanes(log, rows)
    row, _ = np.nonzero(active)
    block = log.warp[rows] // profile.launch.warps_per_block
    wanted = np.stack([addresses[active], block[row], log.instruction[rows][row]], axis=1).astype(np.int64)
    keys, lanes = np.unique(wanted, axis=0, return_counts=True)
    return keys, lanes.astype(np.float64)
