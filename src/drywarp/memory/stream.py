"""The stream of line accesses that the blocks resident on one SM send to its L1, and the L1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.library import Function
from ..kernel.profile import SPACE_LOCAL, AccessLog, Profile
from .affine import Alike, global_rows
from .requests import Bools, Ints, awaited_at, bursts_of, interleave_local, lane_masks
from .table import MemoryGeometry, active_lanes, distinct

_MOST_REQUESTS = 400_000
"""Most requests in one stream; a longer run is represented by its beginning."""
_BEYOND_GLOBAL, _LOCAL_BITS = 1 << 56, 36
"""Base address of the resident warps' local memory, and the address bits that each warp has."""

_PAST_L1 = ("atomic", "reduction", "bulk_load", "bulk_store", "bulk_reduction")


def l1_hit_fractions(
    profile: Profile, alike: Callable[[int], Alike | None], geometry: MemoryGeometry
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Fraction of sectors of loads that hit the L1, and how much more often requests wait than sectors miss.

    The blocks that share an SM in the first wave run interleaved: burst by burst (see `bursts`), block after block, and
    within a burst one request of each warp in turn. Where `alike` knows a block that does the same as one of them,
    requests are derived from it, else sampled blocks represent them; if there are too few of those, they get a
    proportional share of the L1. Stores are written through: global stores allocate nothing, local stores leave their
    data in the cache. Atomics and bulk copies bypass the L1. A sector is on its way for as long as the burst lasts in
    which it was asked for first: the others that ask for it in that burst wait as long as the first one. Where all that
    a wave reads fits, what blocks far apart share is on its way in the first wave alone. A request waits for the last
    of its sectors, and a warp for the last load of a burst among those whose results it awaits no later. Both are 0 for
    all but loads.
    """
    instructions = profile.kernel.instructions
    fractions, late = np.zeros(len(instructions)), np.zeros(len(instructions))
    loads = np.array(
        [bool(i.memory and i.memory.kind in ("load", "copy") and _cached(i.modifiers)) for i in instructions]
    )
    bypass = np.array([bool(i.memory and i.memory.kind in _PAST_L1) for i in instructions])
    log = profile.accesses
    stream, share = _resident(profile, alike, geometry)
    stream = stream[~bypass[log.instruction[stream.rows]]]
    stream = stream[np.lexsort((stream.order, stream.turn))[:_MOST_REQUESTS]]
    if not len(stream.rows) or geometry.l1_bytes < geometry.line_bytes:
        return fractions, late
    request, line, mask = _lines_of(profile, stream, geometry)
    instruction = log.instruction[stream.rows][request]
    is_load = loads[instruction]
    kept = is_load | (log.space[stream.rows][request] == SPACE_LOCAL)
    dense = distinct(line)[1]
    if not _wanted_twice(dense[kept], mask[kept], geometry):
        return fractions, late

    capacity = max(1, int(geometry.l1_bytes * share) // geometry.line_bytes)

    hits = sector_hits(dense, mask, kept, int(dense.max()) + 1, capacity)
    wanted, served = (np.bitwise_count(bits.astype(np.uint64)).astype(np.int64) for bits in (mask, hits))
    count = np.bincount(instruction[is_load], wanted[is_load], minlength=len(instructions))
    found = np.bincount(instruction[is_load], served[is_load], minlength=len(instructions))
    np.divide(found, count, out=fractions, where=count > 0)
    waiting = _on_their_way(stream.burst[request], dense, mask, hits).astype(np.float64)
    waves = profile.launch.blocks / (geometry.sm_count * geometry.blocks_per_sm)
    if waves > 1 and dense.max() < capacity:
        # Blocks of later waves find what all blocks read where the first wave has left it.
        waiting[np.isin(line, _lines_of_all(profile, geometry))] /= waves
    waiting = np.where(hits != mask, 1.0, waiting) * is_load
    asked, waits = np.zeros(len(stream.rows)), np.zeros(len(stream.rows))
    np.maximum.at(waits, request, waiting)
    asked[request] = 1.0
    waits = _with_earlier(profile, stream, waits)
    of = log.instruction[stream.rows]
    requests = np.bincount(of, asked, minlength=len(instructions))
    np.divide(np.bincount(of, waits * asked, minlength=len(instructions)), requests, out=late, where=requests > 0)
    return fractions, (late - (1 - fractions)) * (count > 0)


def _with_earlier(profile: Profile, stream: _Stream, waits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """For each request, how likely it or one of its burst whose result is awaited no later must wait."""
    log = profile.accesses
    when = awaited_at(profile.kernel.instructions)[log.instruction[stream.rows]]
    order = np.lexsort((when, stream.burst, stream.owner))
    burst = distinct(stream.owner[order] * (int(stream.burst.max()) + 1) + stream.burst[order])[1]
    # A running maximum that starts again in each burst: bursts are numbered in this order.
    number = np.cumsum(np.r_[True, burst[1:] != burst[:-1]]) - 1
    running = np.maximum.accumulate(number * 2.0 + waits[order]) - number * 2.0
    # Results awaited at the same place have the last one's.
    last = np.r_[(number[1:] != number[:-1]) | (when[order][1:] != when[order][:-1]), True]
    place = np.flatnonzero(last)[np.cumsum(np.r_[False, last[:-1]])]
    result = np.empty_like(waits)
    result[order] = running[place]
    return result


def _on_their_way(burst: Ints, line: Ints, mask: Ints, hits: Ints) -> Bools:
    """Whether any sector of each access to a line was missed by the first of the burst that asked for it."""
    late = np.zeros(len(line), bool)
    key = burst * (int(line.max()) + 1) + line
    for bit in range(int(mask.max()).bit_length()):
        asking = np.flatnonzero(mask >> bit & 1)
        first, group = distinct(key[asking])
        late[asking] |= (hits[asking[first]] >> bit & 1 == 0)[group]
    return late


def _lines_of_all(profile: Profile, geometry: MemoryGeometry) -> Ints:
    """Lines that both the first and the last sampled block ask for: those of a table that all blocks read."""
    lines = []
    for sample in (0, len(profile.blocks) - 1):
        rows = global_rows(profile, sample)[:_MOST_REQUESTS]
        lines.append(lines_touched(profile.accesses, rows, 0, geometry)[1])
    return np.intersect1d(lines[0], lines[1]) if len(profile.blocks) > 1 else np.zeros(0, np.int64)


def _wanted_twice(line: Ints, mask: Ints, geometry: MemoryGeometry) -> bool:
    """Whether any sector is loaded more than once; otherwise nothing can hit."""
    sectors = range(geometry.line_bytes // geometry.sector_bytes)
    return any(np.bincount(line, mask >> bit & 1).max() > 1 for bit in sectors if len(line))


def _cached(modifiers: Sequence[str]) -> bool:
    """Whether a load may hit the L1: volatile and system-scope loads go to L2."""
    return not ("STRONG" in modifiers and ("SYS" in modifiers or "GPU" in modifiers))


@dataclass(frozen=True)
class _Stream:
    """Requests on their way to one L1, shape (requests,) each.

    `rows` are rows of the log; `shift` the bytes that each is moved by; `owner` the resident warp; `burst` its burst;
    `turn` and `order` determine when it issues.
    """

    rows: npt.NDArray[np.intp]
    shift: Ints
    owner: Ints
    burst: Ints
    turn: Ints
    order: Ints

    def __getitem__(self, which: npt.NDArray[Any]) -> _Stream:
        return _Stream(*(getattr(self, f.name)[which] for f in fields(self)))


def _resident(
    profile: Profile, alike: Callable[[int], Alike | None], geometry: MemoryGeometry
) -> tuple[_Stream, float]:
    """The requests of the blocks on one SM, and the fraction of the SM's blocks that they are.

    A sampled block never represents two: the second would find all its data in the L1.
    """
    launch, log = profile.launch, profile.accesses
    resident = range(0, launch.blocks, geometry.sm_count)[: geometry.blocks_per_sm]
    derived = [alike(linear) for linear in resident]
    here = resident if all(derived) else resident[: len(profile.blocks)]
    held = 0
    parts: list[_Stream] = []
    known: dict[int, tuple[npt.NDArray[np.intp], Ints]] = {}
    for position, (linear, like) in enumerate(zip(here, derived, strict=False)):
        like = like if len(here) == len(resident) else None
        sample = like.reference if like else position
        near = like.rows if like else global_rows(profile, sample)
        if sample not in known:
            rows = np.concatenate([near, _local_rows(profile, sample)])
            known[sample] = rows, bursts_of(profile, rows)
        rows, bursts = known[sample]
        shift = np.zeros(len(rows), np.int64)
        if like:
            shift[: len(near)] = like.moves(np.array([linear]))[0][like.mover]
        warps = launch.warps_per_block
        owner = position * warps + log.warp[rows] % warps
        turn = bursts * len(here) + position
        parts.append(_Stream(rows, shift, owner.astype(np.int64), bursts, turn, log.order[rows]))
        held += len(rows)
        if held > 4 * _MOST_REQUESTS:
            break
    if not parts:
        nothing = np.zeros(0, np.int64)
        return _Stream(np.zeros(0, np.intp), nothing, nothing, nothing, nothing, nothing), 1.0
    columns = ((getattr(part, f.name) for part in parts) for f in fields(_Stream))
    return _Stream(*(np.concatenate(list(column)) for column in columns)), len(parts) / len(resident)


def _local_rows(profile: Profile, sample: int) -> npt.NDArray[np.intp]:
    """Log rows of one sampled block's accesses to local memory, by (order, warp)."""
    log, warps = profile.accesses, profile.launch.warps_per_block
    rows = np.flatnonzero((log.warp // warps == sample) & (log.space == SPACE_LOCAL))
    return rows[np.lexsort((log.warp[rows], log.order[rows]))]


def _lines_of(profile: Profile, stream: _Stream, geometry: MemoryGeometry) -> tuple[Ints, Ints, Ints]:
    """Each request as the lines that it touches, in order: (request index, line number, sector bit mask).

    The local memory of each resident warp is disjoint from the others' and lies beyond all global memory.
    """
    log = profile.accesses
    widths = np.array([i.memory.width if i.memory else 4 for i in profile.kernel.instructions], np.int64)
    width = np.where(log.space[stream.rows] == SPACE_LOCAL, widths[log.instruction[stream.rows]], 0)
    parts = []
    for size in np.unique(width).tolist():
        chosen = np.flatnonzero(width == size)
        if size:
            addresses, active = interleave_local(*active_lanes(log, stream.rows[chosen]), size)
            addresses += _BEYOND_GLOBAL + (stream.owner[chosen] << _LOCAL_BITS)[:, None]
            request, line, mask = split_lines(addresses, active, geometry)
        else:
            request, line, mask = lines_touched(log, stream.rows[chosen], stream.shift[chosen], geometry)
        parts.append((chosen[request], line, mask))
    request, line, mask = (np.concatenate(column) for column in zip(*parts, strict=True))
    if len(parts) > 1:
        order = np.argsort(request, kind="stable")
        request, line, mask = request[order], line[order], mask[order]
    return request, line, mask


def lines_touched(
    log: AccessLog, rows: npt.NDArray[np.intp], shift: Ints | int, geometry: MemoryGeometry
) -> tuple[Ints, Ints, Ints]:
    """`split_lines` of logged requests that are moved by `shift` bytes: done once per pattern and alignment."""
    base, pattern = log.base[rows] + shift, log.pattern[rows]
    first, number = distinct(pattern.astype(np.int64) * geometry.line_bytes + base % geometry.line_bytes)
    # All addresses of a pattern are moved up by whole lines, so that none is negative.
    offsets, active = log.offsets[pattern[first]], lane_masks(log.masks[pattern[first]])
    up = -(int(offsets.min(initial=0)) // geometry.line_bytes)
    addresses = (base[first] % geometry.line_bytes + up * geometry.line_bytes)[:, None] + offsets
    of, line, mask = split_lines(addresses, active, geometry)
    lines_of = np.bincount(of, minlength=len(first))
    many = lines_of[number]
    request, ends = np.repeat(np.arange(len(rows)), many), np.cumsum(many)
    at = (np.cumsum(lines_of) - lines_of)[number][request] + np.arange(len(request)) - (ends - many)[request]
    return request, line[at] + (base // geometry.line_bytes - up)[request], mask[at]


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


# A fully associative cache of sectored lines, for the L1 of one SM. A full one evicts any of its lines, as was measured
# on a T4 (Jia et al. 2019, "Dissecting the NVidia Turing T4 GPU via Microbenchmarking", on replacement in the L1): of
# data a little larger than the cache that a block walks through again, most stays, where LRU would keep none.

_sector_hits = Function("sector_hits", "aaannnaaa")
_LINE_WORDS = 2


def sector_hits(
    line: npt.NDArray[np.int64],
    sector_mask: npt.NDArray[np.int64],
    allocate: npt.NDArray[np.bool_],
    line_count: int,
    capacity: int,
) -> npt.NDArray[np.int64]:
    """The sectors of each access that hit, a bit each, in the order of the accesses.

    `line` are dense line numbers 0..line_count-1, `sector_mask` the requested sectors of the line (a bit each),
    `allocate` whether a miss fills them (loads) or not (stores, which are written through). `capacity` is in lines, at
    least one. A full cache replaces a random line; the sequence is the same in every run.
    """
    line, wanted = np.ascontiguousarray(line, np.int64), np.ascontiguousarray(sector_mask, np.int64)
    fills = np.ascontiguousarray(allocate, np.uint8)
    hits = np.zeros(len(line), np.int64)
    lines, resident = np.empty((line_count, _LINE_WORDS), np.int64), np.empty(min(capacity, line_count), np.int64)
    _sector_hits(line, wanted, fills, len(line), line_count, capacity, lines, resident, hits)
    return hits
