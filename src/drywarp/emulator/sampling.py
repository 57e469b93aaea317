"""Which thread blocks of a grid are emulated, and how many blocks each of them stands for.

Blocks at the edges of a grid often take other paths than those inside it (halos, tails), so each
dimension is cut into first, interior and last; every combination that exists is a stratum with its
exact number of blocks. All of it is deterministic.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

from ..errors import UsageError
from ..kernel.launch import Dim3

Blocks = int | Sequence[int] | Literal["all"] | None
"""What a caller may ask for: the default sample, about so many, given linear indices, or all."""

_INTERIOR_SAMPLES = 4


def sample_blocks(grid: Dim3, blocks: Blocks) -> list[tuple[int, float]]:
    """Choose blocks: pairs of linear index and weight, in launch order; the weights sum to the grid.

    Raises UsageError for an index outside the grid, an empty list or a count below one.
    """
    total = grid[0] * grid[1] * grid[2]
    if blocks is None:
        return _stratified(grid)
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
    """`wanted` of the numbers below `count`, evenly spread, first and last included where two fit."""
    if wanted >= count:
        return list(range(count))
    if wanted == 1:
        return [0]
    return sorted({round(i * (count - 1) / (wanted - 1)) for i in range(wanted)})


def _classes(extent: int) -> list[tuple[int, int]]:
    """Ranges (start, length) of the first, interior and last positions of one dimension."""
    if extent == 1:
        return [(0, 1)]
    middle = [(1, extent - 2)] if extent > 2 else []
    return [(0, 1), *middle, (extent - 1, 1)]


def _stratified(grid: Dim3) -> list[tuple[int, float]]:
    strata: list[tuple[list[Dim3], int]] = []
    for ranges in itertools.product(*(_classes(extent) for extent in grid)):
        (x0, nx), (y0, ny), (z0, nz) = ranges
        size = nx * ny * nz
        wide = sum(length > 1 for _, length in ranges)
        # The stratum with most of the grid's freedom is its interior; edges are sampled once.
        interior = wide == sum(extent > 3 for extent in grid) and wide > 0
        members = _interior(ranges) if interior else [(x0 + nx // 2, y0 + ny // 2, z0 + nz // 2)]
        strata.append((members, size))
    weights: dict[int, float] = {}
    for members, size in strata:
        for x, y, z in members:
            linear = x + grid[0] * (y + grid[1] * z)
            weights[linear] = size / len(members)
    return sorted(weights.items())


def _interior(ranges: Sequence[tuple[int, int]]) -> list[Dim3]:
    """Some blocks of a large stratum: a few spread over it, and the neighbours of one in x, y and z.

    The neighbours let later code see whether addresses are affine in the block index.
    """
    size = ranges[0][1] * ranges[1][1] * ranges[2][1]
    count = min(_INTERIOR_SAMPLES, size)
    picks: set[Dim3] = set()
    for number in range(count):
        # Fractions with different strides per dimension, so that the picks do not lie on one line.
        fractions = [((number * stride + 1) % (count + 1)) / (count + 1) for stride in (1, 2, 3)]
        x, y, z = (
            start + min(int(f * length), length - 1) for f, (start, length) in zip(fractions, ranges, strict=True)
        )
        picks.add((x, y, z))
    anchor = min(picks)
    for dimension, (start, length) in enumerate(ranges):
        if length > 1:
            moved = list(anchor)
            moved[dimension] += 1 if anchor[dimension] + 1 < start + length else -1
            picks.add((moved[0], moved[1], moved[2]))
    return sorted(picks)
