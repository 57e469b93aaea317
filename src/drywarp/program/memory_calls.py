"""Calls about memory: allocations, copies, fills."""

from __future__ import annotations

import numpy as np

from . import properties as cuda
from .calls import Answer, Numbers, State, request
from .result import CopyDone

_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3
_KINDS = ("device", "pinned", "managed")


class MemoryCalls(State):
    """Answers them."""

    @request
    def _malloc(self, n: Numbers, data: bytes) -> Answer:
        if n[0] == 0:
            return Answer(values=(0,))
        made = self.heap.allocate(n[0], _KINDS[n[1]])
        return Answer(values=(made.start,)) if made else Answer(cuda.OUT_OF_MEMORY)

    @request
    def _free(self, n: Numbers, data: bytes) -> Answer:
        if n[0] == 0:
            return Answer()
        if self.heap.free(n[0]) is None:
            return Answer(cuda.INVALID_VALUE)
        return Answer()

    @request
    def _memory_info(self, n: Numbers, data: bytes) -> Answer:
        total = self.heap.capacity
        return Answer(values=(total - self.heap.used, total))

    @request
    def _device_pointer(self, n: Numbers, data: bytes) -> Answer:
        held = self.heap.at(n[0])
        return Answer(cuda.SUCCESS if held and held.kind != "device" else cuda.INVALID_VALUE)

    @request
    def _host_register(self, n: Numbers, data: bytes) -> Answer:
        self.said.unmodelled["host memory registered with cudaHostRegister, which kernels cannot reach here"] += 1
        return Answer()

    @request
    def _pointer(self, n: Numbers, data: bytes) -> Answer:
        held = self.heap.at(n[0])
        kinds = {"pinned": 1, "device": 2, "variables": 2, "managed": 3}
        return Answer(values=(kinds[held.kind], held.start, held.size) if held else (0,))

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
        what = {(True, True): "copy on device", (False, True): "copy to device", (True, False): "copy to host"}.get(
            (self._is_device(source), self._is_device(to)), "copy on host"
        )
        if what != "copy on host":
            self.timeline.copy(stream, what, size, waits=not later)
        self._note_copy(what, source, to, size)
        return Answer(values=(1,))

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
        held.lost = "" if width * height >= held.size else held.lost
        self.timeline.copy(stream, "fill", width * height, waits=False)
        self.said.copies.append(CopyDone("fill", width * height, "", ""))
        return Answer()
