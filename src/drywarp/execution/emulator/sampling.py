"""Which thread blocks of a grid are emulated, and how many blocks each of them represents.

Blocks at the edges of a grid often take other paths than those inside it (halos, tails), so each dimension is cut into
first, interior and last; every existing combination is a stratum with its exact number of blocks. Everything is
deterministic.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...errors import UsageError
from ...kernel.launch.launch import Dim3

Blocks = int | Sequence[int] | Literal["all"] | None
"""Possible requests: the default sample, about this many blocks, given linear indices, or all."""

INTERIOR_SAMPLES = 4


def sample_blocks(grid: Dim3, blocks: Blocks) -> list[tuple[int, float]]:
    """Choose blocks: pairs of linear index and weight, in launch order; the weights sum to the grid size.

    Raises UsageError for an index outside the grid, an empty list or a count below one.
    """
    total = grid[0] * grid[1] * grid[2]
    if blocks is None:
        return stratified(grid)
    if isinstance(blocks, str):
        if blocks != "all":
            raise UsageError(f'blocks: expected a count, a list of block indices or "all", not {blocks!r}')
        return [(linear, 1.0) for linear in range(total)]
    if isinstance(blocks, int):
        if blocks < 1:
            raise UsageError(f"blocks: expected at least 1, not {blocks}")
        chosen = _spread(total, blocks)
    else:
        chosen = sorted({int(linear) for linear in blocks})
        if not chosen:
            raise UsageError("blocks: expected at least one block index")
        for linear in chosen:
            if not 0 <= linear < total:
                raise UsageError(f"blocks: index {linear} is outside the grid of {total} blocks")
    return [(linear, total / len(chosen)) for linear in chosen]


def _spread(count: int, wanted: int) -> list[int]:
    """`wanted` of the numbers below `count`, evenly spread, including first and last if two fit."""
    if wanted >= count:
        return list(range(count))
    if wanted == 1:
        return [0]
    return sorted({round(i * (count - 1) / (wanted - 1)) for i in range(wanted)})


def _classes(extent: int, cuts: Sequence[int] = ()) -> list[tuple[int, int]]:
    """Ranges (start, length) of one dimension: first, interior and last position, cut further at `cuts`."""
    edges = sorted(cut for cut in {0, 1, extent - 1, extent, *cuts} if 0 <= cut <= extent)
    return [(start, end - start) for start, end in itertools.pairwise(edges)]


Range = tuple[int, int]
"""First position and number of positions along one dimension."""
Box = tuple[Range, Range, Range]
Cuts = tuple[Sequence[int], Sequence[int], Sequence[int]]


def stratified(grid: Dim3, cuts: Cuts = ((), (), ()), interior: int = INTERIOR_SAMPLES) -> list[tuple[int, float]]:
    """The stratified sample: pairs of linear index and weight, in launch order.

    `cuts` are further places to cut each dimension, `interior` is how many blocks of each large stratum are spread over
    it.
    """
    strata: list[tuple[list[Dim3], int]] = []
    for ranges in itertools.product(*(_classes(extent, cut) for extent, cut in zip(grid, cuts, strict=True))):
        (x0, nx), (y0, ny), (z0, nz) = ranges
        size = nx * ny * nz
        wide = sum(length > 1 for _, length in ranges)
        # The strata that extend in the most dimensions are the grid's interior; edges are sampled once.
        inside = wide == sum(extent > 3 for extent in grid) and wide > 0
        members = _interior(ranges, interior) if inside else [(x0 + nx // 2, y0 + ny // 2, z0 + nz // 2)]
        strata.append((members, size))
    weights: dict[int, float] = {}
    for members, size in strata:
        for x, y, z in members:
            linear = x + grid[0] * (y + grid[1] * z)
            weights[linear] = size / len(members)
    return sorted(weights.items())


def boxes(grid: Dim3, cuts: Cuts, slabs: int) -> list[Box]:
    """Strata for random samples: boxes between the cuts, the largest split into `slabs` along its longest dimension.

    Edges are not separate strata here: since the blocks differ anyway, each stratum takes several samples.
    """
    edges = [sorted({0, extent, *cut}) for extent, cut in zip(grid, cuts, strict=True)]
    ranges = [[(low, high - low) for low, high in itertools.pairwise(edge)] for edge in edges]
    found: list[Box] = [(x, y, z) for x, y, z in itertools.product(*ranges)]
    largest = max(found, key=lambda box: math.prod(length for _, length in box))
    longest = max(range(3), key=lambda d: (largest[d][1], d))
    start, length = largest[longest]
    found.remove(largest)
    for low, high in itertools.pairwise(sorted({start + length * k // slabs for k in range(slabs + 1)})):
        part = list(largest)
        part[longest] = (low, high - low)
        found.append((part[0], part[1], part[2]))
    return found


def fewest(grid: Dim3) -> list[int]:
    """The fewest blocks that show how addresses move with the block index: one inside, its neighbours, one to check.

    The first of them represents all if only one can be run.
    """
    low = [1 if extent > 2 else 0 for extent in grid]
    middle = [at + max(0, extent - 2 * at - 1) // 2 for at, extent in zip(low, grid, strict=True)]
    places = [list(middle)]
    opposite = list(middle)
    for dimension, extent in enumerate(grid):
        if extent > 1:
            step = 1 if middle[dimension] + 1 < extent else -1
            moved = list(middle)
            moved[dimension] += step
            places.append(moved)
            further = middle[dimension] + 2 * step
            opposite[dimension] = further if 0 <= further < extent else middle[dimension]
    places.append(opposite)
    linear = [x + grid[0] * (y + grid[1] * z) for x, y, z in places]
    return list(dict.fromkeys(linear))


def interior_corners(grid: Dim3) -> tuple[Dim3, tuple[Dim3, Dim3, Dim3]]:
    """The lowest interior block, and the highest one along each dimension from there."""
    low = tuple(1 if extent > 2 else 0 for extent in grid)
    highs = []
    for dimension, extent in enumerate(grid):
        place = list(low)
        place[dimension] = max(low[dimension], extent - 2)
        highs.append((place[0], place[1], place[2]))
    return (low[0], low[1], low[2]), (highs[0], highs[1], highs[2])


def _interior(ranges: Sequence[tuple[int, int]], wanted: int) -> list[Dim3]:
    """Some blocks of a large stratum: spread over it, its corners, and the neighbours of one in x, y and z.

    The corners show whether its far ends behave alike, the neighbours whether addresses are affine in the block index.
    """
    size = ranges[0][1] * ranges[1][1] * ranges[2][1]
    count = min(wanted, size)
    picks: set[Dim3] = set()
    for number in range(count):
        # Fractions with different strides per dimension, so that the picks do not lie on one line.
        fractions = [((number * stride + 1) % (count + 1)) / (count + 1) for stride in (1, 2, 3)]
        x, y, z = (
            start + min(int(f * length), length - 1) for f, (start, length) in zip(fractions, ranges, strict=True)
        )
        picks.add((x, y, z))
    anchor = min(picks)
    low = [start for start, _ in ranges]
    for dimension, (start, length) in enumerate(ranges):
        if length > 1:
            moved = list(anchor)
            moved[dimension] += 1 if anchor[dimension] + 1 < start + length else -1
            corner = list(low)
            corner[dimension] = start + length - 1
            picks |= {(moved[0], moved[1], moved[2]), (corner[0], corner[1], corner[2]), (low[0], low[1], low[2])}
    return sorted(picks)


# Where in the grid blocks start to behave differently: strata are cut at those places.
#
# Grids are often larger than the data, and whole rows or columns of blocks exit immediately. If sampled interior blocks
# differ, a search along each dimension finds the block at which they change; a stratum then ends there, and its weight
# is exact. Blocks that differ from neighbour to neighbour depend on data, and more of them are sampled instead; if
# those at one end do much more than those at the other, cuts separate the two.

Signature = tuple[bytes, ...]
"""The behaviour of a block: a digest of each warp's path."""

