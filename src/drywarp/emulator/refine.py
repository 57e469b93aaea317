"""Where in the grid blocks begin to behave differently: strata cut at those places.

Grids are often larger than the data, and whole rows or columns of blocks leave at once. Where sampled
blocks of the interior differ, a search along each dimension finds the block at which they change; a
stratum then ends there, and its weight is exact. Blocks that differ from neighbour to neighbour are
data dependent: no cut can tell them apart, and more of them are sampled instead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from ..kernel.launch import Dim3
from .sampling import Cuts, interior_corners

Signature = tuple[bytes, ...]
"""What a block did: a digest of each warp's path."""

Probe = Callable[[Sequence[int]], Mapping[int, Signature]]
"""Emulates some blocks by linear index, and tells what they did."""

_PROBES_A_ROUND = 7


def refine(grid: Dim3, known: Mapping[int, Signature], probe: Probe) -> Cuts | None:
    """Where to cut each dimension, judged from what the blocks of a first stratified sample did.

    None where that sample is good as it is. `probe` runs further blocks where the interior differs. No cuts in
    any dimension mean that blocks differ in a way that a cut cannot explain.
    """
    inside = [linear for linear in known if _inside(grid, linear)]
    if len({known[linear] for linear in inside}) < 2:
        return None
    low, highs = interior_corners(grid)
    seen = dict(known)
    x, y, z = (_cuts(grid, low, high, d, seen, probe) if high != low else () for d, high in enumerate(highs))
    return x, y, z


def _coordinates(grid: Dim3, linear: int) -> Dim3:
    return linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1])


def _inside(grid: Dim3, linear: int) -> bool:
    return all(0 < c < e - 1 or e < 3 for c, e in zip(_coordinates(grid, linear), grid, strict=True))


def explains(cuts: Cuts, grid: Dim3, known: Mapping[int, Signature]) -> bool:
    """Whether all these blocks that lie in one of the strata that the cuts make did the same."""
    edges = [sorted({0, 1, extent - 1, *cut}) for extent, cut in zip(grid, cuts, strict=True)]
    by_stratum: dict[tuple[int, ...], Signature] = {}
    for linear, signature in known.items():
        place = _coordinates(grid, linear)
        stratum = tuple(bisect_right(edge, c) for edge, c in zip(edges, place, strict=True))
        if by_stratum.setdefault(stratum, signature) != signature:
            return False
    return True


def _cuts(
    grid: Dim3, low: Dim3, high: Dim3, dimension: int, known: dict[int, Signature], probe: Probe
) -> tuple[int, ...]:
    """Where blocks change on the line from `low` to `high`; none where they change at once, as with data."""

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
    if known[at(first)] == known[at(last)] or known[at(first)] != known[at(first + 1)]:
        return ()

    def boundary(begin: int, end: int, belongs: Callable[[int], bool]) -> int:
        """The first position after `begin`, which belongs, that does not; `end` does not."""
        while end - begin > 1:
            step = max(1, -(-(end - begin) // (_PROBES_A_ROUND + 1)))
            places = list(range(begin + step, end, step))
            look(places)
            outside = next((p for p in places if not belongs(p)), end)
            inner = [p for p in places if p < outside]
            begin, end = (inner[-1] if inner else begin), outside
        return end

    leaves = boundary(first, last, lambda p: known[at(p)] == known[at(first)])
    arrives = boundary(leaves - 1, last, lambda p: known[at(p)] != known[at(last)])
    return tuple(sorted({leaves, arrives}))
