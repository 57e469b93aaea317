"""Results of a static walk besides its profile: loops and their trip counts, assumptions, access patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from ...support.text import json_of
from .state import Lanes


@dataclass(frozen=True, slots=True)
class LoopReport:
    """A loop: `trips` is the mean trip count per thread that reaches it (None if none did).

    `known` says how that is known: ``given`` by the user, ``derived`` from the code and the launch, ``assumed``, or
    ``not reached``. `fewest` and `most` are the extremes. `line` to `last_line` of `file` is its source position (0: no
    source lines), `parent` the enclosing loop, or ``""``. `copies` is the unroll factor, as far as the code reveals it.
    """

    name: str
    file: str
    line: int
    last_line: int
    parent: str
    trips: float | None
    fewest: int
    most: int
    known: str
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value that was neither given nor derivable: what it concerns, where, and what was assumed."""

    what: str
    file: str
    line: int
    assumed: str


@dataclass(frozen=True, slots=True)
class AccessReport:
    """How the addresses of a memory instruction move, in bytes.

    `coefficients` maps ``tid.x``, ``ctaid.x``, ``L1``, … to bytes per step where addresses are an affine
    function of these; `affine` false says that they are not (the coefficients are empty then). `known` is
    ``known``, ``assumed`` (it depends on arguments that were not given) or ``data``.
    """

    pc: int
    opcode: str
    file: str
    line: int
    space: str
    affine: bool
    known: str
    coefficients: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StaticReport:
    """The complete report."""

    loops: tuple[LoopReport, ...]
    assumptions: tuple[Assumption, ...]
    accesses: tuple[AccessReport, ...] = ()


def static_dict(report: StaticReport) -> dict[str, object]:
    """The report as the documented JSON object (docs/json.md)."""
    return {
        "assumptions": json_of(report.assumptions),
        "loops": [loop_dict(loop) for loop in report.loops],
        "accesses": json_of(report.accesses),
    }


def loop_dict(loop: LoopReport) -> dict[str, object]:
    """One loop as a JSON object."""
    return {**json_of(loop), "parent": loop.parent or None}


# The record of a walk, in the order of the walk: the blocks that warps issued, and every address.
#
# Loop iterations that are known to be the same are stored as one repetition (see `forward`) and expanded only at the
# end.

_HASH_SEED = 0x5EED
_MOST_LANES = 64

Warps = npt.NDArray[np.int32]
Addresses = npt.NDArray[np.int64]


@cache
def _weights() -> npt.NDArray[np.uint64]:
    """Factors of the lanes in a hash: of their offsets, and of their absence; shape (2, lanes)."""
    rng = np.random.Generator(np.random.Philox(_HASH_SEED))
    return rng.integers(1, 1 << 63, (2, _MOST_LANES), dtype=np.uint64) * np.uint64(2) + np.uint64(1)


@dataclass(frozen=True, slots=True, eq=False)
class Issue:
    """Warps issue a block with this many active lanes each."""

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
    """Items done `count` times; each time the accesses, in order, move by `shifts` bytes."""

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
    """How far each access has moved if both do the same; None if they do not."""
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
        """Record that warps `rows` of this walk issue a block with this many active lanes each."""
        self.items.append(Issue(block, rows, active))

    def access(
        self, instruction: int, space: int, rows: npt.NDArray[np.int64], addresses: Addresses, there: Lanes
    ) -> None:
        """Record an access by lanes `there`, shape (rows, lanes); rows without active lanes are dropped."""
        some = there.any(axis=1)
        if not some.all():
            rows, addresses, there = rows[some], addresses[some], there[some]
        if not len(rows):
            return
        base = addresses[np.arange(len(rows)), there.argmax(axis=1)]
        offsets = np.where(there, addresses - base[:, None], 0)
        weights = _weights()[:, : self.lanes]
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
