"""Which launches of a program are predicted, and what the others take."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..analysis.result import Analysis

PREDICTIONS = 8
"""Launches of a kernel that differ and are predicted each, before some are estimated."""
LIKE = 1.25
"""Largest ratio of warp instructions, and of blocks, at which one launch stands for another."""
_AROUND = 3
"""Predictions before and after a launch between which its time is taken to lie."""


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
        near = [n for n, one in enumerate(self.among) if apart(one, self.blocks, self.instructions) <= LIKE]
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


def apart(one: Known, blocks: int, instructions: float) -> float:
    """The ratio, from 1 on, in which a launch does more or less than one that was predicted."""
    most = (one.blocks / blocks, one.instructions / max(instructions, 1))
    return max(max(ratio, 1 / ratio) if ratio else math.inf for ratio in most)
