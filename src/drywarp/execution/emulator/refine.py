"""Where in the grid blocks start to behave differently: strata are cut at those places.

Grids are often larger than the data, and whole rows or columns of blocks exit immediately. If sampled interior blocks
differ, a search along each dimension finds the block at which they change; a stratum then ends there, and its weight is
exact. Blocks that differ from neighbour to neighbour depend on data, and more of them are sampled instead; if those at
one end do much more than those at the other, cuts separate the two.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from ...kernel.launch.launch import Dim3
from .sampling import Cuts, interior_corners

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
