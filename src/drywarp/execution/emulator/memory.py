"""Device memory: one lazily backed arena of buffers.

All buffers and the module's `__device__` variables lie in one anonymous mapping that the operating system backs only
where it is touched, so an address becomes an array index by one subtraction. Gaps between buffers belong to none: an
access there is an error. The memory of a whole program is a private view of the program's own, made for one launch.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernel.launch.launch import Buffer, DeviceImage, Texture
from .content import CHUNK_BYTES, fill_chunk, numpy_dtype

assert sys.byteorder == "little", "device memory is little endian, and is viewed through NumPy types"


ARENA_START = 0x7F0000000000
"""Address of the first buffer: where allocations lie on a 64-bit Linux host."""
_GAP, _WIDEST_GAP = 1 << 16, 1 << 28
"""Between regions lies as much as the largest buffer has, within these limits: no index that fits one buffer leads from
another into a third."""
_ALIGNMENT = 512
_CHUNK_SHIFT = np.uint64(CHUNK_BYTES.bit_length() - 1)
_MAP_NORESERVE = 0x4000
PAGE_BYTES = 1 << 21
"""Granularity in which a GPU maps allocations: it serves reads up to the end of the last page."""
Reader = tuple[tuple[int, int, int], tuple[int, int, int]]
"""Coordinates of a block and of a thread."""
_NULL_BYTES = 1 << 16
"""An address below this is a null pointer, or a field of an object at a null pointer."""


@dataclass
class Region:
    """An allocation: `start` address and `size` in bytes; `pending` marks chunks not filled yet.

    `first_chunk` is where these stand among the chunks of all buffers.
    """

    name: str
    start: int
    size: int
    buffer: Buffer | None = None
    ordinal: int = 0
    pending: npt.NDArray[np.bool_] | None = None
    first_chunk: int = 0
    base: np.uint64 = field(init=False)

    def __post_init__(self) -> None:
        self.base = np.uint64(self.start)


class DeviceMemory:
    """The device's address space: typed views of one arena, and the regions in it.

    `views` maps an access width in bytes (1, 2, 4, 8, 16) to the arena as elements of that width.
    `scratch` are further areas of zeros, by name and size in bytes. `strict` serves no read beyond the end of a buffer.
    `program` is the memory of a program that has buffers and variables of its own; nothing is written back to it.
    """

    def __init__(
        self,
        buffers: list[tuple[str, int, Buffer]],
        image: bytes,
        seed: int,
        scratch: Sequence[tuple[str, int]] = (),
        strict: bool = False,
        program: DeviceImage | None = None,
    ) -> None:
        self._strict = strict
        # Blocks may run in several threads.
        self._lock = threading.Lock()
        self._served: dict[tuple[str, str], tuple[int, int]] = {}
        self._readers: dict[tuple[str, str], Reader] = {}
        self._freed = program.freed if program else ()
        self.regions: list[Region] = []
        self.heap_used = 0
        self.launching: dict[int, tuple[int, ...]] = {}
        """Buffers for parameters of launches by the device that are taken, with what each launch is to be."""
        self.launched: list[Any] = []
        """Launches that device code asked for, in order."""
        self.draws: dict[int, tuple[int, int]] = {}
        """First content and step of counters that blocks draw work from, by place in the arena."""
        self.objects: dict[int, tuple[Texture, Region]] = {}
        """Texture and surface objects by handle."""
        self._seed = seed
        self.start = program.start if program else ARENA_START
        """Address of the arena's first byte."""
        at = self.start
        gap = max(_GAP, min(_WIDEST_GAP, max((buffer.nbytes for _, _, buffer in buffers), default=0)))
        chunks = np.cumsum([0, *(-(-buffer.nbytes // CHUNK_BYTES) for _, _, buffer in buffers)])
        # Chunks of all buffers whose content has not been generated yet.
        self.pending = np.zeros(int(chunks[-1]), np.bool_)
        for (name, ordinal, buffer), first, end in zip(buffers, chunks.tolist(), chunks[1:].tolist(), strict=False):
            pending = self.pending[first:end]
            # Fresh memory already holds zeros.
            pending[...] = buffer.fill != "zeros"
            self.regions.append(
                Region(name, at, buffer.nbytes, buffer, ordinal, pending if pending.any() else None, first)
            )
            at = _aligned(at + buffer.nbytes + gap)
        if program:
            self.regions += [Region(*area) for area in program.areas]
            for handle, texture, address in program.objects:
                self.objects[handle] = texture, Region(f"object {handle}", address, texture.nbytes)
            at = program.scratch
        self.image = Region("__device__ variables", program.variables if program else at, len(image))
        if image and not program:
            self.regions.append(self.image)
            at = _aligned(at + len(image) + _GAP)
        for name, size in scratch:
            self.regions.append(Region(name, at, size))
            at = _aligned(at + size + _GAP)
        flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", _MAP_NORESERVE)
        if program:
            mapping = mmap.mmap(program.file, _whole_pages(at - self.start), flags=flags)
        else:
            mapping = mmap.mmap(-1, max(at - self.start, mmap.PAGESIZE), flags=flags | mmap.MAP_ANONYMOUS)
        self._arena = np.frombuffer(mapping, np.uint8)
        self.views: dict[int, npt.NDArray[Any]] = {
            1: self._arena,
            2: self._arena.view(np.uint16),
            4: self._arena.view(np.uint32),
            8: self._arena.view(np.uint64),
            # NumPy has no 16-byte integer; a complex number serves for moving data.
            16: self._arena.view(np.complex128),
        }
        # Address, size and first chunk of each region, and whether any of its chunks is pending.
        self.table = np.array(
            [[r.start, r.size, r.first_chunk, r.pending is not None] for r in self.regions], np.int64
        ).reshape(-1, 4)
        self._starts = np.array([region.start for region in self.regions], np.uint64)
        self._sizes = np.array([region.size for region in self.regions], np.uint64)
        if image and not program:
            self.bytes_of(self.image)[...] = np.frombuffer(image, np.uint8)

    @property
    def size(self) -> int:
        """Bytes from the start of the first region to the end of the last, and what lies between."""
        return len(self._arena)

    def region_named(self, name: str) -> Region:
        """The region of this name, which must exist."""
        return next(region for region in self.regions if region.name == name)

    def bind(self, texture: Texture, region: Region) -> int:
        """Create an object for a texture whose texels lie in `region`; returns its handle."""
        handle = len(self.objects) + 1
        self.objects[handle] = (texture, region)
        return handle

    def bytes_of(self, region: Region) -> npt.NDArray[np.uint8]:
        """The bytes of a region, as a view."""
        offset = region.start - self.start
        return self._arena[offset : offset + region.size]

    def content(self, region: Region) -> npt.NDArray[Any]:
        """The present content of a buffer, filled where no thread has touched it, as a view."""
        assert region.buffer is not None
        if (pending := region.pending) is not None:
            self._fill(region, np.flatnonzero(pending))
        return self.bytes_of(region).view(numpy_dtype(region.buffer.dtype)).reshape(region.buffer.shape)

    def prepare(self, region: Region, offsets: npt.NDArray[np.uint64]) -> None:
        """Fill the chunks that an access at these byte offsets is the first to touch."""
        pending = region.pending
        if pending is None:
            return
        chunks = (offsets >> _CHUNK_SHIFT).view(np.int64)
        missing = pending.take(chunks)
        if missing.any():
            self._fill(region, np.unique(chunks[missing]))

    def fill(self, chunk: int) -> None:
        """Fill one of the pending chunks, by its number among those of all buffers."""
        region = next(r for r in reversed(self.regions) if r.buffer is not None and r.first_chunk <= chunk)
        self._fill(region, np.array([chunk - region.first_chunk]))

    def region_of(self, addresses: npt.NDArray[np.uint64], width: Any) -> npt.NDArray[np.int64]:
        """Index of the region that contains each access of `width` bytes (uint64), -1 if there is none."""
        if not self.regions:
            return np.full(addresses.shape, -1)
        found = np.searchsorted(self._starts, addresses, side="right") - 1
        offset = addresses - self._starts[np.maximum(found, 0)]
        inside = (found >= 0) & (offset + width <= self._sizes[np.maximum(found, 0)])
        return np.where(inside, found, -1)

    def serve(
        self,
        origin: Region | None,
        addresses: npt.NDArray[np.uint64],
        outside: Any,
        width: int,
        where: str,
        reader: Reader | None = None,
    ) -> npt.NDArray[np.uint64] | None:
        """The addresses, with those `outside` all buffers replaced by ones that hold zeros; None if a GPU would fail.

        A GPU serves reads beyond the end of a buffer up to the end of its last page, with whatever lies there. `origin`
        is the buffer that is probably meant; else it is the nearest. `where` is the instruction and `reader` the first
        thread of the access that is outside, for the answer.
        """
        low, high = int(addresses[outside].min()), int(addresses[outside].max()) + width
        meant = [*([origin] if origin else []), *([self._nearest(low, width)] if self.regions else [])]
        fits = [r for r in meant if r.start <= low and high <= r.start + _whole_pages(r.size)]
        if self._strict or not fits or any(start <= low < start + size for _, start, size in self._freed):
            return None
        region = fits[0]
        end = region.start + region.size
        with self._lock:
            longest, _ = self._served.get((where, region.name), (0, 0))
            self._served[where, region.name] = max(longest, high - end), region.size
            if reader:
                self._readers.setdefault((where, region.name), reader)
        # The gap behind a region holds zeros: nothing can be written there.
        near = addresses + np.uint64(width) <= np.uint64(end + _GAP)
        return np.where(outside & ~near, np.uint64(-(-end // 16) * 16), addresses)

    def served_notes(self) -> tuple[list[str], list[str]]:
        """A sentence for each instruction that read beyond the end of a buffer and was served: notes, and doubts.

        A kernel that reads farther beyond a buffer than the buffer is long was probably given too small a one.
        """
        notes, doubts = [], []
        for (where, name), (beyond, size) in sorted(self._served.items()):
            read = f"{where} reads up to {beyond} bytes beyond the end of {name} ({size} bytes)"
            if beyond > size:
                doubts.append(f"{name} is probably too small: {read}, served with zeros (--strict makes it an error)")
            else:
                page = "as a GPU serves it from the same 2 MiB page"
                notes.append(f"{read}: served with zeros, {page} (--strict makes it an error)")
        return notes, doubts

    def beyond(self) -> list[tuple[str, str, Reader]]:
        """The instructions that read beyond the end of a buffer and were served: where, what, and who did so first."""
        return [
            (where, f"reads up to {beyond} bytes beyond the end of {name} ({size} bytes)", self._readers[where, name])
            for (where, name), (beyond, size) in sorted(self._served.items())
            if (where, name) in self._readers
        ]

    def describe(self, address: int, width: int, origin: Region | None = None) -> str:
        """The position of an address relative to `origin`, or to the nearest buffers, for an error message."""
        if address < _NULL_BYTES:
            return "a null pointer"
        if address < self.start // 2:
            return f"{address} bytes from a null pointer: a pointer that was not given, or given as null"
        for name, start, size in self._freed:
            if start <= address < start + size:
                return f"at byte {address - start} of {name} ({size} bytes), which was freed"
        if not self.regions:
            return "the launch has no buffers"

        region = origin or self._nearest(address, width)
        offset = address - region.start
        extent = f"{region.name} ({region.size} bytes)"
        if offset < 0:
            text = f"{_extent(-offset, region, up=True)} before the start of {extent}"
            earlier = [] if origin else [r for r in self.regions if r.start < region.start]
            if not earlier:
                return text
            ended = max(earlier, key=lambda r: r.start)
            # The nearer buffer need not be the one that the pointer came from.
            beyond = address - ended.start - ended.size
            return f"{text}, {beyond} bytes beyond the end of {ended.name} ({ended.size} bytes)"
        beyond = offset - region.size
        if beyond < 0:
            return f"at byte {offset} of {extent}"
        if beyond == 0:
            return f"just past the end of {extent}"
        return f"{_extent(beyond, region)} beyond the end of {extent}"

    def _nearest(self, address: int, width: int) -> Region:
        return min(self.regions, key=lambda r: max(r.start - address, address + width - r.start - r.size, 0))

    def _fill(self, region: Region, chunks: npt.NDArray[np.int64]) -> None:
        assert region.buffer is not None
        memory = self.bytes_of(region)
        with self._lock:
            # Another thread may have filled some meanwhile, and written to them.
            if region.pending is None:
                return
            for chunk in chunks[region.pending[chunks]]:
                fill_chunk(memory, region.buffer, region.ordinal, self._seed, int(chunk))
                region.pending[chunk] = False
            if not region.pending.any():
                region.pending = None
                self.table[self._starts == region.base, 3] = 0


def _extent(size: int, region: Region, up: bool = False) -> str:
    """Bytes, and how many elements of a buffer they are."""
    if region.buffer is None:
        return f"{size} bytes"
    each = numpy_dtype(region.buffer.dtype).itemsize
    return f"{size} bytes ({-(-size // each) if up else size // each} elements of {region.buffer.dtype})"


def _whole_pages(size: int) -> int:
    return -(-size // PAGE_BYTES) * PAGE_BYTES


def _aligned(address: int) -> int:
    return -(-address // _ALIGNMENT) * _ALIGNMENT
