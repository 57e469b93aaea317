"""Which of a warp's memory accesses go out together: all that it issues before it has to wait for one of them.

A warp goes on past its loads until an instruction needs a result. What it issues up to there is a burst: it goes out
within a few cycles per access, while a result takes hundreds. Between two bursts other warps and blocks get their
turn.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..kernel.instruction import Instruction
from ..kernel.profile import Profile
from .requests import Ints

_LOADS = ("load", "atomic", "copy")
_FAR = ("global", "generic", "local", "texture")


def bursts_of(profile: Profile, rows: npt.NDArray[np.intp]) -> Ints:
    """The number of the burst that each of these log rows belongs to, from 0 in each warp; shape (rows,)."""
    log = profile.accesses
    waits = _waits_before(profile.kernel.instructions)
    order = np.lexsort((log.order[rows], log.warp[rows]))
    warp, instruction = log.warp[rows][order], log.instruction[rows][order]
    later = np.zeros(len(rows), bool)
    # A step back in the code is another turn of a loop, whose waits lie in between.
    later[1:] = (instruction[1:] <= instruction[:-1]) | (waits[instruction[1:]] != waits[instruction[:-1]])
    number = np.cumsum(later)
    first = np.r_[True, warp[1:] != warp[:-1]][: len(rows)]
    bursts = np.zeros(len(rows), np.int64)
    bursts[order] = number - np.maximum.accumulate(np.where(first, number, 0))
    return bursts


def _waits_before(instructions: tuple[Instruction, ...]) -> Ints:
    """How many waits for an access the code holds up to each instruction, its own included."""
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
