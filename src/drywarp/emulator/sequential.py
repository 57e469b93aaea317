"""Sampling a grid whose blocks differ, until the total is known closely enough.

Strata are boxes of blocks. Within each, blocks come in an order that is random but always the same, so
that a larger sample holds the smaller one. After each round the total and its confidence interval are
estimated; the next round takes what the spread within the strata says is missing, no more than as
many again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..kernel.launch import Dim3
from .estimate import Interval, estimate
from .sampling import Box

Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Measure = Callable[[Sequence[int]], Mapping[int, float]]
"""Values of some members, by number; those known before cost nothing."""

_FEWEST = 2
"""Samples of a stratum, where it has so many: less tells nothing of its spread."""
_GROWTH, _LEAST_GROWTH, _TRIES = 2.0, 1.25, 20
"""How many times larger than the last round's sample the next one's is, and sizes that are tried in little room."""
_SEED = 0x5EED
_SHUFFLED = 1 << 12
"""Strata up to this size are shuffled whole; of larger ones members are drawn one by one."""


class Stratum:
    """A box of blocks, and the order in which they are sampled."""

    def __init__(self, box: Box, grid: Dim3, number: int) -> None:
        self.box, self.grid = box, grid
        self.size = math.prod(length for _, length in box)
        self._order = self._draw(np.random.Generator(np.random.Philox(key=[_SEED, number])))
        self._drawn: list[int] = []

    def members(self, count: int) -> list[int]:
        """The first `count` blocks of the order, as linear indices."""
        while len(self._drawn) < min(count, self.size):
            self._drawn.append(self._linear(next(self._order)))
        return self._drawn[:count]

    def _draw(self, random: np.random.Generator) -> Iterator[int]:
        if self.size <= _SHUFFLED:
            yield from random.permutation(self.size).tolist()
            return
        seen: set[int] = set()
        while len(seen) < self.size:
            number = int(random.integers(self.size))
            if number not in seen:
                seen.add(number)
                yield number

    def _linear(self, number: int) -> int:
        (x0, nx), (y0, ny), (z0, _) = self.box
        x, y, z = x0 + number % nx, y0 + number // nx % ny, z0 + number // (nx * ny)
        return x + self.grid[0] * (y + self.grid[1] * z)


@dataclass(frozen=True)
class Outcome:
    """Where a sequence of rounds ended: the interval, the weights of the sampled blocks, and whether it was reached."""

    interval: Interval
    weights: dict[int, float]
    reached: bool
    varied: bool


def sample_until(
    strata: Sequence[Stratum],
    measure: Measure,
    target: float,
    pilot: int,
    room: Callable[[], int],
    varies: bool = False,
) -> Outcome | None:
    """Sample until half the interval is no wider than `target`, relative to the total, or `room` is used up.

    `pilot` is about how many blocks the first round takes; `room` says how many more may be measured. With
    `varies` a sample that shows no variation is known to be too small. None where there is no room for any.
    """
    sizes: Counts = np.array([s.size for s in strata], np.int64)
    counts: Counts = np.minimum(sizes, np.maximum(_FEWEST, np.rint(pilot * sizes / sizes.sum()).astype(np.int64)))
    known: dict[int, float] = {}
    taken = counts * 0
    while True:
        wanted = [b for s, n in zip(strata, counts.tolist(), strict=True) for b in s.members(n) if b not in known]
        if len(wanted) > room():
            break
        known |= measure(wanted)
        taken = counts
        values = [[known[b] for b in s.members(n)] for s, n in zip(strata, taken.tolist(), strict=True)]
        interval = estimate(list(zip(sizes.tolist(), values, strict=True)))
        close = interval.half <= target * interval.total and (interval.half > 0 or not varies)
        if close or (taken == sizes).all():
            break
        counts = _next(sizes, taken, interval, target, room())
        if (counts == taken).all():
            break
    if not taken.any():
        return None
    weights = {b: s.size / n for s, n in zip(strata, taken.tolist(), strict=True) for b in s.members(n)}
    varied = any(len(set(v)) > 1 for v in values)
    return Outcome(interval, weights, bool(close or (taken == sizes).all()), varied)


def _next(sizes: Counts, taken: Counts, interval: Interval, target: float, room: int) -> Counts:
    """How many blocks of each stratum to sample next, in proportion to its size.

    As many as before where there is no room.

    To follow the spread that few samples show (Neyman's allocation) would be to trust it: strata that happen to
    have shown none would never be looked at again, and intervals would be too narrow.
    """
    have = int(taken.sum())
    # The interval narrows with the root of the sample's size.
    ratio = interval.half / (target * interval.total) if interval.half else _GROWTH
    goal = have * min(max(1.1 * ratio * ratio, _LEAST_GROWTH), _GROWTH)
    while (_allotted(sizes, taken, goal) == taken).all():
        goal *= _LEAST_GROWTH
    for total in np.linspace(goal, have, _TRIES):
        counts = _allotted(sizes, taken, float(total))
        if have < counts.sum() <= have + room:
            return counts
    return taken


def _allotted(sizes: Counts, taken: Counts, total: float) -> Counts:
    counts: Counts = np.maximum(taken, np.minimum(sizes, np.floor(total * sizes / sizes.sum()).astype(np.int64)))
    return counts
