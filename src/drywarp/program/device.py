"""The device that a program sees: its modules, memory, streams and events, one method for each request.

Requests are those of `native/runtime.c`; each method takes their numbers and bytes, and answers with an error code of
CUDA's, numbers and bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..analysis.prepared import occupancy_of
from ..analysis.request import Options
from ..errors import DrywarpError, EmulationError, UsageError
from ..frontends.binary.containers import load_binary_module
from ..hardware import Gpu
from ..hardware.occupancy import occupancy
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Launch
from . import properties as cuda
from .heap import Allocation, Heap
from .launches import Asked, Launches, pointers
from .result import CopyDone, Fault, LaunchDone, ProcessRun
from .timeline import Event, Stream, Timeline

DRIVER_VERSION = 13000
_TO_DEVICE, _TO_HOST, _ON_DEVICE, _DEFAULT_KIND = 1, 2, 3, 4
_CAPTURE_ACTIVE = 1
_MAX_DYNAMIC_SHARED = 8
"""`cudaFuncAttributeMaxDynamicSharedMemorySize`."""
_STACK_SIZE, _HEAP_SIZE = 0, 2
_LIMITS = {_STACK_SIZE: 1024, 1: 1 << 20, _HEAP_SIZE: 8 << 20}
_CONSTANT_BANK = 3
_WARP = 32


@dataclass(frozen=True)
class Answer:
    """The reply to one request."""

    status: int = cuda.SUCCESS
    values: tuple[int, ...] = ()
    data: bytes = b""


@dataclass
class Module:
    """A fat binary that the program registered; its kernels are read when the first of them is needed."""

    number: int
    data: bytes
    kernels: dict[str, Kernel] | None = None
    failed: str = ""
    globals: Allocation | None = None
    constants: Allocation | None = None


@dataclass
class Function:
    """A kernel as the program knows it, by an address of its own."""

    module: Module
    name: str
    dynamic_shared: int = 0


@dataclass
class Graph:
    """What a stream captured: requests, in order."""

    steps: list[tuple[str, tuple[int, ...], bytes]] = field(default_factory=list)


class Device:
    """The device of one process. `origin` names the program in messages; `said` collects what the answer reports."""

    def __init__(self, gpu: Gpu, options: Options, origin: str, most_each: int, most: int) -> None:
        self.gpu, self.origin = gpu, origin
        self.heap = Heap(cuda.memory_bytes(gpu))
        self.timeline = Timeline(gpu)
        self.said = ProcessRun(self.timeline)
        self._launches = Launches(gpu, options, most_each, most)
        self._modules: list[Module] = []
        self._functions: dict[int, Function] = {}
        self._variables: dict[int, tuple[Module, str, int]] = {}
        self._limits = dict(_LIMITS)
        self._graphs: dict[int, Graph] = {}
        self._capturing: dict[int, Graph] = {}
        self._pending = cuda.SUCCESS
        """The error of a launch that failed: the next call that waits for the device returns it, and all later ones."""
        self._requests: dict[str, Callable[..., Answer]] = {
            name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")
        }

    def answer(self, name: str, numbers: tuple[int, ...], data: bytes) -> Answer:
        """The reply to a request of the program's."""
        if self._pending and name not in _ALWAYS:
            return Answer(self._pending)
        return self._requests[name](numbers, data)

    # Kernels and variables -----------------------------------------------------------------------------------------

    def do_register(self, n: tuple[int, ...], data: bytes) -> Answer:
        self._modules.append(Module(len(self._modules), data))
        return Answer(values=(len(self._modules) - 1,))

    def do_function(self, n: tuple[int, ...], data: bytes) -> Answer:
        self._functions[n[1]] = Function(self._modules[n[0]], data.decode())
        return Answer()

    def do_variable(self, n: tuple[int, ...], data: bytes) -> Answer:
        self._variables[n[1]] = self._modules[n[0]], data.decode(), n[2]
        return Answer()

    def _kernels(self, module: Module) -> dict[str, Kernel]:
        """The kernels of a module; none if it cannot run on this GPU, which is then told."""
        if module.kernels is None:
            try:
                module.kernels = load_binary_module(Path(self.origin), module.data, arch=self.gpu.arch)
            except DrywarpError as error:
                module.kernels, module.failed = {}, str(error)
                self.said.notes.append(str(error))
            some = next(iter(module.kernels.values()), None)
            image = some.global_image if some else b""
            constants = some.constant_banks.get(_CONSTANT_BANK, b"") if some else b""
            for name, content in (("globals", image), ("constants", constants)):
                if content and (made := self.heap.allocate(len(content), "variables")):
                    self.heap.view(made.start, len(content))[:] = bytearray(content)
                    setattr(module, name, made)
        return module.kernels

    def _kernel(self, handle: int) -> tuple[Function, Kernel] | int:
        """A kernel by the program's handle, or the code of the error that it gives."""
        function = self._functions.get(handle)
        if function is None:
            return cuda.INVALID_DEVICE_FUNCTION
        found = self._kernels(function.module).get(function.name)
        return (function, found) if found else cuda.NO_KERNEL_IMAGE

    def do_layout(self, n: tuple[int, ...], data: bytes) -> Answer:
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        places = [(parameter.offset, parameter.size) for parameter in found[1].parameters]
        total = max((offset + size for offset, size in places), default=0)
        return Answer(values=(total,), data=b"".join(struct.pack("<2i", *place) for place in places))

    def do_symbol(self, n: tuple[int, ...], data: bytes) -> Answer:
        if n[0] not in self._variables:
            return Answer(cuda.INVALID_SYMBOL)
        module, name, size = self._variables[n[0]]
        for kernel in self._kernels(module).values():
            symbol = kernel.symbols.get(name)
            place = module.constants if symbol and symbol.space == "constant" else module.globals
            if symbol is not None and symbol.space in ("constant", "global") and place:
                return Answer(values=(place.start + symbol.offset, size or symbol.size))
        return Answer(cuda.INVALID_SYMBOL)

    def do_function_attributes(self, n: tuple[int, ...], data: bytes) -> Answer:
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        function, kernel = found
        resources, (major, minor) = kernel.resources, kernel.compute_capability
        threads = resources.max_threads or self.gpu.occupancy.max_threads_per_block
        dynamic = function.dynamic_shared or self.gpu.occupancy.shared_bytes_per_block_default - resources.shared_bytes
        version = 10 * major + minor
        numbers = (resources.shared_bytes, 0, resources.local_bytes, threads, resources.registers, version, version, 0)
        return Answer(data=struct.pack("<3Q7i", *numbers, dynamic, -1))

    def do_function_set(self, n: tuple[int, ...], data: bytes) -> Answer:
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        if n[1] == _MAX_DYNAMIC_SHARED:
            if n[2] + found[1].resources.shared_bytes > self.gpu.occupancy.shared_bytes_per_block_optin:
                return Answer(cuda.INVALID_VALUE)
            found[0].dynamic_shared = n[2]
        return Answer()

    def do_occupancy(self, n: tuple[int, ...], data: bytes) -> Answer:
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        if n[1] < 1:
            return Answer(cuda.INVALID_VALUE)
        try:
            return Answer(values=(self._blocks_per_sm(found[1], n[1], n[2]),))
        except UsageError:
            return Answer(values=(0,))

    def do_occupancy_shared(self, n: tuple[int, ...], data: bytes) -> Answer:
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        limits, own = self.gpu.occupancy, found[1].resources.shared_bytes
        each = limits.shared_bytes_per_sm // max(n[1], 1) - limits.shared_reserved_per_block - own
        return Answer(values=(max(0, min(each, limits.shared_bytes_per_block_optin - own)),))

    def _blocks_per_sm(self, kernel: Kernel, threads: int, shared: int) -> int:
        resources = kernel.resources
        used = resources.shared_bytes + shared
        return occupancy(self.gpu.occupancy, resources.registers, used, threads).blocks_per_sm

    # Launches ------------------------------------------------------------------------------------------------------

    def do_launch(self, n: tuple[int, ...], data: bytes) -> Answer:
        stream = n[8]
        if self.timeline.stream(stream) is None:
            return Answer(cuda.INVALID_HANDLE)
        if stream in self._capturing:
            self._capturing[stream].steps.append(("launch", n, data))
            return Answer()
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        function, kernel = found
        grid, block, shared = (n[1], n[2], n[3]), (n[4], n[5], n[6]), n[7]
        limits = self.gpu.occupancy
        if min(*grid, *block) < 1 or any(
            given > most for given, most in zip((*grid, *block), (*limits.max_grid_extent, *limits.max_block_extent))
        ):
            return Answer(cuda.INVALID_CONFIGURATION)
        default = limits.shared_bytes_per_block_default - kernel.resources.shared_bytes
        if shared > max(function.dynamic_shared, default):
            return Answer(cuda.INVALID_VALUE)
        return self._launched(function, kernel, grid, block, shared, stream, data)

    def _launched(
        self,
        function: Function,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        stream: int,
        data: bytes,
    ) -> Answer:
        module = function.module
        if module.constants:
            content = self.heap.view(module.constants.start, module.constants.size).tobytes()
            kernel_now = replace(kernel, constant_banks={**kernel.constant_banks, _CONSTANT_BANK: content})
        else:
            kernel_now = kernel
        variables = module.globals.start if module.globals else 0
        asked = Asked(kernel_now, kernel, grid, block, shared, data, variables)
        try:
            outcome = self._launches.run(asked, self.heap)
        except UsageError:
            return Answer(cuda.LAUNCH_OUT_OF_RESOURCES)
        number = len(self.said.launches)
        given = [held for held, _ in pointers(asked, self.heap).values()]
        lost = tuple(sorted({held.lost for held in given if held.lost}))
        answer = outcome.analysis
        done = LaunchDone(number, kernel.name, grid, block, shared, stream, outcome, lost)
        self.said.launches.append(done)
        if not outcome.computed:
            for held in given:
                held.lost = f"launch {number} ({kernel.name})"
        share = min(1.0, answer.waves) if answer else 1.0
        self.timeline.kernel(stream, kernel.name, answer.time_s if answer else 0.0, share, number)
        if outcome.fault is not None:
            self._pending = _code_of(outcome.fault)
            self.said.faults.append(Fault(number, kernel.name, str(outcome.fault)))
        return Answer()

    # Memory --------------------------------------------------------------------------------------------------------

    def do_malloc(self, n: tuple[int, ...], data: bytes) -> Answer:
        if n[0] == 0:
            return Answer(values=(0,))
        made = self.heap.allocate(n[0], ("device", "pinned", "managed")[n[1]])
        return Answer(values=(made.start,)) if made else Answer(cuda.OUT_OF_MEMORY)

    def do_free(self, n: tuple[int, ...], data: bytes) -> Answer:
        if n[0] == 0:
            return Answer()
        if self.heap.free(n[0]) is None:
            return Answer(cuda.INVALID_VALUE)
        return Answer()

    def do_memory_info(self, n: tuple[int, ...], data: bytes) -> Answer:
        total = self.heap.capacity
        return Answer(values=(total - self.heap.used, total))

    def do_device_pointer(self, n: tuple[int, ...], data: bytes) -> Answer:
        held = self.heap.at(n[0])
        return Answer(cuda.SUCCESS if held and held.kind != "device" else cuda.INVALID_VALUE)

    def do_host_register(self, n: tuple[int, ...], data: bytes) -> Answer:
        self.said.unmodelled["host memory registered with cudaHostRegister, which kernels cannot reach here"] += 1
        return Answer()

    def do_pointer(self, n: tuple[int, ...], data: bytes) -> Answer:
        held = self.heap.at(n[0])
        kinds = {"pinned": 1, "device": 2, "variables": 2, "managed": 3}
        return Answer(values=(kinds[held.kind] if held else 0,))

    def do_prefetch(self, n: tuple[int, ...], data: bytes) -> Answer:
        self.timeline.called()
        return Answer()

    def do_copy(self, n: tuple[int, ...], data: bytes) -> Answer:
        to, source, width, height, to_pitch, from_pitch, kind, stream, later = n[:9]
        if width == 0 or height == 0:
            return Answer(values=(0,))
        if min(width, height) < 0 or width > to_pitch or width > from_pitch or self.timeline.stream(stream) is None:
            return Answer(cuda.INVALID_VALUE)
        from_device, to_device = self.heap.holds(source), self.heap.holds(to)
        if stream in self._capturing:
            self._capturing[stream].steps.append(("copy", n, b""))
            return Answer(values=(0,))
        told = (kind in (_TO_HOST, _ON_DEVICE) and not from_device, kind in (_TO_DEVICE, _ON_DEVICE) and not to_device)
        if any(told) or (kind == _TO_HOST and to_device and self._is_device(to)):
            return Answer(cuda.INVALID_VALUE)
        for address, pitch in ((to, to_pitch) if to_device else (0, 0), (source, from_pitch) if from_device else (0, 0)):
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
            target.lost = lost if size >= target.size or lost else target.lost
        self.said.copies.append(CopyDone(what, size, lost, origin.name if origin and unset else ""))

    def do_fill(self, n: tuple[int, ...], data: bytes) -> Answer:
        at, value, width, height, pitch, stream, later = n[:7]
        if width == 0 or height == 0:
            return Answer()
        held = self.heap.at(at)
        if held is None or width > pitch or at + pitch * (height - 1) + width > held.end:
            return Answer(cuda.INVALID_VALUE)
        if self.timeline.stream(stream) is None:
            return Answer(cuda.INVALID_HANDLE)
        if stream in self._capturing:
            self._capturing[stream].steps.append(("fill", n, b""))
            return Answer()
        if width == pitch or height == 1:
            self.heap.view(at, width * height)[:] = value & 0xFF
        else:
            for row in range(height):
                self.heap.view(at + row * pitch, width)[:] = value & 0xFF
        held.written = True
        held.lost = "" if width * height >= held.size else held.lost
        self.timeline.copy(stream, "fill", width * height, waits=False)
        self.said.copies.append(CopyDone("fill", width * height, "", ""))
        return Answer()

    # Streams and events --------------------------------------------------------------------------------------------

    def do_stream_create(self, n: tuple[int, ...], data: bytes) -> Answer:
        handle = self.timeline.handle()
        self.timeline.streams[handle] = Stream(blocking=not n[0] & 1, priority=n[1], ready=self.timeline.host)
        return Answer(values=(handle,))

    def do_stream_destroy(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(cuda.SUCCESS if self.timeline.stream(n[0]) else cuda.INVALID_HANDLE)

    def do_stream_flags(self, n: tuple[int, ...], data: bytes) -> Answer:
        stream = self.timeline.stream(n[0])
        return Answer(values=(int(not stream.blocking), stream.priority)) if stream else Answer(cuda.INVALID_HANDLE)

    def do_stream_wait(self, n: tuple[int, ...], data: bytes) -> Answer:
        if self.timeline.stream(n[0]) is None:
            return Answer(cuda.INVALID_HANDLE)
        if n[0] in self._capturing:
            return Answer(cuda.CAPTURE_UNSUPPORTED)
        self.timeline.wait_for(n[0])
        return Answer()

    def do_stream_wait_event(self, n: tuple[int, ...], data: bytes) -> Answer:
        event = self.timeline.events.get(n[1])
        if event is None or self.timeline.stream(n[0]) is None:
            return Answer(cuda.INVALID_HANDLE)
        self.timeline.follow(n[0], event)
        return Answer()

    def do_host_function(self, n: tuple[int, ...], data: bytes) -> Answer:
        if n[0] in self._capturing:
            self._capturing[n[0]].steps.append(("host_function", n, b""))
            return Answer(values=(0,))
        self.timeline.wait_for(n[0])
        return Answer(values=(1,))

    def do_event_create(self, n: tuple[int, ...], data: bytes) -> Answer:
        handle = self.timeline.handle()
        self.timeline.events[handle] = Event()
        return Answer(values=(handle,))

    def do_event_destroy(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(cuda.SUCCESS if self.timeline.events.pop(n[0], None) else cuda.INVALID_HANDLE)

    def do_event_record(self, n: tuple[int, ...], data: bytes) -> Answer:
        event = self.timeline.events.get(n[0])
        if event is None or self.timeline.stream(n[1]) is None:
            return Answer(cuda.INVALID_HANDLE)
        self.timeline.record(event, n[1])
        return Answer()

    def do_event_wait(self, n: tuple[int, ...], data: bytes) -> Answer:
        event = self.timeline.events.get(n[0])
        if event is None:
            return Answer(cuda.INVALID_HANDLE)
        if event.at is not None:
            self.timeline.wait(event.at)
        return Answer()

    def do_event_elapsed(self, n: tuple[int, ...], data: bytes) -> Answer:
        first, last = self.timeline.events.get(n[0]), self.timeline.events.get(n[1])
        if first is None or last is None or first.at is None or last.at is None:
            return Answer(cuda.INVALID_HANDLE)
        return Answer(values=(round((last.at - first.at) * 1e9),))

    # Graphs --------------------------------------------------------------------------------------------------------

    def do_capture_begin(self, n: tuple[int, ...], data: bytes) -> Answer:
        if n[0] == 0 or n[0] in self._capturing:
            return Answer(cuda.CAPTURE_UNSUPPORTED)
        self._capturing[n[0]] = Graph()
        return Answer()

    def do_capture_end(self, n: tuple[int, ...], data: bytes) -> Answer:
        graph = self._capturing.pop(n[0], None)
        if graph is None:
            return Answer(cuda.INVALID_VALUE)
        handle = self.timeline.handle()
        self._graphs[handle] = graph
        return Answer(values=(handle,))

    def do_capture_state(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(values=(_CAPTURE_ACTIVE if n[0] in self._capturing else 0,))

    def do_graph_instantiate(self, n: tuple[int, ...], data: bytes) -> Answer:
        if n[0] not in self._graphs:
            return Answer(cuda.INVALID_VALUE)
        handle = self.timeline.handle()
        self._graphs[handle] = Graph(list(self._graphs[n[0]].steps))
        return Answer(values=(handle,))

    def do_graph_size(self, n: tuple[int, ...], data: bytes) -> Answer:
        graph = self._graphs.get(n[0])
        return Answer(values=(len(graph.steps),)) if graph else Answer(cuda.INVALID_VALUE)

    def do_graph_launch(self, n: tuple[int, ...], data: bytes) -> Answer:
        self.timeline.called()
        return self.do_graph_size(n, data)

    def do_graph_step(self, n: tuple[int, ...], data: bytes) -> Answer:
        """One step of a graph: done here, or given to the program to move bytes (1) or to call a function (2)."""
        name, numbers, content = self._graphs[n[0]].steps[n[1]]
        place = {"launch": 8, "copy": 7, "fill": 5, "host_function": 0}[name]
        given = (*numbers[:place], n[2], *numbers[place + 1 :])
        host = self.timeline.host
        answer = self._requests[name](given, content)
        # The host submits a graph's work in one call.
        self.timeline.host = host
        if answer.status:
            return answer
        if name == "copy":
            return Answer(values=(answer.values[0], *given[:6]))
        return Answer(values=(2, given[1], given[2])) if name == "host_function" else Answer(values=(0,))

    def do_graph_destroy(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(cuda.SUCCESS if self._graphs.pop(n[0], None) is not None else cuda.INVALID_VALUE)

    # The device ----------------------------------------------------------------------------------------------------

    def do_peek(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer()

    def do_error(self, n: tuple[int, ...], data: bytes) -> Answer:
        name, text = cuda.error_text(n[0])
        return Answer(data=name.encode() + b"\0" + text.encode())

    def do_devices(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(values=(1,))

    def do_device_set(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(cuda.SUCCESS if n[0] == 0 else cuda.INVALID_DEVICE)

    def do_device_wait(self, n: tuple[int, ...], data: bytes) -> Answer:
        self.timeline.wait_for()
        return Answer()

    def do_device_reset(self, n: tuple[int, ...], data: bytes) -> Answer:
        self.timeline.wait_for()
        self._pending = cuda.SUCCESS
        return Answer()

    def do_attribute(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(values=(cuda.attribute_of(self.gpu, n[0]),)) if n[1] == 0 else Answer(cuda.INVALID_DEVICE)

    def do_properties(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(data=cuda.packed_properties(self.gpu, n[1])) if n[0] == 0 else Answer(cuda.INVALID_DEVICE)

    def do_limit(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(values=(self._limits.get(n[0], 0),))

    def do_limit_set(self, n: tuple[int, ...], data: bytes) -> Answer:
        self._limits[n[0]] = n[1]
        return Answer()

    def do_runtime_version(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(values=(DRIVER_VERSION,))

    def do_driver_version(self, n: tuple[int, ...], data: bytes) -> Answer:
        return Answer(values=(DRIVER_VERSION,))

    def do_unsupported(self, n: tuple[int, ...], data: bytes) -> Answer:
        self.said.unmodelled[data.decode()] += 1
        return Answer(cuda.NOT_SUPPORTED)


_ALWAYS = frozenset(
    "error peek devices properties attribute runtime_version driver_version register function variable unsupported "
    "device_reset limit".split()
)
"""Requests that are answered after a launch has failed, too."""


def _code_of(fault: EmulationError) -> int:
    """The error code that a GPU gives for a fault of a kernel."""
    text = str(fault)
    if "misaligned" in text:
        return cuda.MISALIGNED
    if "assert" in text:
        return cuda.ASSERT
    if "out of bounds" in text:
        return cuda.ILLEGAL_ADDRESS
    return cuda.LAUNCH_FAILURE
