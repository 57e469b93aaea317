"""The device memory of a running program: shared with it, at the same addresses in both processes.

Allocations lie in one sparse anonymous file, which the program maps where its pointers say, and drywarp anywhere. A
launch runs on a private view of it (`DeviceImage`); the pages that it wrote are then taken over. Equal versions of an
allocation are equal bytes: a launch that finds the versions of an earlier one leaves what that one left.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..execution.emulator.memory import DeviceMemory
from ..execution.emulator.watch import Written
from ..kernel.launch.launch import SCRATCH_BYTES, DeviceImage, Texture

START = 0x200000000000
"""Address of the first allocation: between where Linux puts programs and where it puts their libraries."""
OBJECTS = 0x7E << 56
"""Handles of texture and surface objects start here: not an address, and unlikely to be computed by programs."""
_ALIGNMENT, _GAP = 512, 1 << 16
_QUARANTINE, _MOST_QUARANTINE = 64, 1 << 12
"""Freed allocations whose addresses are not reused yet, so that a use after free is found."""
_MOST_HASHED = 64 << 20
"""Maximum bytes hashed before a launch: of one allocation, and of all that the host may write unseen."""
_PAGE = mmap.PAGESIZE
_PRESENT, _SWAPPED, _OF_FILE = (np.uint64(1 << bit) for bit in (63, 62, 61))
_MAP_NORESERVE = 0x4000
_FAR, _PAGES_AT_ONCE = 1 << 22, 1 << 20
"""Bytes between allocations whose pages are looked up separately, and pages looked up in one call."""


@dataclass
class Allocation:
    """Bytes that the program asked for. `kind` is device, pinned, managed or variables; `device` is where they lie.

    `written` says whether anything was ever stored there, `lost` names the launch whose results were not computed,
    `version` stands for the content; 0 if nobody has looked at it yet.
    """

    number: int
    start: int
    size: int
    kind: str
    written: bool = False
    lost: str = ""
    version: int = 0
    device: int = 0

    @property
    def end(self) -> int:
        """Address of the first byte beyond it."""
        return self.start + self.size

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"{_NAMES[self.kind]} {self.number}"


_NAMES = {"device": "allocation", "managed": "managed allocation", "pinned": "pinned allocation",
          "variables": "variables of module"}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """What a launch changed of an allocation: its new version, and the bytes with their addresses."""

    start: int
    version: int
    parts: list[tuple[int, npt.NDArray[np.uint8]]]

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return sum(len(content) for _, content in self.parts)


@dataclass(frozen=True)
class Registered:
    """Host memory that was registered: the whole pages around it, from `host` on, lie in device memory from `at` on."""

    host: int
    at: int
    size: int


class Heap:
    """All allocations of one process, on all of its devices; `capacity` is the memory of each in bytes."""

    def __init__(self, capacity: int, checked: bool = False, devices: int = 1) -> None:
        self.capacity = capacity
        # Pinned memory and gaps take addresses, too.
        self.size = -(-(2 * capacity * devices + SCRATCH_BYTES) // _PAGE) * _PAGE
        self.file = os.memfd_create("drywarp-device", os.MFD_CLOEXEC)
        os.ftruncate(self.file, self.size)
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", _MAP_NORESERVE)
        self._bytes = np.frombuffer(mmap.mmap(self.file, self.size, flags=flags), np.uint8)
        self.written = Written(START, self.size) if checked else None
        """Which bytes have been written, if the run is checked for faults that a GPU would not show."""
        self._quarantine = _MOST_QUARANTINE if checked else _QUARANTINE
        self._starts: list[int] = []
        self._held: dict[int, Allocation] = {}
        self.used = Counter[int]()
        """Bytes of device memory in use, by device."""
        self._freed: deque[Allocation] = deque()
        # Start and end of everything that is held or was freed lately, what may be taken between, and beyond.
        self._taken: list[tuple[int, int]] = []
        self._holes: list[tuple[int, int]] = []
        self._next = START
        self.registered: dict[int, Registered] = {}
        """By the address that the program registered."""
        self.objects: dict[int, tuple[Texture, int]] = {}
        """Texture and surface objects by the low word of their handles, each with the address of its first texel."""
        self._made = 0
        self._versions: dict[object, int] = {}
        self._last_version = 0

    def close(self) -> None:
        """Give the memory back to the operating system, even while somebody still has it mapped."""
        _punch(self.file, 0, self.size)
        os.close(self.file)

    @property
    def allocations(self) -> list[Allocation]:
        """All live ones, by address."""
        return [self._held[start] for start in self._starts]

    def allocate(self, size: int, kind: str, alignment: int = _ALIGNMENT, device: int = 0) -> Allocation | None:
        """Zeros of this size, at least one byte; None if the device does not have that much left."""
        size = max(size, 1)
        if kind != "pinned" and self.used[device] + size > self.capacity:
            return None
        start = self._room(size, alignment)
        while start is None and self._freed:
            self._release()
            start = self._room(size, alignment)
        if start is None:
            return None
        self._made += 1
        made = Allocation(self._made, start, size, kind, kind != "device", "", self.version_of("zeros"), device)
        self._starts.insert(bisect_right(self._starts, start), start)
        self._held[start] = made
        if self.written:
            self.written.mark(start, size, kind != "device")
        self.used[device] += size if kind != "pinned" else 0
        return made

    def register(self, host: int, first: int, size: int) -> Registered | None:
        """Room for whole pages, `size` bytes from `first` on, which hold what the program registers at `host`."""
        made = self.allocate(size, "pinned", _PAGE)
        if made is None:
            return None
        self.registered[host] = Registered(first, made.start, size)
        return self.registered[host]

    def device_address(self, address: int) -> int:
        """The address in device memory of registered host memory; of everything else, its own."""
        for one in self.registered.values():
            if one.host <= address < one.host + one.size:
                return address - one.host + one.at
        return address

    def _room(self, size: int, alignment: int) -> int | None:
        """Choose the lowest address with enough room, away from recently freed allocations."""
        for place, (hole, end) in enumerate(self._holes):
            start = -(-hole // alignment) * alignment  # less than a gap lies before it, which is no room
            if start + size + _GAP <= end:
                left = _beyond(start + size)
                self._holes[place : place + 1] = [(left, end)] if left + _GAP < end else []
                break
        else:
            start = -(-self._next // alignment) * alignment
            if start + size + _GAP + SCRATCH_BYTES > START + self.size:
                return None
            self._next = _beyond(start + size)
        place = bisect_right(self._taken, (start, 0))
        self._taken.insert(place, (start, start + size))
        return start

    def _release(self) -> None:
        """Make the addresses of the allocation that was freed the longest ago available again."""
        one = self._freed.popleft()
        place = bisect_right(self._taken, (one.start, 0))
        del self._taken[place]
        start = _beyond(self._taken[place - 1][1]) if place else START
        first = last = bisect_right(self._holes, (start, 0))
        while last < len(self._holes) and self._holes[last][0] <= _beyond(one.end):
            last += 1
        end = self._taken[place][0] if place < len(self._taken) else None
        if end is None:
            self._next = start
        self._holes[first:last] = [(start, end)] if end is not None and start + _GAP < end else []

    def free(self, start: int) -> Allocation | None:
        """Free an allocation, and release its pages; None if none starts there."""
        found = self._held.pop(start, None)
        if found is None:
            return None
        del self._starts[bisect_right(self._starts, start) - 1]
        self.used[found.device] -= found.size if found.kind != "pinned" else 0
        self._freed.append(found)
        while len(self._freed) > self._quarantine:
            self._release()
        offset = found.start - START
        first, end = -(-offset // _PAGE) * _PAGE, (offset + found.size) // _PAGE * _PAGE
        if end > first:
            _punch(self.file, first, end - first)
            self._bytes[offset:first] = 0
            self._bytes[end : offset + found.size] = 0
        else:
            self._bytes[offset : offset + found.size] = 0
        return found

    def at(self, address: int) -> Allocation | None:
        """The live allocation that holds this address."""
        place = bisect_right(self._starts, address) - 1
        found = self._held[self._starts[place]] if place >= 0 else None
        return found if found is not None and address < found.end else None

    def _whole(self, what: Texture, address: int) -> bool:
        """Whether the texels of an object are still allocated: programs may free an array before its object."""
        held = self.at(address)
        return held is not None and address + what.nbytes <= held.end

    def object_at(self, handle: int) -> Allocation | None:
        """The live allocation that holds the texels of an object, by its handle."""
        made = self.objects.get(handle - OBJECTS)
        return self.at(made[1]) if made else None

    def holds(self, address: int) -> bool:
        """Whether the address is one of this memory's, allocated or not."""
        return START <= address < START + self.size

    def view(self, address: int, size: int) -> npt.NDArray[np.uint8]:
        """A range of bytes, readable and writable."""
        return self._bytes[address - START : address - START + size]

    def image(self, variables: int, names: dict[int, str], reach: Set[int] = frozenset((0,))) -> DeviceImage:
        """The memory as seen by a launch that can access the memory of these devices.

        `names` are those of allocations, by address, that the launch was given.
        """
        reached = [one for one in self.allocations if one.device in reach or one.kind in ("pinned", "managed")]
        areas = tuple((names.get(one.start, one.name), one.start, one.size) for one in reached)
        objects = tuple((handle, *made) for handle, made in self.objects.items() if self._whole(*made))
        freed = tuple((one.name, one.start, one.size) for one in self._freed) if self.written else ()
        host = tuple(area[0] for area, one in zip(areas, reached, strict=True) if one.kind == "pinned")
        return DeviceImage(self.file, START, areas, variables, objects=objects, freed=freed, host=host)

    def take_over(self, memory: DeviceMemory, most: int = 1 << 62) -> list[Change] | None:
        """Copy what a launch has written to its private view; returns what differs from before.

        None if that is more than `most` bytes.
        """
        changes, left = [], most
        for one, pages in self.touched(memory, written=True):
            parts = []
            for first, end in runs(pages):
                # Only the allocation's own bytes: its neighbours' pages are theirs.
                begin, stop = max(first * _PAGE, one.start - START), min(end * _PAGE, one.end - START)
                new = memory.views[1][begin:stop]
                if not _equal(self._bytes[begin:stop], new):
                    if self.written:
                        self.written.changed(begin, self._bytes[begin:stop] != new)
                    self._bytes[begin:stop] = new
                    left -= stop - begin
                    parts.append((begin + START, new.copy() if left >= 0 else new[:0]))
            one.written = True
            if parts:
                one.version = self.version_of()
                changes.append(Change(one.start, one.version, parts))
        return changes if left >= 0 else None

    def touched(
        self, memory: DeviceMemory, written: bool = False
    ) -> Iterator[tuple[Allocation, npt.NDArray[np.int64]]]:
        """The allocations that a launch touched on its private view, each with the numbers of its pages.

        If `written`, exactly the pages that it wrote to: copies, no longer pages of the file; else a few more around
        those that it touched.
        """
        starts = np.array(self._starts, np.int64) - START
        ends = starts + np.array([self._held[start].size for start in self._starts], np.int64)
        # Neighbours are looked up together, but what lies far apart is not.
        cuts = np.flatnonzero(starts[1:] - ends[:-1] > _FAR) + 1
        for group in np.split(np.arange(len(starts)), cuts) if len(starts) else ():
            pages = _pages(memory.views[1], int(starts[group[0]]), int(ends[group[-1]]), written)
            # No page holds parts of two, as there are gaps.
            owner = np.searchsorted(starts, (pages + 1) * _PAGE) - 1
            inside = (owner >= 0) & (ends[owner] > pages * _PAGE)
            pages, owner = pages[inside], owner[inside]
            for part in np.split(np.arange(len(pages)), np.flatnonzero(np.diff(owner)) + 1) if len(pages) else ():
                yield self._held[self._starts[owner[part[0]]]], pages[part]

    def repeat(self, changes: Iterable[Change]) -> None:
        """Apply the changes of an earlier launch that found the same versions."""
        for change in changes:
            held = self._held[change.start]
            held.version, held.written = change.version, True
            for address, content in change.parts:
                self.view(address, len(content))[:] = content

    # Versions ------------------------------------------------------------------------------------------------------

    def version_of(self, content: object = None) -> int:
        """The number that stands for a content; a new one if the content is not known."""
        if content is not None and content in self._versions:
            return self._versions[content]
        self._last_version += 1
        if content is not None:
            self._versions[content] = self._last_version
        return self._last_version

    def state(self) -> tuple[tuple[int, ...], ...] | None:
        """The versions of everything that is allocated; None if the program may change too much of it unseen."""
        unseen = [one for one in self._held.values() if one.kind in ("pinned", "managed")]
        if sum(one.size for one in unseen) > _MOST_HASHED:
            return None
        for one in (*unseen, *(one for one in self._held.values() if not one.version)):
            if one.size > _MOST_HASHED:
                one.version = self.version_of()
            else:
                content = self.view(one.start, one.size).data
                one.version = self.version_of(hashlib.blake2b(content, digest_size=16).digest())
        # Which bytes were written is known of one allocation, not of the next at its place.
        same = 0 if self.written is None else 1
        return tuple((one.start, one.size, one.version, one.number * same) for one in self.allocations)


