"""Tensor memory of compute capability 10.x: its addresses, its allocation, shifts, and commits to a barrier.

An address has its lane in the high half and its column in the low one. `tmem[UR4+0x3]` adds to it.

UTCATOMSWS works on the bits of allocated units of 32 columns: FIND_AND_SET takes as many aligned ones as its operand
says, AND keeps those in its mask. Compilers write the loop that waits for room, and keep books in the reserved shared
memory. Blocks that allocate as a pair (2CTA) tell each other the place by a barrier there, which is never initialised
by code: the first block of the pair finds it with phase 1, the second with phase 0, both for one arrival.

Asynchronous operations complete when they issue, so that a commit (UTCBAR) arrives at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import Address, Instruction, Operand, Predicate
from .bits import LANES
from .bulk_copy import Site
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .machine import TENSOR_COLUMNS, TENSOR_LANES, Machine
from .mbarrier import BarrierWords, Word
from .operands import Fetch

Ints = npt.NDArray[np.int64]
_PAIR_BARRIER = 0x48
"""Where ptxas keeps the barrier of a pair that allocates, in the reserved part of shared memory."""


# Addresses -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorAddress:
    """An operand `tmem[UR4+0x3]`: `lane` and `column` of a warp's address; `where` is for messages."""

    fetch: Fetch
    offset: int
    where: str

    def of(self, f: Frame) -> list[tuple[int, int]]:
        """Lane and column for each row of the frame."""
        return [(word >> 16 & TENSOR_LANES - 1, word & 0xFFFF) for word in self.words(f).tolist()]

    def words(self, f: Frame) -> Ints:
        """The address for each row of the frame."""
        return np.asarray(np.broadcast_to(self.fetch(f), (f.rows, 1))[:, 0].astype(np.int64) + self.offset)

    def check(self, machine: Machine, block: int, column: int, count: int, what: str) -> None:
        """Raises EmulationError if a block has not allocated these columns."""
        if column + count > TENSOR_COLUMNS or not machine.tensor.holds(block, column, count):
            raise EmulationError(
                f"{self.where}: {what} columns {column} to {column + count - 1} of tensor memory, "
                f"which block {machine.launch.coordinates(machine.blocks[block])} has not allocated"
            )


def tensor_address(d: Decoder, i: Instruction, operand: Operand) -> TensorAddress:
    """The tensor-memory address that an operand gives."""
    if not isinstance(operand, Address) or operand.descriptor is None:
        raise UnsupportedInstructionError(f"operand {operand}")
    register = operand.descriptor
    return TensorAddress(d.register(register.index, True), operand.offset, place(d.kernel, i))


def acting(f: Frame) -> list[int]:
    """Rows of the frame whose warps execute."""
    return [int(row) for row in np.flatnonzero(f.words())]


def blocks_of(machine: Machine, warp: int, paired: bool, where: str) -> list[int]:
    """A warp's block, or the pair with ranks 2n and 2n + 1 in their cluster to which it belongs."""
    block = machine.block_of(warp)
    if not paired:
        return [block]
    if machine.cluster_blocks % 2:
        raise EmulationError(
            f"{where}: a pair of blocks (cta_group::2) in a cluster of {machine.cluster_blocks}: expected an even"
            " number of blocks (--cluster X,Y,Z states its size)"
        )
    first = block - block % machine.cluster_blocks % 2
    return [first, first + 1]


# Allocation ------------------------------------------------------------------------------------------------------


@opcode("UTCATOMSWS", "FIND_AND_SET ALIGN AND 2CTA")
def _allocate(d: Decoder, i: Instruction) -> Step:
    operands, where = list(i.operands), place(d.kernel, i)
    if "AND" in i.modifiers:
        kept = d.word(operands[-1])

        def free(f: Frame) -> None:
            masks = np.broadcast_to(kept(f), (f.rows, 1))
            for row in acting(f):
                f.machine.tensor.used[f.machine.block_of(int(f.warps[row]))] &= int(masks[row, 0])

        return free
    if "ALIGN" not in i.modifiers or len(operands) != 3 or not isinstance(operands[0], Predicate):
        raise UnsupportedInstructionError(f"operands {i.text}")
    put_found, put, units = d.put_predicate(operands[0]), d.put(operands[1]), d.word(operands[2])
    paired = "2CTA" in i.modifiers

    def allocate(f: Frame) -> None:
        counts = np.broadcast_to(units(f), (f.rows, 1))
        firsts = np.zeros((f.rows, 1), np.int64)
        for row in acting(f):
            warp = int(f.warps[row])
            blocks = blocks_of(f.machine, warp, paired, where)
            if paired:
                _begin_pair(f.machine, *blocks)
            firsts[row] = f.machine.tensor.allocate(blocks, int(counts[row, 0]))
        put_found(f, firsts >= 0)
        put(f, np.maximum(firsts, 0).astype(np.uint32))

    return allocate


def _begin_pair(machine: Machine, first: int, second: int) -> None:
    """The state in which the blocks of a pair find the barrier by which they allocate."""
    for block, phase in ((first, 1), (second, 0)):
        index = (block * machine.shared_stride + _PAIR_BARRIER) >> 3
        if not machine.shared[8][index]:
            machine.shared[8][index] = np.uint64(Word(1, 1, 0, phase).word)
            machine.phases[block, _PAIR_BARRIER] = phase


# Shifts and commits ----------------------------------------------------------------------------------------------


@opcode("UTCSHIFT", "DOWN 2CTA")
def _shift(d: Decoder, i: Instruction) -> Step:
    """Within 32 lanes, each but the last takes the 32 bytes of the lane that follows it."""
    address, where, paired = tensor_address(d, i, i.operands[0]), place(d.kernel, i), "2CTA" in i.modifiers
    count = 8

    def shift(f: Frame) -> None:
        places = address.of(f)
        for row in acting(f):
            warp, (lane, column) = int(f.warps[row]), places[row]
            if lane % LANES:
                raise EmulationError(f"{where}: a shift from lane {lane} on: expected a multiple of {LANES}")
            for block in blocks_of(f.machine, warp, paired, where):
                address.check(f.machine, block, column, count, "shifts")
                held = f.machine.tensor.words[block, column : column + count, lane : lane + LANES]
                held[:, :-1] = held[:, 1:].copy()

    return shift


@opcode("UTCBAR", "MULTICAST 2CTA")
def _commit(d: Decoder, i: Instruction) -> Step:
    """An arrival at a barrier once all earlier operations of the thread are complete, which they already are."""
    target = i.operands[0]
    if not isinstance(target, Address) or target.uniform is None:
        raise UnsupportedInstructionError(f"operands {i.text}")
    site, base, offset = Site(d, i), d.register(target.uniform.index, True), target.offset
    masks = d.word(i.operands[2]) if "MULTICAST" in i.modifiers else None

    def commit(f: Frame) -> None:
        words = BarrierWords(f.machine, d.recorder, site.where)
        addresses = np.broadcast_to(base(f), (f.rows, 1))
        chosen = None if masks is None else np.broadcast_to(masks(f), (f.rows, 1))
        for row in acting(f):
            further = (0,) if chosen is None else site.receivers(f, row, int(chosen[row, 0]) & 0xFFFF)
            for more in further:
                words.add(int(f.warps[row]), int(addresses[row, 0]) + offset + more, site.number, 1, 0)

    return commit