Probe = Callable[[Sequence[int]], Mapping[int, Signature]]
"""Emulates some blocks by linear index and returns their behaviour."""

Measure = Callable[[Sequence[int]], Mapping[int, float]]
"""Warp instructions of some blocks that were probed."""

_PROBES_A_ROUND = 7
_MUCH_MORE = 2.0
"""Ratio of instructions above which blocks at one end of a grid differ in kind from those at the other."""


def refine(grid: Dim3, known: Mapping[int, Signature], probe: Probe, measure: Measure | None = None) -> Cuts | None:
    """Where to cut each dimension, based on the blocks of a first stratified sample.

    None if that sample is already sufficient. `probe` runs further blocks if the interior differs. If no dimension has
    cuts, blocks differ in a way that a cut cannot explain.
    """
    inside = [linear for linear in known if _inside(grid, linear)]
    if len({known[linear] for linear in inside}) < 2:
        return None
    low, highs = interior_corners(grid)
    seen = dict(known)
    x, y, z = (_cuts(grid, low, high, d, seen, probe, measure) if high != low else () for d, high in enumerate(highs))
    return x, y, z


def _coordinates(grid: Dim3, linear: int) -> Dim3:
    return linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1])


def _inside(grid: Dim3, linear: int) -> bool:
    return all(0 < c < e - 1 or e < 3 for c, e in zip(_coordinates(grid, linear), grid, strict=True))


