"""Which launches of a program are predicted, what others take, and files of them.

A file holds code, arguments, and the memory that a launch touches.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import numpy as np
import numpy.typing as npt

from ..analysis.result import Analysis
from ..execution.emulator.memory import DeviceMemory
from ..frontends.binary.containers import images_with
from ..frontends.binary.kept import PIECE_BYTES, SUFFIX, KeptLaunch, check_size, variables_of, write_kept
from ..hardware import Gpu
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Launch
from .heap import START, Allocation, Heap, runs

_WHOLE_BYTES = 1 << 20
"""Allocations up to this size are kept whole if a launch touches any of them."""
_PAGE = 4096
_MOST_NAME = 60
_CONSTANT_BANK = 3
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
_Seen = DeviceMemory | None
"""The private view on which a launch ran in full; None if it did not."""


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


@dataclass(frozen=True)
class Keeper:
    """Writes launches to a folder as files that `drywarp analyze` takes."""

    folder: Path
    gpu: Gpu
    _named: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def keep(
        self, number: int, code: bytes, kernel: Kernel, launch: Launch, parameters: bytes, heap: Heap, seen: _Seen
    ) -> str:
        """Write a launch before its results are taken over; returns the file's name.

        `code` is the module as the program gave it. Raises UsageError if the file cannot be written.
        """
        assert launch.memory is not None
        kept = KeptLaunch(
            name=kernel.name,
            symbol=kernel.symbol,
            arch=kernel.arch,
            gpu=self.gpu.title,
            code=images_with(code, kernel.symbol, kernel.name),
            grid=launch.grid,
            block=launch.block,
            cluster=launch.cluster,
            shared=launch.dynamic_shared,
            parameters=parameters,
            constants=kernel.constant_banks.get(_CONSTANT_BANK, b""),
            places=variables_of(kernel),
            start=START,
            variables=launch.memory.variables,
            areas=list(launch.memory.areas),
            objects=[(handle, at, what.text, what.row) for handle, what, at in launch.memory.objects],
            host=list(launch.memory.host),
        )
        name = f"{number:04}-{re.sub(r'[^A-Za-z0-9_]+', '_', kernel.name)[:_MOST_NAME]}"
        with self._lock:  # another process of the program has launches with the same numbers
            self._named[name] += 1
            again = self._named[name]
        path = self.folder / f"{name}{f'-{again}' if again > 1 else ''}{SUFFIX}"
        write_kept(path, kept, _memory(heap, parameters, seen))
        return path.name


def _memory(heap: Heap, parameters: bytes, seen: _Seen) -> Iterator[tuple[int, bytes]]:
    """What a launch finds, in pieces without those that are zero: the pages that it touched, or all that it may."""
    if seen is None:
        reachable = _reachable(heap, parameters)
        spans = [(one.start, one.end) for one in heap.allocations if one.start in reachable]
    else:
        spans = [span for one, pages in heap.touched(seen) for span in _spans(one, pages)]
    check_size(sum(stop - at for start, end in spans for at, stop in _extents(heap, start, end)))
    for start, end in spans:
        yield from _content(heap, start, end)


def _spans(one: Allocation, pages: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """First and end of what a launch touched of an allocation."""
    # The page table forgets pages that were moved out.
    if one.size <= _WHOLE_BYTES or _swaps():
        return [(one.start, one.end)]
    found = [(first * _PAGE + START, end * _PAGE + START) for first, end in runs(pages)]
    return [(max(first, one.start), min(end, one.end)) for first, end in found]


def _swaps() -> bool:
    words = Path("/proc/meminfo").read_text(encoding="ascii").split()
    return words[words.index("SwapTotal:") + 1] != words[words.index("SwapFree:") + 1]


def _reachable(heap: Heap, parameters: bytes) -> set[int]:
    """Addresses of the allocations that arguments point to, and of those that pointers in these point to."""
    found, size = set[int](), 0
    given = [int.from_bytes(parameters[offset : offset + 8], "little") for offset in range(0, len(parameters) - 7, 4)]
    left = [one for address in given if (one := heap.at(address))]
    left += [one for one in heap.allocations if one.kind == "variables"]
    left += [one for _, address in heap.objects.values() if (one := heap.at(address))]
    while left:
        one = left.pop()
        if one.start in found:
            continue
        found.add(one.start)
        size += sum(stop - at for at, stop in _extents(heap, one.start, one.end))
        check_size(size)
        left += pointed_to(heap, one)
    return found


def pointed_to(heap: Heap, one: Allocation) -> list[Allocation]:
    """The allocations that pointers in one point to, if all of its words are taken for such; some twice."""
    starts, found = np.array([held.start for held in heap.allocations], np.uint64), list[Allocation]()
    for _, content in _content(heap, one.start, one.end):
        words = np.frombuffer(content, np.uint64, len(content) // 8)
        words = words[(words >= START) & (words < START + heap.size)]
        places = np.unique(np.searchsorted(starts, words, side="right"))
        found += [held for place in places[places > 0] if (held := heap.at(int(starts[place - 1])))]
    return found


def _extents(heap: Heap, start: int, end: int) -> Iterator[tuple[int, int]]:
    """First and end of what was ever written between two addresses: the rest are holes of the file, which are zeros."""
    with suppress(OSError):  # only holes follow
        while (at := max(start, os.lseek(heap.file, start - START, os.SEEK_DATA) + START)) < end:
            start = min(end, os.lseek(heap.file, at - START, os.SEEK_HOLE) + START)
            yield at, start


def _content(heap: Heap, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The bytes between two addresses that are not zero, in pieces."""
    for first, stop in _extents(heap, start, end):
        for at in range(first, stop, PIECE_BYTES):
            piece = os.pread(heap.file, min(PIECE_BYTES, stop - at), at - START)
            if piece.count(0) < len(piece):
                yield at, piece
