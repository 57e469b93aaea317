"""What a walk leaves behind, in the order of the walk: the blocks that warps issued, and every address.

Turns of a loop that are known to do the same are kept as one repetition (see `forward`) and written out
only at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .words import Lanes

_HASH_SEED = 0x5EED
_MOST_LANES = 64
_rng = np.random.Generator(np.random.Philox(_HASH_SEED))
_WEIGHTS = _rng.integers(1, 1 << 63, (2, _MOST_LANES), dtype=np.uint64) * np.uint64(2) + np.uint64(1)

Warps = npt.NDArray[np.int32]
Addresses = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Issue:
    """Warps issue a block with so many active lanes each."""

    block: int
    warps: Warps
    active: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """Warps make an access: address of the first lane, and number of the pattern, of each."""

    instruction: int
    space: int
    warps: Warps
    base: Addresses
    patterns: Warps


@dataclass(frozen=True, slots=True, eq=False)
class Repetition:
    """Items done `count` times; each time the accesses, in order, are `shifts` bytes further."""

    count: int
    items: tuple[Item, ...]
    shifts: tuple[Addresses, ...]


Item = Issue | Access | Repetition


def accesses(items: Sequence[Item]) -> Iterator[Access]:
    """All accesses among items, those within repetitions once."""
    for item in items:
        if isinstance(item, Access):
            yield item
        elif isinstance(item, Repetition):
            yield from accesses(item.items)


def shifts_between(first: Sequence[Item], second: Sequence[Item]) -> tuple[Addresses, ...] | None:
    """By how much each access has moved where both do the same; None where they do not."""
    if len(first) != len(second):
        return None
    found: list[Addresses] = []
    for a, b in zip(first, second, strict=True):
        if isinstance(a, Issue) and isinstance(b, Issue):
            if a.block != b.block or not _same(a.warps, b.warps) or not _same(a.active, b.active):
                return None
        elif isinstance(a, Access) and isinstance(b, Access):
            alike = a.instruction == b.instruction and a.space == b.space
            if not alike or not _same(a.warps, b.warps) or not _same(a.patterns, b.patterns):
                return None
            found.append(b.base - a.base)
        elif isinstance(a, Repetition) and isinstance(b, Repetition):
            inner = shifts_between(a.items, b.items)
            if a.count != b.count or inner is None or not all(map(_same, a.shifts, b.shifts)):
                return None
            found.extend(inner)
        else:
            return None
    return tuple(found)


def _same(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> bool:
    return a is b or np.array_equal(a, b)


class Record:
    """Items of one walk after the other. `lanes` is the warp size."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.items: list[Item] = []
        self.offsets: list[npt.NDArray[np.int64]] = []
        """Lane offsets from the first active lane, by pattern."""
        self.masks: list[int] = []
        """Active lanes by pattern."""
        self.first_warp = 0
        """Number, among all sampled warps, of the first one that is walked now."""
        self._numbers: dict[int, int] = {}

    def block(self, block: int, rows: Warps, active: npt.NDArray[np.uint8]) -> None:
        """Note that warps `rows` of this walk issue a block with so many active lanes each."""
        self.items.append(Issue(block, rows, active))

    def access(
        self, instruction: int, space: int, rows: npt.NDArray[np.int64], addresses: Addresses, there: Lanes
    ) -> None:
        """Note an access by lanes `there`, shape (rows, lanes); rows without a lane are left out."""
        some = there.any(axis=1)
        if not some.all():
            rows, addresses, there = rows[some], addresses[some], there[some]
        if not len(rows):
            return
        base = addresses[np.arange(len(rows)), there.argmax(axis=1)]
        offsets = np.where(there, addresses - base[:, None], 0)
        weights = _WEIGHTS[:, : self.lanes]
        hashes = offsets.view(np.uint64) @ weights[0] + (~there).astype(np.uint64) @ weights[1]
        numbers = np.empty(len(hashes), np.int32)
        for row, key in enumerate(hashes.tolist()):
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self.offsets)
                self.offsets.append(offsets[row])
                bits = np.packbits(there[row], bitorder="little").tobytes()
                self.masks.append(int.from_bytes(bits, "little"))
            numbers[row] = number
        warps = (rows + self.first_warp).astype(np.int32)
        self.items.append(Access(instruction, space, warps, base, numbers))
