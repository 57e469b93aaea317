"""How each memory instruction of a kernel behaves on one GPU: the mapper g of the analysis paper (§3.1.3).

`analyse_memory` is the only entry point; another mapper with the same result may replace it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ..kernel.launch.arguments import host_buffers
from ..kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED, Profile
from .affine import fit_affine
from .constants import constant_misses
from .contention import ATOMIC, Busiest, busiest_address, contended_loop, lanes_together, reads_of_others
from .dram import SETTLED_DEPARTURE, LocalShares, dirty_at_the_end, dram_traffic, follow, local_sectors, local_shares
from .followed import EmulateBlocks, Look
from .pending import in_step
from .stream import l1_hit_fractions
from .table import MemoryGeometry, RequestTable, request_table
from .waves import WaveTotals, merged_shares


@dataclass(frozen=True, slots=True)
class AccessBehaviour:
    """Means over all executions of one memory instruction, those without an active lane included.

    `units` are sectors (global, local) or wavefronts (shared) per execution, `lines` distinct cache lines. `l1_hit` is
    the fraction of sectors that the L1 serves, `l1_late` how much more often a result comes from beyond the L1 than a
    sector does: a request waits for all of its sectors, for those that another access has just asked for, and for the
    other loads that its warp awaits with it. `l2_hit` is the fraction of the sectors that miss the L1 which the L2
    serves, `l2_late` that of results which come from beyond the L2 although their sector hits there: another block has
    just asked DRAM for it. `dram_read` and `dram_write` are sectors per execution from and to DRAM. `passes` counts
    passes through the banks of the data stage;
    `lanes` the lanes of an atomic on global memory; `same_address` those of them that target the grid's most contended
    address, `same_slice` its most contended slice of the L2; `together` is how many of a request share an address.
    `l3_hit` is the fraction of L2 misses that an L3 serves, `requests` the fraction of executions that have an active
    lane. `remote` is the fraction of wavefronts at the shared memory of another block of the cluster. `host` is the
    fraction of sectors in host memory: `host_read` and `host_write` cross the bus to it instead of going to DRAM.
    `merged` is the fraction of its sectors beyond the L1 that reach the L2 where others' reads of them are merged.
    `apart` is the fraction of sectors of which each opens a row of DRAM (0 where the GPU's rows are not known).
    `atomics_factor` multiplies the time of atomics, to try what if they took longer.
    """

    executions: float
    space: int
    units: float
    lines: float
    l1_hit: float = 0.0
    l2_hit: float = 0.0
    dram_read: float = 0.0
    dram_write: float = 0.0
    passes: float = 0.0
    requests: float = 1.0
    l3_hit: float = 0.0
    same_address: float = 0.0
    same_slice: float = 0.0
    together: float = 1.0
    lanes: float = 0.0
    remote: float = 0.0
    atomics_factor: float = 1.0
    l1_late: float = 0.0
    l2_late: float = 0.0
    host: float = 0.0
    host_read: float = 0.0
    host_write: float = 0.0
    merged: float = 1.0
    apart: float = 0.0


@dataclass(frozen=True)
class MemoryBehaviour:
    """Behaviour by instruction index, and totals over the whole grid.

    Sectors and wavefronts are counts, `dram_read_bytes` and `dram_write_bytes` bytes, rates fractions 0..1 (None where
    nothing was accessed). `method` says where the L2 and DRAM figures come from: ``affine``, ``followed``, ``emulated``
    or ``bounded``. If sharing between blocks in the L2 could not be followed to the end, `dram_read_range` holds the
    least and the most bytes that may be read. `contended` is a compare-and-swap in a retry loop that several blocks aim
    at one address. `dependent` is a read of data that other blocks of the launch write and that decides what the block
    does. `dirty_bytes` are written bytes still in the L2 when the kernel ends; 0 if an earlier run left as many.
    `host_read_bytes` and `host_write_bytes` cross the bus to host memory. `constant_addresses` is as in `Profile`,
    `constant_misses` the result of `constants.constant_misses`.
    """

    accesses: Mapping[int, AccessBehaviour]
    global_load_sectors: float
    global_store_sectors: float
    shared_wavefronts: float
    shared_conflict_degree: float | None
    l1_hit_rate: float | None
    l2_hit_rate: float | None
    dram_read_bytes: float
    dram_write_bytes: float
    method: str
    notes: tuple[str, ...] = ()
    dirty_bytes: float = 0.0
    dram_read_range: tuple[float, float] | None = None
    contended: int | None = None
    dependent: int | None = None
    host_read_bytes: float = 0.0
    host_write_bytes: float = 0.0
    constant_addresses: Mapping[int, float] = field(default_factory=dict)
    constant_misses: Mapping[int, float] = field(default_factory=dict)

    @property
    def dram_bytes(self) -> float:
        """Bytes between L2 and DRAM, in both directions."""
        return self.dram_read_bytes + self.dram_write_bytes


def analyse_memory(
    profile: Profile,
    geometry: MemoryGeometry,
    *,
    warm_l2: bool = False,
    emulate_blocks: EmulateBlocks | None = None,
    looks: Iterable[Look] = (),
) -> MemoryBehaviour:
    """Model every access of a profile on a GPU with this geometry.

    Further blocks are run only if addresses are not affine in the block index: briefly by `looks`, a list of ways with
    the cheapest first, and whole by `emulate_blocks`.
    """
    asked = _Asked.of(profile, request_table(profile, geometry), geometry.host_bus)
    affine = fit_affine(profile)
    followed = None
    if affine is None or affine.departure > SETTLED_DEPARTURE:
        if len(profile.blocks) == profile.launch.blocks:
            affine = None  # every block is present: none represents another
        else:
            followed = follow(profile, looks, emulate_blocks, geometry)
    # The L1 is write-through: it serves no store.
    alike = followed.class_of if followed else lambda block: affine
    l1_hit, l1_late = l1_hit_fractions(profile, alike, geometry)
    l1_hit = np.where(asked.stores, 0.0, l1_hit)
    to_l2 = asked.units * (1 - l1_hit)
    each = float(to_l2[asked.space == SPACE_GLOBAL].sum()) / profile.launch.blocks
    totals, method = dram_traffic(profile, followed or affine, geometry, warm_l2, emulate_blocks, each)
    beyond, larger = totals, geometry
    if geometry.l3_bytes > geometry.l2_bytes:
        # An L3 passes on what an L2 of its size would.
        larger = replace(geometry, l2_bytes=geometry.l3_bytes)
        beyond, _ = dram_traffic(profile, followed or affine, larger, warm_l2, emulate_blocks, each)
    own = local_sectors(profile, geometry)
    for part, sizes in ((totals, geometry), (beyond, larger)) if beyond is not totals else ((totals, geometry),):
        if profile.logged is not None:
            for counts in (part.fetched, part.written):
                counts.update({index: sectors / profile.logged[index] for index, sectors in counts.items()})
        if method == "affine" or len(profile.blocks) == profile.launch.blocks:
            # Elsewhere the sampled blocks may ask for less than those that were followed.
            _at_most(part, to_l2 - asked.local * (1 - l1_hit))
        stored = float(asked.local[asked.stores].sum())
        shares = local_shares(profile.launch.blocks, own, stored, sizes, part)
        _add_local(part, asked.local, asked.local * (1 - l1_hit), asked.stores, shares)
    busiest = busiest_address(profile, followed or affine, geometry.slice_bytes)
    together = np.zeros(len(asked.units))
    if any(totals.away.values()):  # else the L2 holds all that is read
        loads = np.array([bool(i.memory and i.memory.kind in ("load", "copy")) for i in profile.kernel.instructions])
        together = in_step(profile, alike, geometry, loads)
    accesses = _accesses(profile, asked, (l1_hit, l1_late, together), totals, beyond, busiest)
    if totals.read:
        accesses |= _with_merged(profile, accesses, np.where(asked.space == SPACE_SHARED, 0.0, to_l2), totals, geometry)
    judged = _summary(profile, geometry, asked, accesses, (totals, beyond), method)
    # A retry loop around compare-and-swap depends only on what others wrote, so nothing more needs modelling.
    contended = contended_loop(profile, busiest)
    dependent = reads_of_others(profile) if contended is None else None
    judged = replace(
        judged,
        contended=contended,
        dependent=dependent,
        constant_addresses=profile.constant_addresses,
        constant_misses=constant_misses(profile, geometry),
    )
    return judged if warm_l2 else replace(judged, dirty_bytes=_dirty_bytes(profile.launch.blocks, own, larger, beyond))


SEPARATE, SEVERAL = 0.9, 8.0
"""A request is scattered if this fraction of its sectors lie in separate places and it has this many sectors."""


@dataclass(frozen=True)
class _Asked:
    """What each instruction asks of memory over the grid, shape (instructions,); `weight` is per row of the table.

    `host` is the fraction of its sectors of global memory that lie in host memory.
    """

    table: RequestTable
    weight: npt.NDArray[np.float64]
    units: npt.NDArray[np.float64]
    apart: npt.NDArray[np.float64]
    lines: npt.NDArray[np.float64]
    passes: npt.NDArray[np.float64]
    requests: npt.NDArray[np.float64]
    local: npt.NDArray[np.float64]
    space: npt.NDArray[np.intp]
    remote: npt.NDArray[np.float64]
    host: npt.NDArray[np.float64]
    stores: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, profile: Profile, table: RequestTable, host_bus: bool) -> _Asked:
        instructions = profile.kernel.instructions
        count = len(instructions)
        weights = np.array([sample.weight for sample in profile.blocks], np.float64)
        weight = weights[table.sample] * table.count
        # An asynchronous copy is logged twice, where it reads and where it writes; the read determines its cost.
        copies = np.array([bool(i.memory and i.memory.kind == "copy") for i in instructions])
        counted = weight * ~(copies[table.instruction] & (table.space == SPACE_SHARED))
        if profile.logged is not None:
            # Each logged access also represents those that the log leaves out.
            weight = weight / profile.logged[table.instruction]
            counted = counted / profile.logged[table.instruction]

        apart = (table.rows >= SEPARATE * table.units) & (table.units >= SEVERAL)

        def total(amounts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            return np.bincount(table.instruction, amounts, minlength=count).astype(np.float64)

        return cls(
            table=table,
            weight=weight,
            units=total(table.units * counted),
            apart=total(table.units * counted * apart),
            lines=total(table.lines * weight),
            passes=total(table.passes * counted),
            requests=total(counted * (table.units > 0)),
            local=total(table.units * counted * (table.space == SPACE_LOCAL)),
            space=_spaces(table, counted, count),
            remote=total(table.units * counted * table.remote),
            host=_host_share(profile, table) if host_bus else np.zeros(count),
            stores=np.array([bool(i.memory and i.memory.kind == "store") for i in instructions]),
        )


def _accesses(
    profile: Profile,
    asked: _Asked,
    at_l1: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]],
    totals: WaveTotals,
    beyond: WaveTotals,
    busiest: Busiest,
) -> dict[int, AccessBehaviour]:
    """Means by instruction; `at_l1` are `l1_hit`, `l1_late` and `in_step`, `totals` the sectors that miss the L2,
    `beyond` those that miss the L3 too."""
    l1_hit, l1_late, first_together = at_l1
    executions = profile.executions()
    to_l2 = asked.units * (1 - l1_hit)
    atomics = np.array([bool(i.memory and i.memory.kind in ATOMIC) for i in profile.kernel.instructions], np.bool_)
    weights = np.array([sample.weight for sample in profile.blocks])
    lanes = np.where(atomics, weights @ profile.thread_instructions, 0)
    together = lanes_together(profile)
    accesses: dict[int, AccessBehaviour] = {}
    for index in np.unique(asked.table.instruction).tolist():
        runs = float(executions[index])
        missed = totals.fetched.get(index, 0.0)
        fetched, written = beyond.fetched.get(index, 0.0) / runs, beyond.written.get(index, 0.0) / runs
        host = float(asked.host[index])
        hit = float(np.clip(1 - missed / to_l2[index], 0, 1)) if to_l2[index] else 1.0
        # Of the results that come from beyond the L1, those whose block asks for a sector just as others do.
        waits, in_turn = 1 - l1_hit[index] + l1_late[index], first_together[index]
        pending = totals.away.get(index, 0.0) * in_turn / max(waits, in_turn) if in_turn else 0.0
        accesses[index] = AccessBehaviour(
            executions=runs,
            space=int(asked.space[index]),
            units=float(asked.units[index]) / runs,
            lines=float(asked.lines[index]) / runs,
            l1_hit=float(l1_hit[index]),
            l1_late=float(l1_late[index]),
            l2_hit=hit,
            l2_late=max(0.0, float(pending) - (1 - hit)),
            dram_read=fetched * (1 - host),
            dram_write=written * (1 - host),
            passes=float(asked.passes[index]) / runs,
            requests=float(asked.requests[index]) / runs,
            l3_hit=max(0.0, 1 - fetched * runs / missed) if missed else 0.0,
            same_address=float(busiest.lanes[index]) / runs,
            same_slice=float(busiest.slice_lanes[index]) / runs,
            together=float(together[index]),
            lanes=float(lanes[index]) / runs,
            remote=float(asked.remote[index] / asked.units[index]) if asked.remote[index] else 0.0,
            host=host,
            apart=float(asked.apart[index] / asked.units[index]) if asked.apart[index] else 0.0,
            host_read=fetched * host,
            host_write=written * host,
        )
    return accesses


def _with_merged(
    profile: Profile,
    accesses: Mapping[int, AccessBehaviour],
    to_l2: npt.NDArray[np.float64],
    totals: WaveTotals,
    geometry: MemoryGeometry,
) -> dict[int, AccessBehaviour]:
    """The accesses whose reads are merged before the L2, of `to_l2` sectors of the grid."""
    blocks, kinds = profile.launch.blocks, [i.memory.kind if i.memory else "" for i in profile.kernel.instructions]
    logged = np.ones(len(kinds)) if profile.logged is None else profile.logged
    read = {
        index: (wave / logged[index], block / logged[index])
        for index, (wave, block) in totals.read.items()
        if kinds[index] in _MERGED
    }
    size = min(blocks, geometry.wave_blocks)
    shares = merged_shares(to_l2 * size / blocks, size, read, geometry)
    return {index: replace(accesses[index], merged=share) for index, share in shares.items()}


def _host_share(profile: Profile, table: RequestTable) -> npt.NDArray[np.float64]:
    """The fraction of each instruction's sectors of global memory that lie in host memory, shape (instructions,)."""
    log, count = profile.accesses, len(profile.kernel.instructions)
    there = np.zeros(len(log), np.bool_)
    for name in host_buffers(profile.kernel, profile.launch):
        address, size = profile.allocations.get(name, (0, 0))
        there |= (log.base >= address) & (log.base < address + size)
    if not there.any():
        return np.zeros(count)
    weights = np.array([sample.weight for sample in profile.blocks], np.float64)
    sectors = (table.units * weights[table.sample])[table.number] * (log.space == SPACE_GLOBAL)
    every = np.bincount(log.instruction, sectors, minlength=count)
    host = np.bincount(log.instruction, sectors * there, minlength=count)
    return np.divide(host, every, out=np.zeros(count), where=every > 0)


def with_dram_reads(behaviour: MemoryBehaviour, read_bytes: float) -> MemoryBehaviour:
    """The same with this many bytes read from DRAM: more or fewer of the L2's requests hit there."""
    if not behaviour.dram_read_bytes:
        return behaviour
    factor = read_bytes / behaviour.dram_read_bytes

    def other(access: AccessBehaviour) -> AccessBehaviour:
        missed = min(1.0, (1 - access.l2_hit) * factor)
        return replace(access, dram_read=access.dram_read * factor, l2_hit=1 - missed)

    return replace(
        behaviour,
        accesses={index: other(access) for index, access in behaviour.accesses.items()},
        dram_read_bytes=read_bytes,
    )


def with_slower_host(behaviour: MemoryBehaviour, times: float = 1.0, cached: bool = True) -> MemoryBehaviour:
    """The same with `times` the bytes on the bus to the host; `cached`: the L2 may keep host memory."""

    def other(access: AccessBehaviour) -> AccessBehaviour:
        read, written = access.host_read, access.host_write
        if not cached:
            asked = access.units * (1 - access.l1_hit) * access.host
            read, written = (read, max(written, asked)) if written > read else (max(read, asked), written)
        hit = access.l2_hit if cached else access.l2_hit * (1 - access.host)
        return replace(access, host_read=read * times, host_write=written * times, l2_hit=hit)

    return replace(behaviour, accesses={i: other(one) if one.host else one for i, one in behaviour.accesses.items()})


def _spaces(table: RequestTable, counted: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.intp]:
    """The memory space that most of each instruction's counted accesses reach; of all accesses if none is counted."""
    kinds = 3
    cell = table.instruction * kinds + table.space
    every = np.bincount(cell, table.count, minlength=count * kinds).reshape(count, kinds)
    some = np.bincount(cell, table.count * (counted > 0), minlength=count * kinds).reshape(count, kinds)
    found: npt.NDArray[np.intp] = np.where(some.any(axis=1, keepdims=True), some, every).argmax(axis=1)
    return found


_ROUNDING = 1e-9
"""Sums of fractional weights that differ by less, as a fraction, are equal."""


def _at_most(totals: WaveTotals, to_l2: npt.NDArray[np.float64]) -> None:
    """Limit what DRAM delivers to the sectors that miss the L1, which may still hold what the L2 has evicted."""
    fetched = sum(totals.fetched.values())
    asked = float(to_l2[list(totals.fetched)].sum())
    if totals.fetches is not None:
        totals.fetches = min(totals.fetches[0], asked), min(totals.fetches[1], asked)
    if asked < fetched * (1 - _ROUNDING):
        totals.fetched.update({index: sectors * asked / fetched for index, sectors in totals.fetched.items()})


def _add_local(
    totals: WaveTotals,
    stored: npt.NDArray[np.float64],
    to_l2: npt.NDArray[np.float64],
    stores: npt.NDArray[np.bool_],
    shares: LocalShares,
) -> None:
    """Add local memory: `stored` sectors by store instructions, `to_l2` of all others."""
    for index in np.flatnonzero(stored).tolist():
        if stores[index]:
            totals.written[index] = totals.written.get(index, 0.0) + float(stored[index]) * shares.written
        else:
            more = float(to_l2[index]) * shares.missed
            totals.fetched[index] = totals.fetched.get(index, 0.0) + more
            if totals.fetches is not None:
                totals.fetches = totals.fetches[0] + more, totals.fetches[1] + more


def _dirty_bytes(blocks: int, local: float, geometry: MemoryGeometry, totals: WaveTotals) -> float:
    size, read, written = totals.last
    dirty = dirty_at_the_end(read, written + size * local, blocks / size, geometry)
    return min(dirty, sum(totals.written.values())) * geometry.sector_bytes


def _summary(
    profile: Profile,
    geometry: MemoryGeometry,
    asked: _Asked,
    accesses: Mapping[int, AccessBehaviour],
    waves: tuple[WaveTotals, WaveTotals],
    method: str,
) -> MemoryBehaviour:
    """Totals over the grid; `waves` is the traffic beyond the L2, to and from DRAM."""
    totals, beyond = waves
    kinds = [i.memory.kind if i.memory else "" for i in profile.kernel.instructions]

    def sectors(*wanted: str) -> float:
        return sum(
            a.units * a.executions for i, a in accesses.items() if a.space == SPACE_GLOBAL and kinds[i] in wanted
        )

    shared = asked.table.space == SPACE_SHARED
    wavefronts = float((asked.table.units * asked.weight)[shared].sum())
    ideal = float((asked.table.ideal * asked.weight)[shared].sum())
    # The copy engine bypasses the L1 and goes to the L2.
    cached = sectors("load", "copy")
    hits = sum(
        a.units * a.executions * a.l1_hit
        for i, a in accesses.items()
        if a.space == SPACE_GLOBAL and kinds[i] in ("load", "copy")
    )
    at_l2 = sum(a.units * a.executions * (1 - a.l1_hit) for a in accesses.values() if a.space != SPACE_SHARED)
    fetched = sum(totals.fetched.values())
    read, written, read_range = sum(beyond.fetched.values()), sum(beyond.written.values()), None
    host_read, host_write = (sum(getattr(a, way) * a.executions for a in accesses.values()) for way in _HOST)
    if beyond.fetches is not None:
        least, most = beyond.fetches
        sector = geometry.sector_bytes * (1 - host_read / read if host_read else 1.0)
        read_range = least * sector, most * sector
    return MemoryBehaviour(
        accesses=accesses,
        global_load_sectors=cached + sectors("bulk_load"),
        global_store_sectors=sectors("store", "bulk_store"),
        shared_wavefronts=wavefronts,
        shared_conflict_degree=_rate(wavefronts, ideal),
        l1_hit_rate=_rate(hits, cached),
        l2_hit_rate=_rate(max(0.0, at_l2 - fetched), at_l2),
        dram_read_bytes=max(0.0, read - host_read) * geometry.sector_bytes,
        dram_write_bytes=max(0.0, written - host_write) * geometry.sector_bytes,
        method=method,
        dram_read_range=read_range,
        host_read_bytes=host_read * geometry.sector_bytes,
        host_write_bytes=host_write * geometry.sector_bytes,
    )


_HOST = ("host_read", "host_write")
_MERGED = ("load", "copy", "bulk_load")
"""Kinds of accesses that only read."""


def _rate(part: float, whole: float) -> float | None:
    """A quotient without the rounding noise of fractional sample weights; None if the divisor is 0."""
    return round(float(part) / float(whole), 12) if whole else None
