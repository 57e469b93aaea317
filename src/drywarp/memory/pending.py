"""Reads that find their sector on its way from DRAM, as another block has just asked for it: pending hits in the L2.

Chen and Aamodt (MICRO 2008) showed for the L1 that a hit on data that are still on their way takes as long as their
miss. In the L2 the blocks of a wave do that to each other. Where all of them walk through the same data, none gets
ahead: the one that does waits for DRAM, and the others catch up. An instruction that reads what all blocks read and
what only its own does is taken to find either in the L2 equally often.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..kernel.profile import Profile
from .affine import Alike
from .requests import Bools, Ints, bursts_of
from .stream import lines_touched
from .table import MemoryGeometry

_MOST_REQUESTS = 100_000
"""Most requests of a block that are looked at: its first ones."""


def in_step(
    profile: Profile, alike: Callable[[int], Alike | None], geometry: MemoryGeometry, loads: Bools
) -> npt.NDArray[np.float64]:
    """For each instruction, the share of its sectors that its block asks for first just when other blocks do.

    A block in the middle of the first wave is compared with some that are near and some that are far: of the sectors
    that both ask for, with those that both ask for in the same burst first (see `bursts_of`). What a block asks for
    again later is not among them. 0 where no block is known to ask for the same, and for all but `loads`.
    """
    count, launch = len(profile.kernel.instructions), profile.launch
    wave = min(launch.blocks, geometry.wave_blocks)
    middle, width = wave // 2, launch.grid[0]
    near = [middle + side * by for by in (1, 2, width, 2 * width, width + 1) for side in (1, -1)]
    others = [block for block in dict.fromkeys([*near, 0, wave - 1]) if 0 <= block < wave and block != middle]
    shares = np.zeros(count)
    chosen: dict[int, _Rows] = {}

    def touches(block: int) -> _Touches | None:
        like = alike(block)
        if like is None:
            return None
        if like.reference not in chosen:
            chosen[like.reference] = _Rows.of(profile, like, loads)
        return _first_touches(profile, chosen[like.reference], like, block, geometry)

    one = touches(middle) if others else None
    if one is None or not len(one.sector):
        return shares
    met, together = np.zeros(len(one.sector), bool), np.zeros(len(one.sector), bool)
    for block in others:
        other = touches(block)
        if other is not None:
            _, here, there = np.intersect1d(one.sector, other.sector, assume_unique=True, return_indices=True)
            met[here] = True
            together[here] |= one.burst[here] == other.burst[there]
    if not met.any():
        return shares
    # Of sectors that no compared block asks for, as many are asked for together as of the others.
    fresh, known, same = (
        np.bincount(one.instruction, None if which is None else which[one.of], minlength=count).astype(np.float64)
        for which in (None, met, together)
    )
    usual = together.sum() / met.sum()
    step = np.divide(same, known, out=np.full(count, usual), where=known > 0)
    np.divide(step * fresh, one.asked, out=shares, where=one.asked > 0)
    return shares


@dataclass(frozen=True)
class _Rows:
    """The loads of a reference block: which of its rows they are, and their bursts, shape (loads,)."""

    which: npt.NDArray[np.intp]
    burst: Ints

    @classmethod
    def of(cls, profile: Profile, like: Alike, loads: Bools) -> _Rows:
        which = np.flatnonzero(loads[profile.accesses.instruction[like.rows]])[:_MOST_REQUESTS]
        return cls(which, bursts_of(profile, like.rows)[which])


@dataclass(frozen=True)
class _Touches:
    """Distinct sectors that a block reads, each with the burst that asks for it first, shape (sectors,).

    Accesses of that burst to the sector are `fresh`: `instruction` and `of`, the number of the sector, shape (fresh,).
    `asked` are the sectors that each instruction asks for in all, shape (instructions,).
    """

    sector: Ints
    burst: Ints
    instruction: Ints
    of: Ints
    asked: Ints


def _first_touches(profile: Profile, of: _Rows, like: Alike, linear: int, geometry: MemoryGeometry) -> _Touches:
    """What a block reads from global memory, and when, as the block that it is like does."""
    log, rows = profile.accesses, like.rows[of.which]
    shift = like.moves(np.array([linear]))[0][like.mover[of.which]]
    request, line, mask = lines_touched(log, rows, shift, geometry)
    per_line = geometry.line_bytes // geometry.sector_bytes
    access, bit = np.nonzero((mask[:, None] >> np.arange(per_line)) & 1)
    sector, by = line[access] * per_line + bit, request[access]
    instruction, burst = log.instruction[rows][by].astype(np.int64), of.burst[by]
    order = np.lexsort((burst, sector))
    sector, burst, instruction = sector[order], burst[order], instruction[order]
    first = np.r_[True, sector[1:] != sector[:-1]][: len(sector)]
    number = np.cumsum(first) - 1
    fresh = burst == burst[first][number]
    asked = np.bincount(instruction, minlength=len(profile.kernel.instructions))
    return _Touches(sector[first], burst[first], instruction[fresh], number[fresh], asked)
