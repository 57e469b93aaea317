"""Files of launches: a file holds code, arguments, and the memory that a launch touches, or all that it may."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import numpy as np
import numpy.typing as npt

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


@dataclass(frozen=True)
class Keeper:
    """Writes launches to a folder as files that `drywarp analyze` takes."""

    folder: Path
    gpu: Gpu
    _named: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def keep(
        self, number: int, code: bytes, kernel: Kernel, launch: Launch, parameters: bytes, heap: Heap,
        seen: DeviceMemory | None,
    ) -> str:  # fmt: skip
        """Write a launch, of the module `code`, before its results are taken over; returns the file's name.

        `seen` is the private view on which it ran in full, None if it did not. Raises UsageError if writing fails.
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


def _memory(heap: Heap, parameters: bytes, seen: DeviceMemory | None) -> Iterator[tuple[int, bytes]]:
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
    size = 0

    def follow(one: Allocation) -> list[Allocation]:
        nonlocal size
        size += sum(stop - at for at, stop in _extents(heap, one.start, one.end))
        check_size(size)
        return pointed_to(heap, one)

    return reached([*given_to(heap, parameters), *(one for one in heap.allocations if one.kind == "variables")], follow)


def given_to(heap: Heap, parameters: bytes) -> list[Allocation]:
    """The allocations that arguments may point to, and those of all texture and surface objects."""
    words = [int.from_bytes(parameters[at : at + 8], "little") for at in range(0, len(parameters) - 7, 4)]
    return [one for word in (*words, *(at for _, at in heap.objects.values())) if (one := heap.at(word))]


def reached(first: Iterable[Allocation], follow: Callable[[Allocation], Iterable[Allocation]]) -> set[int]:
    """Addresses of these allocations, and of all to which `follow` leads from them."""
    found, left = set[int](), [*first]
    while left:
        one = left.pop()
        if one.start not in found:
            found.add(one.start)
            left += follow(one)
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