def _beyond(end: int) -> int:
    """The first address that may be given out after an allocation."""
    return -(-(end + _GAP) // _ALIGNMENT) * _ALIGNMENT


def _pages(arena: npt.NDArray[np.uint8], start: int, end: int, written: bool) -> npt.NDArray[np.int64]:
    """Numbers of the pages of a private view between two offsets that were touched, or written."""
    first, last = start // _PAGE, (end - 1) // _PAGE + 1
    base, found = arena.ctypes.data // _PAGE, []
    with open("/proc/self/pagemap", "rb", buffering=0) as pages:
        for at in range(first, last, _PAGES_AT_ONCE):
            size = 8 * (min(at + _PAGES_AT_ONCE, last) - at)
            entries = np.frombuffer(os.pread(pages.fileno(), size, 8 * (base + at)), np.uint64)
            there = (entries & (_PRESENT | _SWAPPED)) != 0
            found.append(np.flatnonzero(there & ((entries & _OF_FILE) == 0) if written else there) + at)
    return np.concatenate(found)


def runs(numbers: npt.NDArray[np.int64]) -> Iterable[tuple[int, int]]:
    """First and end of each run of consecutive numbers."""
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    for part in np.split(numbers, cuts) if len(numbers) else ():
        yield int(part[0]), int(part[-1]) + 1


def _equal(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> bool:
    """Whether as many bytes are the same; a comparison in NumPy would take an array of truths as large as they are."""
    where = ctypes.c_void_p(one.ctypes.data), ctypes.c_void_p(other.ctypes.data)
    return not ctypes.CDLL(None).memcmp(*where, ctypes.c_size_t(len(one)))


def _punch(file: int, offset: int, size: int) -> None:
    """Turn whole pages of the file into holes, which read as zeros and take no memory."""
    punch_hole, keep_size = 2, 1
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate(file, keep_size | punch_hole, ctypes.c_int64(offset), ctypes.c_int64(size))
