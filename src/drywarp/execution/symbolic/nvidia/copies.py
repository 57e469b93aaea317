"""Copies by the copy engine without memory: which pieces of global memory each one touches.

Runs of bytes follow from uniform registers. A tensor copy's box follows from its coordinates and its tensor map, which
is known if it was given as an argument: the parameters then hold its bytes, with the tensor in its slot of the address
space. What is copied to shared memory, and when, is not followed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....errors import EmulationError
from ....kernel.instruction import Instruction
from ....kernel.profile import SPACE_GLOBAL
from ...emulator.bits import LANES
from ...emulator.bulk_copy import PIECE, run_bytes
from ...emulator.operands import join
from ...emulator.tensor_maps import ROWS, TensorView, box_of, decode, rows_of
from ..parameters import RecordedAccesses
from ..state import ANY_ITERATION, DATA, UNSURE, Batch, Compared, Flags, non_affine_flags
from ..words import Step
from .decoder import StaticDecoder
from .needed import far_side

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]


class CopySteps:
    """Builds the steps of copies of one kernel; `untracked` are those that ran and whose pieces are not known."""

    def __init__(self, d: StaticDecoder, accesses: RecordedAccesses) -> None:
        self.d, self.accesses = d, accesses
        self.untracked: set[int] = set()

    def step(self, i: Instruction) -> Step:
        """The step of a copy to or from global memory."""
        return self._run(i) if i.opcode.startswith("UBLK") else self._tensor(i)

    def refused(self, i: Instruction) -> Step:
        """A copy whose operands have no static form: that it ran is all that is known."""

        def copy(batch: Batch) -> None:
            self.untracked.add(i.pc // 16)

        return copy

    def _run(self, i: Instruction) -> Step:
        """A run of bytes."""
        address, of_address = self.d.words_of(i.operands[far_side(i)], 2)
        count, of_size = self.d.words_of(i.operands[2], 1)

        def copy(batch: Batch) -> None:
            rows = _acting(batch)
            start, size_flags = address(batch)[rows], of_size(batch)
            flags = _joined(of_address(batch))
            batch.rely_on(flags)
            batch.rely_on(non_affine_flags(size_flags))
            if (size_flags[rows] & DATA).any():
                self.untracked.add(i.pc // 16)
                return
            unsure = flags[rows, 0]
            self._unsure(i, unsure | size_flags[rows, 0])
            begins = join(start[:, 0], start[:, 1])
            begins = np.where(unsure & DATA != 0, self.accesses.settled(begins, PIECE), begins).astype(np.int64)
            sizes = (run_bytes(word) for word in count(batch)[rows, 0].tolist())
            pieces = (np.arange(begin, begin + size, PIECE) for begin, size in zip(begins.tolist(), sizes, strict=True))
            self._record(i, batch, rows, list(pieces))

        return copy

    def _tensor(self, i: Instruction) -> Step:
        """A box of a tensor."""
        apart = bool({"GATHER4", "SCATTER4"} & set(i.modifiers))
        ahead = 2 if i.opcode == "UTMALDG" else 1
        rank = ROWS + 1 if apart else int(i.modifiers[0][0])
        places, of_places = self.d.words_of(i.operands[0], ahead + rank)
        held, of_held = self.d.words_of(i.operands[1], 2)
        columns = "IM2COL" in i.modifiers
        beside = self.d.words_of(i.operands[2], 1)[0] if columns and ahead == 2 else None

        def copy(batch: Batch) -> None:
            rows, flags, map_flags = _acting(batch), of_places(batch)[:, ahead:], of_held(batch)
            batch.rely_on(_joined(flags))
            batch.rely_on(_joined(non_affine_flags(map_flags)))
            views = None if (map_flags[rows] & DATA).any() else self._views(held(batch)[rows])
            if views is None or any(len(view.extents) != (2 if apart else rank) for view in views):
                self.untracked.add(i.pc // 16)
                return
            self._unsure(i, _joined(flags[rows]) | _joined(map_flags[rows]))
            axes = [0, *[1] * ROWS] if apart else list(range(rank))
            extents = np.array([view.extents for view in views])[:, axes]
            at = places(batch)[rows, ahead:].view(np.int32).astype(np.int64)
            at = np.where(flags[rows] & DATA != 0, at % extents, at)
            inner = [view.element_bytes * view.bits for view in views]
            if columns or (at[:, 0] * inner // 8 % PIECE).any():
                # Neither are pixels of an im2col map affine in where a copy begins, nor whole pieces that hold parts.
                batch.rely_on(_joined(non_affine_flags(flags)))
            elif (flags & ANY_ITERATION).any():
                lengths = np.array([[s * (n - 1) for s, n in zip(v.steps, v.copied, strict=True)] for v in views])
                self._edges(i, batch, rows, at, at + lengths[:, axes], extents)
            offsets = beside(batch)[rows, 0] & 0xFFFF if beside is not None else np.zeros(len(rows), np.uint32)
            boxes = [
                rows_of(view, where) if apart else box_of(view, where, int(offset))
                for view, where, offset in zip(views, at.tolist(), offsets, strict=True)
            ]
            self._record(i, batch, rows, [box.pieces for box in boxes])

        return copy

    def _views(self, held: Words) -> list[TensorView] | None:
        """The tensor map at each row's address; None unless all of them are known."""
        found = []
        for address in join(held[:, 0], held[:, 1]).tolist():
            data = self.d.bank_flags.tensor_map(address)
            if data is None:
                return None
            try:
                found.append(decode(data, ""))
            except EmulationError:
                return None
        return found

    def _edges(self, i: Instruction, batch: Batch, rows: Ints, first: Ints, last: Ints, extents: Ints) -> None:
        """Where boxes move with the iterations, a loop repeats only until one meets an edge of its tensor."""
        lanes = np.ones((len(rows), 1), np.bool_)
        for gaps in (first, last, first - extents, last - extents):
            for axis in range(gaps.shape[1]):
                gap = np.ascontiguousarray(gaps[:, axis : axis + 1])
                batch.state.compared.append(Compared(i.pc // 16, "LT", batch.warps[rows], lanes, gap))

    def _unsure(self, i: Instruction, flags: Flags) -> None:
        seen = int(np.bitwise_or.reduce(flags, axis=None, initial=0)) & UNSURE
        if seen:
            self.accesses.unsure[i.pc // 16] = self.accesses.unsure.get(i.pc // 16, 0) | seen

    def _record(self, i: Instruction, batch: Batch, rows: Ints, pieces: list[Ints]) -> None:
        """Record the pieces that each row touches, 32 per request, as the emulator does."""
        counts = [-(-len(some) // LANES) for some in pieces]
        addresses = np.zeros((sum(counts), LANES), np.int64)
        there = np.zeros(addresses.shape, np.bool_)
        begin = 0
        for count, some in zip(counts, pieces, strict=True):
            addresses[begin : begin + count].reshape(-1)[: len(some)] = some
            there[begin : begin + count].reshape(-1)[: len(some)] = True
            begin += count
        self.accesses.record.access(i.pc // 16, SPACE_GLOBAL, np.repeat(batch.warps[rows], counts), addresses, there)


def _acting(batch: Batch) -> Ints:
    """Rows of a batch in which any lane executes."""
    return np.flatnonzero(batch.lanes().any(axis=1))


def _joined(flags: Flags) -> Flags:
    """Flags of all registers of each row, shape (rows, 1)."""
    joined: Flags = np.bitwise_or.reduce(flags, axis=1, keepdims=True)
    return joined
