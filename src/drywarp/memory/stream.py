"""The stream of line accesses that the blocks resident on one SM send to its L1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..kernel.profile import Profile
from .affine import AffineBlocks, global_rows
from .geometry import MemoryGeometry
from .requests import Bools, Ints
from .table import active_lanes

_MOST_REQUESTS = 400_000
"""Requests that one stream holds at most; a longer run is judged by its beginning."""

_PAST_L1 = ("atomic", "reduction", "bulk_load", "bulk_store", "bulk_reduction")


def l1_hit_fractions(
    profile: Profile, affine: AffineBlocks | None, geometry: MemoryGeometry
) -> npt.NDArray[np.float64]:
    """Fraction of load sectors that hit the L1, per instruction of the kernel; 0 for all others.

    The blocks that share an SM in the first wave run interleaved, one request of each warp in turn.
    Where their requests are affine in the block index they are derived from the reference block, else
    sampled blocks stand for them; where there are fewer of those they get their share of the L1. Stores
    write through and bring nothing in; atomics and bulk copies bypass the L1.
    """
    instructions = profile.kernel.instructions
    fractions = np.zeros(len(instructions))
    loads = np.array(
        [bool(i.memory and i.memory.kind in ("load", "copy") and _cached(i.modifiers)) for i in instructions]
    )
    bypass = np.array([bool(i.memory and i.memory.kind in _PAST_L1) for i in instructions])
    rows, shift, order, share = _resident_rows(profile, affine, geometry)
    keep = ~bypass[profile.accesses.instruction[rows]]
    rows, shift, order = rows[keep], shift[keep], order[keep]
    turn = np.argsort(order, kind="stable")[:_MOST_REQUESTS]
    rows, shift = rows[turn], shift[turn]
    if not len(rows) or geometry.l1_bytes < geometry.line_bytes:
        return fractions
    addresses, active = active_lanes(profile.accesses, rows)
    request, line, mask = split_lines(addresses + shift[:, None], active, geometry)
    instruction = profile.accesses.instruction[rows][request]
    is_load = loads[instruction]
    if not _wanted_twice(line[is_load], mask[is_load], geometry):
        return fractions
    dense = np.unique(line, return_inverse=True)[1]
    from .lru import sector_hits  # here, because loading compiled code costs time that many runs can spare

    capacity = max(1, int(geometry.l1_bytes * share) // geometry.line_bytes)
    hits = sector_hits(dense.astype(np.int64), mask, is_load, int(dense.max()) + 1, capacity)
    wanted = np.bitwise_count(mask.astype(np.uint64)).astype(np.int64)
    count = np.bincount(instruction[is_load], wanted[is_load], minlength=len(instructions))
    found = np.bincount(instruction[is_load], hits[is_load], minlength=len(instructions))
    np.divide(found, count, out=fractions, where=count > 0)
    return fractions


def _wanted_twice(line: Ints, mask: Ints, geometry: MemoryGeometry) -> bool:
    """Whether any sector is loaded more than once; without, nothing can hit."""
    per_line = geometry.line_bytes // geometry.sector_bytes
    access, bit = np.nonzero((mask[:, None] >> np.arange(per_line)) & 1)
    sectors = np.sort(line[access] * per_line + bit)
    return bool((sectors[1:] == sectors[:-1]).any())


def _cached(modifiers: Sequence[str]) -> bool:
    """Whether a load may hit the L1: volatile and system-scope loads go to L2."""
    return not ("STRONG" in modifiers and ("SYS" in modifiers or "GPU" in modifiers))


def _resident_rows(
    profile: Profile, affine: AffineBlocks | None, geometry: MemoryGeometry
) -> tuple[npt.NDArray[np.intp], Ints, Ints, float]:
    """Log rows of the blocks on one SM, the bytes that each is shifted by, its turn, and the share of the SM's blocks.

    A sampled block never stands for two: the second would find all its data in the L1.
    """
    launch, log = profile.launch, profile.accesses
    resident = range(0, launch.blocks, geometry.sm_count)[: geometry.blocks_per_sm]
    here = resident if affine is not None else resident[: len(profile.blocks)]
    rows_of, shifts, orders = [], [], []
    for position, linear in enumerate(here):
        if affine is not None:
            rows = affine.rows
            origin = profile.blocks[affine.reference].coordinates
            step = np.array(launch.coordinates(linear)) - np.array(origin)
            shift = affine.coefficients @ step
        else:
            rows = global_rows(profile, position)
            shift = np.zeros(len(rows), np.int64)
        rows_of.append(rows)
        shifts.append(shift)
        orders.append(log.order[rows] * len(here) + position)
        if sum(len(r) for r in rows_of) > 4 * _MOST_REQUESTS:
            break
    if not rows_of:
        return np.zeros(0, np.intp), np.zeros(0, np.int64), np.zeros(0, np.int64), 1.0
    share = len(rows_of) / len(resident)
    return np.concatenate(rows_of), np.concatenate(shifts), np.concatenate(orders), share


def split_lines(addresses: Ints, active: Bools, geometry: MemoryGeometry) -> tuple[Ints, Ints, Ints]:
    """Each request as the lines that it touches: (request index, line number, sector bit mask)."""
    per_line = geometry.line_bytes // geometry.sector_bytes
    sector = np.where(active, addresses // geometry.sector_bytes, -1)
    sector.sort(axis=1)
    fresh = np.ones_like(sector, dtype=bool)
    fresh[:, 1:] = sector[:, 1:] != sector[:, :-1]
    fresh &= sector >= 0
    request, lane = np.nonzero(fresh)
    flat = sector[request, lane]
    line, bit = flat // per_line, np.left_shift(1, flat % per_line)
    if not len(line):
        return request, line, bit
    starts = np.flatnonzero(np.r_[True, (line[1:] != line[:-1]) | (request[1:] != request[:-1])])
    return request[starts], line[starts], np.bitwise_or.reduceat(bit, starts)
