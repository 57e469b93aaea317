"""The access log with the cost of each request, and the sizes of the memory hierarchy that it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.library import Function
from ..kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_REMOTE, SPACE_SHARED, AccessLog, Profile
from .requests import Bools, Ints, interleave_local, lane_masks, sectors_of, shared_wavefronts

# The sizes of a GPU's memory hierarchy that decide where an access is served.


@dataclass(frozen=True, slots=True)
class MemoryGeometry:
    """Bytes unless said otherwise; `l1_bytes` is what the shared-memory carve-out leaves on one SM.

    `l3_bytes` is a cache between L2 and DRAM (0: none). `shared_banks_serve_l1` says whether the banks of shared memory
    are also the L1's data stage. `dirty_share` is the fraction of the L2 that may be dirty; a slice of the L2
    holds `slice_bytes` in a row (0: unknown). Reads of a sector that follow another SM's within `merge_cycles` (0: none
    do) reach the L2, which delivers `l2_rate` bytes a cycle, as one; at most `merged_reads` of them. With `host_bus`,
    the bus to the host has a rate of its own; without, buffers in host memory count as device memory. A first cache of
    constants has `constant_sets` sets of `constant_ways` lines (0: none is known) of `constant_line_bytes`.
    """

    sector_bytes: int
    line_bytes: int
    banks: int
    bank_bytes: int
    l1_bytes: int
    l2_bytes: int
    sm_count: int
    blocks_per_sm: int
    l3_bytes: int = 0
    shared_banks_serve_l1: bool = True
    dirty_share: float = 1.0
    slice_bytes: int = 0
    merge_cycles: float = 0.0
    merged_reads: float = 1.0
    l2_rate: float = 0.0
    row_bytes: int = 0
    host_bus: bool = False
    constant_sets: int = 0
    constant_ways: int = 0
    constant_line_bytes: int = 0

    @property
    def wave_blocks(self) -> int:
        """Blocks that run at once on the whole GPU."""
        return self.sm_count * self.blocks_per_sm


_CHUNK = 1 << 16
_SPACES, _LARGEST = 4, 1 << 62
_number_distinct = Function("number_distinct", "ananaa")


@dataclass(frozen=True)
class RequestTable:
    """The distinct requests of each instruction and block, columns of shape (distinct,): what they cost.

    `sample` is the index of the sampled block, `count` how often it makes the request, `units` sectors (global, local)
    or wavefronts (shared) of one request, `ideal` the fewest units for the same bytes, `lines` distinct cache lines,
    `rows` distinct places of `MemoryGeometry.row_bytes` (0: unknown),
    `passes` the number of bank passes that deliver the data: those of shared memory, also where its banks serve as the
    L1's data stage. `remote` marks what reaches the shared memory of another block of the cluster, which counts as
    shared memory. `number`, of shape (requests,), is the row of each logged request.
    """

    instruction: npt.NDArray[np.int64]
    sample: npt.NDArray[np.int64]
    space: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]
    ideal: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    passes: npt.NDArray[np.int64]
    remote: npt.NDArray[np.bool_]
    number: npt.NDArray[np.int64]


def request_table(profile: Profile, geometry: MemoryGeometry) -> RequestTable:
    """Cost every logged request; equal patterns at equal alignment are costed once."""
    log, instructions = profile.accesses, profile.kernel.instructions
    # 128-byte alignment decides lines and sectors of global memory, and banks of shared memory.
    aligned = geometry.banks * geometry.bank_bytes
    block = log.warp // profile.launch.warps_per_block
    columns = (log.pattern, log.base % aligned, log.space, log.instruction, block)
    sizes = (len(log.masks), aligned, _SPACES, len(instructions), len(profile.blocks))
    first, number = _distinct_together(columns, sizes)
    widths = np.array([i.memory.width if i.memory else 4 for i in instructions], np.int64)
    pattern, align, space, instruction, sample = (column[first].astype(np.int64) for column in columns)
    # What differs in its block or its instruction alone costs the same.
    unique, cost = distinct_rows(np.stack([pattern, align, widths[instruction], space], axis=1))
    costs = np.zeros((5, len(unique)), np.int64)
    for start in range(0, len(unique), _CHUNK):
        costs[:, start : start + _CHUNK] = _cost(unique[start : start + _CHUNK], log, geometry)
    units, ideal, lines, rows, passes = costs[:, cost]
    remote = space == SPACE_REMOTE
    return RequestTable(
        instruction=instruction,
        sample=sample,
        space=np.where(remote, SPACE_SHARED, space),
        count=np.bincount(number, minlength=len(first)),
        units=units,
        ideal=ideal,
        lines=lines,
        rows=rows,
        passes=passes,
        remote=remote,
        number=number,
    )


def _distinct_together(columns: Sequence[npt.NDArray[Any]], sizes: Sequence[int]) -> tuple[Ints, Ints]:
    """`distinct` of rows that are given by columns, each with values from 0 to below its size."""
    words, range_of = np.zeros(len(columns[0]), np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if range_of * size > _LARGEST:
            first, words = distinct(words)
            range_of = len(first)
        words *= size
        words += column
        range_of *= size
    return distinct(words)


def distinct(words: Ints) -> tuple[Ints, Ints]:
    """Where each distinct word appears first, and for each word the number of its, in the order of their appearance."""
    count = len(words)
    table = np.zeros(1 << (2 * count).bit_length(), np.int64)
    first, number = np.empty(count, np.int64), np.empty(count, np.int64)
    words = np.ascontiguousarray(words, np.int64)
    return first[: _number_distinct(words, count, table, len(table), first, number)], number


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """The distinct rows of a matrix in ascending order, and for each row the number of its."""
    number = np.zeros(len(rows), np.int64)
    for column in rows.T:
        first, each = distinct(column)
        number = distinct(number * len(first) + each)[1]
    unique = rows[distinct(number)[0]]
    order = np.lexsort(unique.T[::-1])
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return unique[order], place[number]


def _cost(requests: Ints, log: AccessLog, geometry: MemoryGeometry) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    pattern, align, width, space = requests.T
    active = lane_masks(log.masks[pattern])
    addresses = align[:, None] + log.offsets[pattern]
    units, ideal, lines, rows, passes = np.zeros((5, len(requests)), np.int64)
    for size in sorted({*width.tolist()}):
        for kind in (SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_REMOTE):
            at = np.flatnonzero((width == size) & (space == kind))
            if not len(at):
                continue
            where, on = addresses[at], active[at]
            if kind in (SPACE_SHARED, SPACE_REMOTE):
                units[at], ideal[at] = shared_wavefronts(where, on, int(size), geometry.banks, geometry.bank_bytes)
                passes[at] = units[at]
                continue
            if kind == SPACE_GLOBAL and geometry.shared_banks_serve_l1:
                passes[at], _ = shared_wavefronts(where, on, int(size), geometry.banks, geometry.bank_bytes)
            if kind == SPACE_LOCAL:
                where, on = interleave_local(where, on, int(size))
            units[at] = sectors_of(where, on, geometry.sector_bytes)
            lines[at] = sectors_of(where, on, geometry.line_bytes)
            if kind == SPACE_GLOBAL and geometry.row_bytes:
                rows[at] = sectors_of(where, on, geometry.row_bytes)
            ideal[at] = -(-active[at].sum(1) * int(size) // geometry.sector_bytes)
    return units, np.minimum(ideal, units) if len(ideal) else ideal, lines, rows, passes


def active_lanes(log: AccessLog, rows: npt.NDArray[np.intp]) -> tuple[Ints, Bools]:
    """Full addresses and activity of some logged requests, shape (rows, lanes) each."""
    pattern = log.pattern[rows]
    return log.base[rows, None] + log.offsets[pattern], lane_masks(log.masks[pattern])
