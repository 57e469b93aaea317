"""Which launches of a program are predicted, and what the others take."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ..analysis.result import Analysis

PREDICTIONS = 8
"""Launches of a kernel that differ and are predicted each, before some are estimated."""
_GROWTH = 1.25
"""By how much the number of a launch has to grow from one that is predicted to the next."""
_LIKE = 1.25
"""Largest ratio of warp instructions, and of blocks, at which one launch stands for another."""
_AROUND = 3
"""Predictions before and after a launch between which its time is taken to lie."""
_MOST_POINTED = 8
"""Sets of arguments' allocations of a kernel that are held apart; some programs have a new one each time."""


class Choice:
    """The launches of a process that are predicted, after Nsight Compute's options.

    Of those whose kernel's name matches `only` (``--kernel-name regex:``, anywhere in the name), the first `skip` are
    left out (``--launch-skip``) and at most `count` follow (``--launch-count``; None: all).
    """

    def __init__(self, only: re.Pattern[str] | None = None, skip: int = 0, count: int | None = None) -> None:
        self._only, self._skip, self._count = only, skip, count
        self._matched = 0

    def anew(self) -> Choice:
        """The same for another process."""
        return Choice(self._only, self._skip, self._count)

    def takes(self, kernel: str) -> bool:
        """Whether the next launch, of this kernel, is predicted."""
        if self._only is not None and not self._only.search(kernel):
            return False
        self._matched += 1
        place = self._matched - self._skip
        return place > 0 and (self._count is None or place <= self._count)


@dataclass(frozen=True, slots=True)
class Known:
    """A launch that was predicted, and how much it did."""

    blocks: int
    instructions: float
    analysis: Analysis


@dataclass(frozen=True, slots=True)
class Estimate:
    """The time of a launch that was not predicted itself, but for which others stand.

    `like` is the latest of `among`, the predictions of its kernel, that did about as much; there were `place` of them.
    A launch that was not computed takes the mean of earlier ones with the same extents, whose times lie between the
    `past` two.
    """

    time_s: float
    blocks: int
    instructions: float
    like: Known
    among: list[Known]
    place: int
    past: tuple[float, float] | None = None

    @property
    def waves(self) -> float:
        """Waves of blocks."""
        return self.like.analysis.waves * self.blocks / self.like.blocks

    def band(self) -> tuple[float, float]:
        """The least and the most time, by the predictions before and after it that did about as much."""
        if self.past:
            return self.past
        near = [n for n, one in enumerate(self.among) if _apart(one, self.blocks, self.instructions) <= _LIKE]
        before = [n for n in near if n < self.place][-_AROUND:]
        some = [self.among[n] for n in (*before, *[n for n in near if n >= self.place][:_AROUND])]
        times = [one.analysis.time_s * self.instructions / one.instructions for one in some]
        return min(times), max(times)


def band(some: Iterable[tuple[int, float, Estimate | None]]) -> tuple[float, float]:
    """The least and the most seconds of launches together: their number, time, and the estimate that it is, if any."""
    low = high = 0.0
    known: dict[tuple[int, int, float, int], tuple[float, float]] = {}
    for count, time_s, estimate in some:
        least = most = time_s
        if estimate:
            alike = id(estimate.among), estimate.blocks, estimate.instructions, estimate.place
            if estimate.past or alike not in known:
                known[alike] = estimate.band()
            least, most = known[alike]
        low, high = low + count * least, high + count * most
    return low, high


def pace(some: list[Estimate]) -> tuple[float, float] | None:
    """The least and the most seconds per warp instruction of the predictions that estimates rest on; None without."""
    among = {id(one.among): one.among for one in some}
    paces = [one.analysis.time_s / one.instructions for known in among.values() for one in known]
    return (min(paces), max(paces)) if paces else None


def _apart(one: Known, blocks: int, instructions: float) -> float:
    """The ratio, from 1 on, in which a launch does more or less than one that was predicted."""
    most = (one.blocks / blocks, one.instructions / max(instructions, 1))
    return max(max(ratio, 1 / ratio) if ratio else math.inf for ratio in most)


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
        best, least = None, _LIKE
        for one in self._known:
            ran = one.instructions * blocks / one.blocks if instructions is None else instructions
            if (apart := _apart(one, blocks, ran)) <= least:
                best, least = one, apart
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
            mean, like = math.fsum(times) / len(times), min(self._known, key=lambda one: _apart(one, blocks, ran))
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
