"""Calls about memory: allocations, copies, fills."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np

from ..errors import UsageError
from ..execution.emulator.watch import Problem
from ..kernel.launch.launch import ADDRESS_MODES, Buffer
from ..kernel.launch.textures import make_object
from . import properties as cuda
from .calls import Answer, Numbers, State, request
from .heap import OBJECTS
from .result import CopyDone

_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3
_KINDS = ("device", "pinned", "managed")
_LAYERED, _CUBE = 1, 4
_FORMATS = "iuf"
"""CUDA's formats of channels, by number; those of address modes are in the order of `ADDRESS_MODES`."""


class MemoryCalls(State):
    """Handles these calls."""

    @request
    def _malloc(self, n: Numbers, data: bytes) -> Answer:
        if n[0] == 0:
            return Answer(values=(0,))
        made = self.heap.allocate(n[0], _KINDS[n[1]], device=self.device)
        return Answer(values=(made.start,)) if made else Answer(cuda.OUT_OF_MEMORY)

    @request
    def _free(self, n: Numbers, data: bytes) -> Answer:
        if n[0] == 0:
            return Answer()
        if self.deferred and (freed := self.deferred.free(n[0])) is not None:
            return Answer(cuda.SUCCESS if freed else cuda.INVALID_VALUE)
        if self.heap.free(n[0]) is None:
            return Answer(cuda.INVALID_VALUE)
        return Answer()

    @request
    def _reserve(self, n: Numbers, data: bytes) -> Answer:
        """Reserve addresses for mapped memory: all of it is there at once, with zeros."""
        made = self.heap.allocate(n[0], "device", alignment=n[1], device=self.device)
        return Answer(values=(made.start,)) if made else Answer(cuda.OUT_OF_MEMORY)

    @request
    def _mapped(self, n: Numbers, data: bytes) -> Answer:
        """Map memory at an address of a reservation, with the content that it may have had."""
        held = self.heap.at(n[0])
        if held is None or n[0] + n[1] > held.end:
            return Answer(cuda.INVALID_VALUE)
        if self.deferred:
            self.deferred.write(n[0], n[1])
        held.version = 0
        if self.heap.written:
            self.heap.written.mark(n[0], n[1])
        return Answer()

    @request
    def _unmapped(self, n: Numbers, data: bytes) -> Answer:
        """Unmap the content at an address."""
        if self.deferred:
            self.deferred.read(n[0])
        self.timeline.wait_for()
        return Answer()

    @request
    def _reached(self, n: Numbers, data: bytes) -> Answer:
        """Let a device (n[2]) access what lies at an address, or in a pool of a device (n[3]).

        From then on it can access all memory of that device.
        """
        if not 0 <= n[2] < self.timeline.devices:
            return Answer(cuda.INVALID_DEVICE)
        held = self.heap.at(n[0]) if n[0] else None
        if n[0] and (held is None or n[0] + n[1] > held.end):
            return Answer(cuda.INVALID_VALUE)
        owner = held.device if held else n[3]
        if owner != n[2]:
            self.peers.add((n[2], owner))
        return Answer()

    @request
    def _memory_info(self, n: Numbers, data: bytes) -> Answer:
        total = self.heap.capacity
        return Answer(values=(total - self.heap.used[self.device], total))

    @request
    def _device_pointer(self, n: Numbers, data: bytes) -> Answer:
        at = self.heap.device_address(n[0])
        held = self.heap.at(at)
        return Answer(values=(at,)) if held and held.kind != "device" else Answer(cuda.INVALID_VALUE)

    @request
    def _host_register(self, n: Numbers, data: bytes) -> Answer:
        first, size, host = n[:3]
        if any(first < one.host + one.size and one.host < first + size for one in self.heap.registered.values()):
            return Answer(cuda.HOST_MEMORY_REGISTERED)
        made = self.heap.register(host, first, size)
        return Answer(values=(made.at,)) if made else Answer(cuda.OUT_OF_MEMORY)

    @request
    def _registered(self, n: Numbers, data: bytes) -> Answer:
        """The pages around registered memory, where they lie in device memory, and their bytes."""
        one = self.heap.registered.get(n[0])
        return Answer(values=(one.host, one.at, one.size)) if one else Answer(cuda.HOST_MEMORY_NOT_REGISTERED)

    @request
    def _host_unregister(self, n: Numbers, data: bytes) -> Answer:
        self.heap.free(self.heap.registered.pop(n[0]).at)
        return Answer()

    @request
    def _pointer(self, n: Numbers, data: bytes) -> Answer:
        held = self.heap.at(self.heap.device_address(n[0]))
        kinds = {"pinned": 1, "device": 2, "variables": 2, "managed": 3}
        return Answer(values=(kinds[held.kind], held.start, held.size, held.device) if held else (0,))

    @request
    def _prefetch(self, n: Numbers, data: bytes) -> Answer:
        self.timeline.called()
        return Answer()

    @request
    def _copy(self, n: Numbers, data: bytes) -> Answer:
        to, source, width, height, to_pitch, from_pitch, kind, stream, later = n[:9]
        if width == 0 or height == 0:
            return Answer(values=(0,))
        if min(width, height) < 0 or width > to_pitch or width > from_pitch or self.timeline.stream(stream) is None:
            return Answer(cuda.INVALID_VALUE)
        from_device, to_device = self.heap.holds(source), self.heap.holds(to)
        if stream in self.capturing:
            self.capturing[stream].steps.append(("copy", n, b""))
            return Answer(values=(0,))
        told = (kind in (_TO_HOST, _ON_DEVICE) and not from_device, kind in (_TO_DEVICE, _ON_DEVICE) and not to_device)
        if any(told) or (kind == _TO_HOST and to_device and self._is_device(to)):
            return Answer(cuda.INVALID_VALUE)
        for address, pitch in (
            (to, to_pitch) if to_device else (0, 0),
            (source, from_pitch) if from_device else (0, 0),
        ):
            held = self.heap.at(address) if address else None
            if address and (held is None or address + pitch * (height - 1) + width > held.end):
                return Answer(cuda.INVALID_VALUE)
        size = width * height
        if self.deferred:
            self.deferred.read(source)
            self.deferred.write(to, to_pitch * (height - 1) + width)
        ends = self._device_of(source), self._device_of(to)
        what = {(True, True): "copy on device", (False, True): "copy to device", (True, False): "copy to host"}.get(
            (self._is_device(source), self._is_device(to)), "copy on host"
        )
        if what == "copy on device" and ends[0] != ends[1]:
            what = "copy between devices"
        if what != "copy on host":
            self.timeline.copy(stream, what, size, waits=not later, ends=ends)
        self._note_copy(what, source, to, size)
        if self.heap.written:
            for row in range(height):
                self._check_copy(what, source + row * from_pitch, to + row * to_pitch, width)
        return Answer(values=(1,))

    def _check_copy(self, what: str, source: int, to: int, size: int) -> None:
        """One row of a copy: report unwritten bytes if the host gets them; otherwise they stay unwritten."""
        written, origin = self.heap.written, self.heap.at(source)
        assert written
        if origin and self.heap.holds(to):
            written.copy(to, source, size)
        elif self.heap.holds(to):
            written.mark(to, size)
        if origin and not self._is_device(to) and (first := written.first_unwritten(source, size)) >= 0:
            place = f"byte {source + first - origin.start} of {origin.name} ({origin.size} bytes)"
            text = f"copies bytes that were never written, from {place} on"
            self.said.found(Problem("uninitialized", "", what, text, other=origin.name))

    def _device_of(self, address: int) -> int:
        """The device where it lies; for host memory, the device of the caller."""
        held = self.heap.at(address)
        return held.device if held is not None and held.kind != "pinned" else self.device

    def _is_device(self, address: int) -> bool:
        held = self.heap.at(address)
        return held is not None and held.kind != "pinned"

    def _note_copy(self, what: str, source: int, to: int, size: int) -> None:
        """What a copy moves: results that were not computed, or bytes that nobody has written."""
        origin, target = self.heap.at(source), self.heap.at(to)
        lost = origin.lost if origin else ""
        unset = origin is not None and not origin.written
        if target is not None:
            target.written = True
            # The host may have written to other memory since its version was taken.
            whole = origin is not None and origin.kind == "device" and origin.size == size == target.size
            target.version = origin.version if origin and whole else 0
            target.lost = lost if size >= target.size or lost else target.lost
        self.said.copies.append(CopyDone(what, size, lost, origin.name if origin and unset else ""))

    @request
    def _fill(self, n: Numbers, data: bytes) -> Answer:
        at, value, width, height, pitch, stream = n[:6]
        element = n[7] or 1
        if width == 0 or height == 0:
            return Answer()
        held = self.heap.at(at)
        if held is None or width > pitch or at + pitch * (height - 1) + width > held.end:
            return Answer(cuda.INVALID_VALUE)
        if self.timeline.stream(stream) is None:
            return Answer(cuda.INVALID_HANDLE)
        if stream in self.capturing:
            self.capturing[stream].steps.append(("fill", n, b""))
            return Answer()
        if self.deferred:
            self.deferred.write(at, pitch * (height - 1) + width)
        if width == pitch or height == 1:
            one = (value & (1 << 8 * element) - 1).to_bytes(element, "little")
            self.heap.view(at, width * height).reshape(-1, element)[:] = np.frombuffer(one, np.uint8)
            whole = width * height == held.size
            held.version = self.heap.version_of(("fill", one)) if whole else 0
        else:
            for row in range(height):
                self.heap.view(at + row * pitch, width)[:] = value & 0xFF
            held.version = 0
        held.written = True
        if self.heap.written:
            for row in range(height):
                self.heap.written.mark(at + row * pitch, width)
        held.lost = "" if width * height >= held.size else held.lost
        self.timeline.copy(stream, "fill", width * height, waits=False)
        self.said.copies.append(CopyDone("fill", width * height, "", ""))
        return Answer()

    @request
    def _object(self, n: Numbers, data: bytes) -> Answer:
        """A texture or surface object. Extents are as CUDA has them: 0 where there is no such dimension."""
        at, width, height, depth, pitch, channels, bits, kind, flags, texture, how = n[:11]
        layered, cube = bool(flags & _LAYERED), bool(flags & _CUBE)
        extents = [*([depth] if depth else []), *([height] if height else []), width]
        words = [word for word, given in (("layered", layered), ("cube", cube)) if given]
        if texture:
            words += ["linear" if how >> 4 & 15 else "point", ADDRESS_MODES[how & 3]]
            words += ["normalized_float"] if how >> 8 & 15 and kind < _FORMATS.index("f") and bits < 32 else []
            words += ["normalized"] if how >> 12 & 15 and not cube else []
        try:
            shape = (*extents, *([channels] if channels > 1 else []))
            buffer = Buffer(f"{_FORMATS[kind]}{bits}", shape)
            border = struct.unpack("<4f", data)[0]
            made = make_object("texture" if texture else "surface", words, buffer, channels, "object", border)
            made = replace(made, row=pitch // made.texel_bytes)
        except (UsageError, IndexError):
            return Answer(cuda.INVALID_VALUE)
        held = self.heap.at(at)
        if held is None or at + made.nbytes > held.end or pitch % made.texel_bytes:
            return Answer(cuda.INVALID_VALUE)
        self.objects_made += 1
        self.heap.objects[self.objects_made] = made, at
        return Answer(values=(OBJECTS + self.objects_made,))

    @request
    def _object_destroy(self, n: Numbers, data: bytes) -> Answer:
        return Answer(cuda.SUCCESS if self.heap.objects.pop(n[0] - OBJECTS, None) else cuda.INVALID_VALUE)