def explains(cuts: Cuts, grid: Dim3, known: Mapping[int, Signature]) -> bool:
    """Whether all these blocks within one stratum of the cuts behave alike."""
    edges = [sorted({0, 1, extent - 1, *cut}) for extent, cut in zip(grid, cuts, strict=True)]
    by_stratum: dict[tuple[int, ...], Signature] = {}
    for linear, signature in known.items():
        place = _coordinates(grid, linear)
        stratum = tuple(bisect_right(edge, c) for edge, c in zip(edges, place, strict=True))
        if by_stratum.setdefault(stratum, signature) != signature:
            return False
    return True


def _cuts(
    grid: Dim3,
    low: Dim3,
    high: Dim3,
    dimension: int,
    known: dict[int, Signature],
    probe: Probe,
    measure: Measure | None,
) -> tuple[int, ...]:
    """Where blocks change on the line from `low` to `high`; if they change immediately, as with data, by how much."""

    def at(position: int) -> int:
        place = list(low)
        place[dimension] = position
        return place[0] + grid[0] * (place[1] + grid[1] * place[2])

    def look(positions: Sequence[int]) -> None:
        missing = sorted({at(p) for p in positions} - set(known))
        if missing:
            known.update(probe(missing))

    first, last = low[dimension], high[dimension]
    look([first, min(first + 1, last), last])
    if known[at(first)] == known[at(last)]:
        return ()

    def size(position: int) -> float:
        assert measure is not None
        return max(1.0, measure([at(position)])[at(position)])

    def boundary(begin: int, end: int, belongs: Callable[[int], bool]) -> int:
        """The first position after `begin`, which belongs, that does not belong; `end` does not."""
        while end - begin > 1:
            step = max(1, -(-(end - begin) // (_PROBES_A_ROUND + 1)))
            places = list(range(begin + step, end, step))
            look(places)
            outside = next((p for p in places if not belongs(p)), end)
            inner = [p for p in places if p < outside]
            begin, end = (inner[-1] if inner else begin), outside
        return end

    if known[at(first)] != known[at(first + 1)]:
        if measure is None:
            return ()
        ends = [size(first), size(last)]
        if max(ends) < _MUCH_MORE * min(ends):
            return ()
        middle = math.sqrt(ends[0] * ends[1])
        return (boundary(first, last, lambda p: (size(p) > middle) == (ends[0] > middle)),)
    leaves = boundary(first, last, lambda p: known[at(p)] == known[at(first)])
    arrives = boundary(leaves - 1, last, lambda p: known[at(p)] != known[at(last)])
    return tuple(sorted({leaves, arrives}))


# How far an emulation may run before it stops and reports its position.


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one emulation. No clock: all machines stop alike.

    `lane_steps` are instructions times active lanes; `accesses` are rows of the record, of some 50 bytes each, which
    also holds up to two basic blocks for each of them. Past a limit, `emulate` stops with fewer blocks or raises
    EmulationLimitError naming the loop that was running. With `strict`, it always raises, and a read beyond the end of
    a buffer is an error even where a GPU would serve it.
    """

    lane_steps: int = 2_000_000_000
    strict: bool = False
    accesses: int = 40_000_000

    @property
    def basic_blocks(self) -> int:
        """Most basic blocks that are recorded."""
        return 2 * self.accesses


class Reached(NamedTuple):
    """A limit in words, and the option that raises it."""

    limit: str
    option: str
