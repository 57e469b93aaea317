"""Whether blocks of a launch steer by what other blocks of it write: then no block runs as it does alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..kernel.cfg import ends_block
from ..kernel.dataflow import Dataflow
from ..kernel.profile import SPACE_GLOBAL, Profile
from ..kernel.registers import address_places
from .table import active_lanes

_READS, _WRITES = ("load", "atomic"), ("store", "atomic", "reduction")
_WORD = 4
_CHUNK = 1 << 16


def reads_of_others(profile: Profile) -> int | None:
    """An instruction that reads what another block of the launch writes, and whose result steers; None: there is none.

    A result steers where a branch or an address follows from it. What is seen are addresses of the sampled blocks.
    """
    log = profile.accesses
    instructions = profile.kernel.instructions
    if len(profile.blocks) < 2 or not len(log):
        return None
    kinds = [i.memory.kind if i.memory else "" for i in instructions]
    reads, writes = (np.array([kind in wanted for kind in kinds], np.bool_) for wanted in (_READS, _WRITES))
    # A buffer that is only read, or only written, needs no closer look.
    starts = np.sort(np.array([address for address, _ in profile.allocations.values()], np.int64))
    buffer = np.searchsorted(starts, log.base, side="right")
    outside = log.space == SPACE_GLOBAL
    read, written = (np.flatnonzero(some[log.instruction] & outside) for some in (reads, writes))
    both = np.intersect1d(buffer[read], buffer[written])
    written = written[np.isin(buffer[written], both)]
    read = read[np.isin(buffer[read], both)]
    if not len(read) or not len(written):
        return None
    places, first, last = _writers(profile, written)
    found: set[int] = set()
    for start in range(0, len(read), _CHUNK):
        words, block, instruction = _words(profile, read[start : start + _CHUNK])
        at = np.minimum(np.searchsorted(places, words), len(places) - 1)
        theirs = (places[at] == words) & ((first[at] != block) | (last[at] != block))
        found |= set(np.unique(instruction[theirs]).tolist())
    steering = _steering(profile) if found else set()
    return min(found & steering, default=None)


def _words(
    profile: Profile, rows: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """First and last words of 4 bytes that these requests reach, with sampled block and instruction of each."""
    log = profile.accesses
    addresses, active = active_lanes(log, rows)
    row, _ = np.nonzero(active)
    widths = np.array([i.memory.width if i.memory else _WORD for i in profile.kernel.instructions], np.int64)
    instruction = log.instruction[rows][row].astype(np.int64)
    block = (log.warp[rows] // profile.launch.warps_per_block)[row].astype(np.int64)
    begin = addresses[active]
    words = np.concatenate([begin // _WORD, (begin + widths[instruction] - 1) // _WORD])
    return words, np.tile(block, 2), np.tile(instruction, 2)


def _writers(
    profile: Profile, rows: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Words that are written, in order, and the first and the last sampled block that does so."""
    parts = [_words(profile, rows[start : start + _CHUNK])[:2] for start in range(0, len(rows), _CHUNK)]
    words, block = (np.concatenate(column) for column in zip(*parts, strict=True))
    places, of_place = np.unique(words, return_inverse=True)
    first, last = np.full(len(places), len(profile.blocks)), np.full(len(places), -1)
    np.minimum.at(first, of_place, block)
    np.maximum.at(last, of_place, block)
    return places, first, last


def _steering(profile: Profile) -> set[int]:
    """Instructions whose results reach a branch, a guard or an address, by way of shared memory too."""
    code = profile.kernel.instructions
    flow = Dataflow(code, profile.cfg)
    # What a store to global memory is given goes no further.
    pending = [
        producer
        for index, i in enumerate(code)
        if ends_block(i) or i.memory is not None or i.guard is not None
        for producer in flow.producers_of(index, None if ends_block(i) else address_places(i))
    ]
    stores = [k for k, i in enumerate(code) if i.memory and i.memory.space == "shared" and i.memory.kind == "store"]
    found: set[int] = set()
    while pending:
        index = pending.pop()
        if index in found:
            continue
        found.add(index)
        pending += flow.producers_of(index)
        memory = code[index].memory
        if memory is not None and memory.space in ("shared", "generic") and memory.kind == "load":
            pending += stores
    return found
