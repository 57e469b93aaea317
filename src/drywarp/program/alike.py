"""Launches of a kernel that may stand for each other, and which of them are predicted."""

from __future__ import annotations

import math
from collections.abc import Hashable

from ..analysis.result import Analysis
from .estimates import LIKE, Estimate, Known, apart

_MOST_POINTED = 8
"""Sets of arguments' allocations of a kernel that are held apart; some programs have a new one each time."""
_GROWTH = 1.25
"""By how much the number of a launch has to grow from one that is predicted to the next."""


class Alike:
    """The launches of a kernel that may stand for each other: the same blocks and shared memory, the same allocations.

    The `first` different ones are predicted, then fewer and fewer, each whose number has grown by a quarter since the
    last; and those that no earlier one is like.
    """

    def __init__(self, first: int) -> None:
        self._first, self._number, self._last = first, 0, 0
        self._known: list[Known] = []
        self._times: dict[Hashable, list[tuple[float, float]]] = {}
        self._means: dict[Hashable, tuple[int, Estimate]] = {}

    def due(self) -> bool:
        """Whether the next launch that differs from all before is predicted, whatever it is like."""
        self._number += 1
        if self._first and self._first < self._number < _GROWTH * self._last:
            return False
        self._last = self._number
        return True

    def predicted(self, blocks: int, instructions: float, analysis: Analysis) -> None:
        """Add a prediction."""
        self._known.append(Known(blocks, max(instructions, 1), analysis))

    def estimate(self, blocks: int, instructions: float | None = None) -> Estimate | None:
        """The time of a launch, at the time per warp instruction of another; None if none is like it.

        If it is not known how many warp instructions it runs, each block is taken to run as many as one of the other.
        """
        best, least = None, LIKE
        for one in self._known:
            ran = one.instructions * blocks / one.blocks if instructions is None else instructions
            if (ratio := apart(one, blocks, ran)) <= least:
                best, least = one, ratio
        if best is None:
            return None
        ran = best.instructions * blocks / best.blocks if instructions is None else instructions
        time_s = best.analysis.time_s * ran / best.instructions
        return Estimate(time_s, blocks, ran, best, self._known, len(self._known))

    def computed(self, extents: Hashable, time_s: float, instructions: float) -> None:
        """A launch with these extents was computed, and is taken to last so long."""
        self._times.setdefault(extents, []).append((time_s, instructions))

    def mean(self, extents: Hashable, blocks: int) -> Estimate | None:
        """What a launch takes that was not computed: as much as the later half of those that were, on average."""
        past = self._times.get(extents, [])
        if not past or not self._known:
            return None
        count, found = self._means.get(extents, (0, None))
        if found is None or count != len(past):
            some = past[len(past) // 2 :]
            times, ran = [time for time, _ in some], math.fsum(number for _, number in some) / len(some)
            mean, like = math.fsum(times) / len(times), min(self._known, key=lambda one: apart(one, blocks, ran))
            place = len(self._known)
            found = Estimate(mean, blocks, ran, like, self._known, place, (min(times), max(times)))
            self._means[extents] = len(past), found
        return found


class Estimates:
    """The launches of a process by what may stand for each other."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._alike: dict[Hashable, dict[tuple[int, ...], Alike]] = {}
        self._every: dict[Hashable, Alike] = {}

    def of(self, kernel: Hashable, allocations: tuple[int, ...]) -> Alike:
        """Those of a kernel, a block's extents and so on, with arguments that point to these allocations."""
        known = self._alike.setdefault(kernel, {})
        if allocations not in known and len(known) >= _MOST_POINTED:
            allocations = ()
        if allocations not in known:
            known[allocations] = Alike(self._first)
        return known[allocations]

    def every(self, kernel: Hashable) -> Alike:
        """All launches of a kernel, for those on allocations on which none of them was computed."""
        return self._every.setdefault(kernel, Alike(self._first))
