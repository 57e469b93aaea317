"""A frame: the warps that run a basic block together, and the register rows they see.

Instructions are closures over register numbers; a frame gives them the rows. Warps with nearby numbers are a slice of
the machine's arrays (views without copies; warps in between that do not take part are masked off). A few warps
scattered over many are instead gathered into a scratch file and written back after the block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .bits import FULL, LANES, first_lane, pack, popcount, unpack
from .machine import U32, Machine

Lanes = npt.NDArray[np.bool_]


class Rows:
    """Register rows as lists: `R` (rows, 32) words, `P` booleans, `U` and `UP` the uniform ones (rows, 1)."""

    __slots__ = ("P", "R", "U", "UP")

    def __init__(self, R: U32, P: Lanes, U: U32, UP: Lanes) -> None:
        self.R, self.P, self.U, self.UP = list(R), list(P), list(U), list(UP)


class Frame:
    """Rows and masks of one batch of warps.

    `warps` are the machine warp numbers of the rows, `active` a word of active lanes per row. `exec` is the mask of
    lanes that execute, shape (rows, 32), or None if all 32 of every row do. `mask` is the one that register writes
    need: also None if the inactive lanes have exited, because nothing reads those any more. `uniform_mask` is the same
    for uniform registers, shape (rows, 1). The masks narrow while a guarded instruction runs.
    """

    __slots__ = (
        "P", "R", "U", "UP", "_bits", "active", "counts", "exec", "gathered", "index", "live_version", "machine",
        "mask", "members", "record", "rows", "shared_base", "shared_first", "total", "uniform_mask", "warps", "whole",
    )  # fmt: skip

    def __init__(self, machine: Machine, rows: Rows, index: Any, active: U32, gathered: bool) -> None:
        self.machine = machine
        self.R, self.P, self.U, self.UP = rows.R, rows.P, rows.U, rows.UP
        self.index = index
        self.gathered = gathered
        self.warps = np.arange(machine.warps)[index]
        self.rows = len(self.warps)
        self.active = active
        self.counts = popcount(active).astype(np.int64)
        self.total = int(self.counts.sum())
        self.members: npt.NDArray[np.int64] | None = None if active.all() else np.flatnonzero(active)
        self.exec: Lanes | None = None if self.total == self.rows * LANES else unpack(active)
        self.mask: Lanes | None = self.exec
        self.uniform_mask: Lanes | None = None if self.members is None else (active != 0)[:, None]
        self.shared_base = machine.shared_base[index][:, None]
        self.shared_first = machine.shared_first[index][:, None]
        self._bits: U32 | None = None
        self.live_version = -1
        # Whether the frame holds its blocks' live lanes completely, and the version of `live` for which this was
        # determined.
        self.whole: tuple[int, bool] = (-1, False)
        # The recorder's data for every step of this frame: machine warps and their active lanes.
        members = slice(None) if self.members is None else self.members
        self.record = (self.warps[members].astype(np.int32), self.counts[members].astype(np.uint8))

    def forget_dead_lanes(self, live: U32) -> None:
        """Drop the write masks if every lane that they protect has exited."""
        if self.mask is not None and not (live[self.index] & ~self.active).any():
            self.mask = self.uniform_mask = None

    def write(self, row: U32, value: Any) -> None:
        """Write words to a register row where the mask permits; `value` broadcasts."""
        if self.mask is None:
            row[...] = value
            return
        # Blending bits is several times faster than a masked copy if lanes diverge at random.
        change = np.bitwise_xor(row, value)
        change &= self.mask_bits()
        row ^= change

    def mask_bits(self) -> U32:
        """The write mask as words of all ones or all zeros."""
        if self._bits is None:
            assert self.mask is not None
            self._bits = np.negative(self.mask.astype(np.uint32))
        return self._bits

    def write_predicate(self, row: Lanes, value: Any) -> None:
        """Write booleans to a predicate row where the mask permits."""
        if self.mask is None:
            row[...] = value
        else:
            change = np.bitwise_xor(row, value)
            change &= self.mask
            row ^= change

    def write_uniform(self, row: Any, value: Any) -> None:
        """Write words or booleans to a uniform row, shape (rows, 1), for the participating warps."""
        if self.uniform_mask is None:
            row[...] = value
        else:
            np.copyto(row, value, where=self.uniform_mask)

    def narrow(self, lanes: Lanes) -> tuple[Any, ...]:
        """Restrict execution to `lanes`, shape (rows, 32); returns the argument of `restore`."""
        saved = (self.exec, self.mask, self._bits)
        self.exec = self.mask = lanes
        self._bits = None
        return saved

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Undo `narrow`."""
        self.exec, self.mask, self._bits = saved

    def spread(self, value: Any) -> Any:
        """A value per lane, shape (rows, 32), from one that may be the same for all."""
        shape = (self.rows, LANES)
        return value if value.shape == shape else np.broadcast_to(value, shape)

    def lanes(self) -> Lanes:
        """The executing lanes, shape (rows, 32)."""
        return np.ones((self.rows, LANES), np.bool_) if self.exec is None else self.exec

    def words(self) -> U32:
        """The executing lanes as a word per row."""
        if self.exec is None:
            return np.full(self.rows, FULL)
        return pack(self.exec)

    def leader(self) -> npt.NDArray[np.int64]:
        """The first executing lane of each row."""
        return first_lane(self.words())
