"""Code that does the same as a kernel's but for what it computes, and whether what it reads shows that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError
from ...kernel.instruction import Instruction
from ...kernel.profile import SPACE_GLOBAL, AccessLog
from .bits import LANES
from .compiled.layout import Log
from .machine import RANK_SHIFT, Machine
from .recorder import Recorder

_WIDEST, _WORD = 16, 4
"""Bytes of the widest access of a thread to shared memory, and of a bank."""


@dataclass(frozen=True, slots=True)
class Brief:
    """Code that does the same as a kernel's but for what it computes.

    `watched` are the accesses to memory whose results matter, if they must not read what a tensor copy leaves out or
    what a store in `wrong` writes: whether they do is seen as the code runs. `uncounted` are instructions left out
    although not every lane executes them.
    """

    code: tuple[Instruction, ...]
    watched: frozenset[int] = frozenset()
    wrong: frozenset[int] = frozenset()
    uncounted: frozenset[int] = frozenset()


class UncopiedError(EmulationError):
    """Brief code reads what it leaves out: the launch must run without it."""


def check_reads(recorder: Recorder, machine: Machine, first: int, brief: Brief) -> None:
    """Raise UncopiedError if watched accesses from row `first` on read what had been left out, or was wrong, before."""
    read, last = _touched(recorder, machine, first, brief.watched, latest=True)
    per_unit = machine.warps_per_block * machine.cluster_blocks
    for (start, size), row in machine.uncopied.items():
        block, at = divmod(start, machine.shared_stride)
        at += (recorder.first_warp // per_unit + block // machine.cluster_blocks) << RANK_SHIFT
        inside = slice(*np.searchsorted(read, (at - _WORD + 1, at + size)))
        if (last[inside] >= row).any():
            raise UncopiedError("an address or a branch depends on what a tensor copy brings")
    written, earliest = _touched(recorder, machine, first, brief.wrong)
    _, mine, theirs = np.intersect1d(read, written, assume_unique=True, return_indices=True)
    log, end = recorder.log, recorder.logged
    far = [rows[log.space[rows] == SPACE_GLOBAL] for rows in (
        _rows_of(log.instruction[first:end], brief.watched) + first, _rows_of(log.instruction[:end], brief.wrong)
    )]  # fmt: skip
    if (last[mine] > earliest[theirs]).any() or _meet(log._replace(offsets=log.offsets.reshape(-1, LANES)), *far):
        raise UncopiedError("an address or a branch depends on what was left out")


def _touched(
    recorder: Recorder, machine: Machine, first: int, accesses: frozenset[int], latest: bool = False
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The words of shared memory that these instructions access from row `first` on, and the first or latest row.

    A word is its address plus the number of the block or cluster in units of what a block can address.
    """
    log, per_unit, step = recorder.log, machine.warps_per_block * machine.cluster_blocks, -1 if latest else 1
    words, order = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number in accesses:
        mine = (np.flatnonzero(log.instruction[first : recorder.logged] == number) + first)[::step]
        mine = mine[log.space[mine] != SPACE_GLOBAL]
        unit = log.warp[mine].astype(np.int64) // per_unit
        _, chosen = np.unique(np.stack([unit, log.base[mine], log.pattern[mine]]), axis=1, return_index=True)
        rows, memory = mine[chosen], machine.kernel.instructions[number].memory
        each = _WORD * np.arange(max(memory.width if memory else _WIDEST, _WORD) // _WORD)
        lanes = (log.masks[log.pattern[rows]][:, None] >> np.arange(LANES, dtype=np.uint32) & 1).astype(np.bool_)
        places = (log.base[rows, None] + log.offsets.reshape(-1, LANES)[log.pattern[rows]]) % (1 << RANK_SHIFT)
        places += unit[chosen, None] << RANK_SHIFT
        words.append((places[lanes][:, None] // _WORD * _WORD + each).reshape(-1))
        order.append(np.repeat(np.broadcast_to(rows[:, None], lanes.shape)[lanes], len(each)))
    found, at = np.concatenate(words), np.concatenate(order)
    sort = np.lexsort((step * at, found))
    unique, chosen = np.unique(found[sort], return_index=True)
    return unique, at[sort][chosen]


def reads_back(log: AccessLog, watched: frozenset[int], wrong: frozenset[int]) -> bool:
    """Whether some instructions read from memory what others write there, as far as a log shows."""
    return _meet(log, _rows_of(log.instruction, watched), _rows_of(log.instruction, wrong))


def _rows_of(instruction: npt.NDArray[np.int32], some: frozenset[int]) -> npt.NDArray[np.intp]:
    return np.flatnonzero(np.isin(instruction, np.array(sorted(some), np.int32)))


def _meet(log: AccessLog | Log, some: npt.NDArray[np.intp], others: npt.NDArray[np.intp]) -> bool:
    """Whether rows of a log touch the same memory as others, in units as wide as the widest access."""
    return len(some) > 0 and len(others) > 0 and len(np.intersect1d(_units(log, some), _units(log, others))) > 0


def _units(log: AccessLog | Log, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """What rows of a log touch: numbers of units in global memory, negative ones in shared or local memory."""
    place = np.stack([log.base[rows], log.pattern[rows].astype(np.int64), log.space[rows].astype(np.int64)])
    base, pattern, space = np.unique(place, axis=1)
    on = (log.masks[pattern][:, None] >> np.arange(LANES, dtype=np.uint32)) & 1 == 1
    first = base[:, None] + log.offsets[pattern]
    near = np.broadcast_to((space != SPACE_GLOBAL)[:, None], on.shape)
    first = np.where(near, first % (1 << RANK_SHIFT), first)[on]
    units = np.stack([first, first + _WIDEST - 1]) // _WIDEST
    return np.unique(np.where(near[on], -1 - units, units))
