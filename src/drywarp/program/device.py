"""The device that a program sees: one method for each request of its library (`native/runtime.c`).

A method takes a request's numbers and bytes, and returns a CUDA error code, numbers and bytes.
"""

from __future__ import annotations

from ..execution.emulator.watch import Problem
from . import properties as cuda
from .calls import REQUESTS, Answer, Numbers, error_text, request
from .code_calls import CodeCalls
from .memory_calls import MemoryCalls
from .order_calls import OrderCalls

DRIVER_VERSION = 13000


class Device(CodeCalls, MemoryCalls, OrderCalls):
    """Handles all requests of a process."""

    def asks(self, device: int, thread: int) -> None:
        """Further requests come from this thread of the host, which has chosen this device."""
        self.timeline.device, self.timeline.thread = device if self._has(device) else 0, thread

    def answer(self, name: str, numbers: Numbers, data: bytes) -> Answer:
        """The reply to a request of the program."""
        if name not in _ALWAYS and (ended := self.failed.get(self.device)):
            return Answer(ended)
        reply: Answer = getattr(self, REQUESTS[name])(numbers, data)
        if reply.status and self.said.checks:
            error, text = error_text(reply.status)
            self.said.found(Problem("failed call", "", _CALLS.get(name, name), f"{error}: {text}"))
        return reply

    def print_now(self, name: str, numbers: Numbers) -> bytes:
        """The output of device code, if the request synchronized with the device; it is cleared here."""
        if not self.printed or name not in _WAITING or (name == "copy" and numbers[_COPY_LATER]):
            return b""
        printed, self.printed = self.printed, ""
        return printed.encode("utf-8", "surrogateescape")

    @request
    def _peek(self, n: Numbers, data: bytes) -> Answer:
        return Answer()

    @request
    def _error(self, n: Numbers, data: bytes) -> Answer:
        name, text = error_text(n[0])
        return Answer(data=name.encode() + b"\0" + text.encode())

    @request
    def _devices(self, n: Numbers, data: bytes) -> Answer:
        return Answer(values=(self.timeline.devices,))

    def _has(self, device: int) -> bool:
        return 0 <= device < self.timeline.devices

    @request
    def _device_set(self, n: Numbers, data: bytes) -> Answer:
        return Answer(cuda.SUCCESS if self._has(n[0]) else cuda.INVALID_DEVICE)

    @request
    def _peer_possible(self, n: Numbers, data: bytes) -> Answer:
        if not (self._has(n[0]) and self._has(n[1])):
            return Answer(cuda.INVALID_DEVICE)
        return Answer(values=(int(n[0] != n[1]),))

    @request
    def _peer_enable(self, n: Numbers, data: bytes) -> Answer:
        """Let kernels of this device access the memory of another; with n[1], no longer."""
        pair = self.device, n[0]
        if not self._has(n[0]) or n[0] == self.device:
            return Answer(cuda.INVALID_DEVICE)
        if (pair in self.peers) != bool(n[1]):
            return Answer(cuda.PEER_NOT_ENABLED if n[1] else cuda.PEER_ALREADY_ENABLED)
        self.peers ^= {pair}
        return Answer()

    @request
    def _created(self, n: Numbers, data: bytes) -> Answer:
        self.timeline.created(n[0])
        return Answer()

    @request
    def _joined(self, n: Numbers, data: bytes) -> Answer:
        self.timeline.joined(n[0])
        return Answer()

    @request
    def _device_wait(self, n: Numbers, data: bytes) -> Answer:
        self.timeline.wait_for()
        return Answer()

    @request
    def _device_reset(self, n: Numbers, data: bytes) -> Answer:
        self.timeline.wait_for()
        self.failed.pop(self.device, None)
        return Answer()

    @request
    def _attribute(self, n: Numbers, data: bytes) -> Answer:
        return (
            Answer(values=(cuda.attribute_of(self.gpu, n[0], n[1]),))
            if self._has(n[1])
            else Answer(cuda.INVALID_DEVICE)
        )

    @request
    def _properties(self, n: Numbers, data: bytes) -> Answer:
        if not self._has(n[0]):
            return Answer(cuda.INVALID_DEVICE)
        return Answer(data=cuda.packed_properties(self.gpu, n[1], n[0]))

    @request
    def _limit(self, n: Numbers, data: bytes) -> Answer:
        return Answer(values=(self.limits.get(n[0], 0),))

    @request
    def _limit_set(self, n: Numbers, data: bytes) -> Answer:
        self.limits[n[0]] = n[1]
        return Answer()

    @request
    def _table(self, n: Numbers, data: bytes) -> Answer:
        self.said.tables += 1
        return Answer()

    @request
    def _driver_version(self, n: Numbers, data: bytes) -> Answer:
        return Answer(values=(DRIVER_VERSION,))

    @request
    def _unsupported(self, n: Numbers, data: bytes) -> Answer:
        self.said.unmodelled[data.decode()] += 1
        return Answer(cuda.NOT_SUPPORTED)


_ALWAYS = frozenset(
    "error peek table devices properties attribute device_set created joined peer_possible "
    "driver_version register function variable unsupported device_reset limit".split()
)
"""Requests that still work after a launch has failed."""
_CALLS = {
    "malloc": "cudaMalloc", "free": "cudaFree", "copy": "cudaMemcpy", "fill": "cudaMemset", "launch": "launch",
    "symbol": "cudaGetSymbolAddress", "stream_wait": "cudaStreamSynchronize", "event_wait": "cudaEventSynchronize",
    "event_record": "cudaEventRecord", "event_elapsed": "cudaEventElapsedTime", "device_set": "cudaSetDevice",
    "host_register": "cudaHostRegister", "function_set": "cudaFuncSetAttribute",
}  # fmt: skip
"""CUDA's names of the calls behind requests, without their variants."""
_WAITING = frozenset("copy device_wait device_reset event_wait stream_wait".split())
_COPY_LATER = 8
"""Place of the number that says that a copy is asynchronous."""
