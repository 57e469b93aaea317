"""Calls about code: fat binaries, kernels and variables, launches."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from pathlib import Path

from ..analysis.result import Analysis
from ..errors import DrywarpError, InputFileError, UsageError
from ..execution.emulator.control import DeviceLaunch
from ..frontends.binary import is_binary
from ..frontends.binary.containers import load_binary_module
from ..frontends.ptx import is_ptx, read_ptx
from ..frontends.ptx.assembler import ptx_kernels
from ..hardware.occupancy import clusters_at_once, occupancy
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Dim3
from . import properties as cuda
from .asked import LETS, WAITS, Asked, pointers
from .calls import Answer, Function, Module, Numbers, State, request
from .result import LaunchDone
from .timeline import Overlap

_MAX_DYNAMIC_SHARED = 8
"""`cudaFuncAttributeMaxDynamicSharedMemorySize`."""
_SETTABLE = range(8, 16)
"""Attributes of a function that a program may set, up to those of CUDA 13.0: later ones a program has to do without."""
_CONSTANT_BANK = 3
_BY_KERNELS = "kernels launched by kernels run after these, one after another; launching takes no time"


class CodeCalls(State):
    """Handles these calls."""

    @request
    def _register(self, n: Numbers, data: bytes) -> Answer:
        module = Module(len(self.modules), data)
        self.modules.append(module)
        self.said.modules += 1
        # The driver says at once whether it can use an image; the runtime only when a kernel of it is needed.
        if n[0] and not self._kernels(module):
            return Answer(cuda.NO_KERNEL_IMAGE)
        return Answer(values=(module.number,))

    @request
    def _function(self, n: Numbers, data: bytes) -> Answer:
        self.functions[n[1]] = Function(self.modules[n[0]], data.decode())
        return Answer()

    @request
    def _variable(self, n: Numbers, data: bytes) -> Answer:
        self.variables[n[1]] = self.modules[n[0]], data.decode(), n[2]
        return Answer()

    def _kernels(self, module: Module) -> dict[str, Kernel]:
        """The kernels of a module; none if it cannot run on this GPU, which is then reported."""
        if module.kernels is None:
            try:
                module.kernels = self._read(module.data)
            except DrywarpError as error:
                module.kernels = {}
                self.said.notes.append(str(error))
        some = next(iter(module.kernels.values()), None)
        if some and self.device not in module.globals:
            contents = some.global_image, some.constant_banks.get(_CONSTANT_BANK, b"")
            for places, content in zip((module.globals, module.constants), contents, strict=True):
                made = self.heap.allocate(len(content), "variables", device=self.device)
                if made is None:
                    return {}
                self.heap.view(made.start, len(content))[:] = bytearray(content)
                places[self.device] = made
        return module.kernels

    def _read(self, image: bytes) -> dict[str, Kernel]:
        """The kernels of an image, by symbol: a fat binary, a CUBIN, or PTX, which is assembled."""
        if is_binary(image):
            return load_binary_module(Path(self.origin), image, arch=self.gpu.arch)
        text = image.rstrip(b"\0").decode("utf-8", "replace")
        if not is_ptx(text):
            raise InputFileError(f"{self.origin}: an image that is neither machine code nor PTX")
        return ptx_kernels(text, read_ptx(text), self.gpu.arch, self.origin)

    def _kernel(self, handle: int) -> tuple[Function, Kernel] | int:
        """A kernel by the program's handle, or the error code that it causes."""
        function = self.functions.get(handle)
        if function is None:
            self.said.unmodelled["launches of kernels whose registration was not seen"] += 1
            return cuda.INVALID_DEVICE_FUNCTION
        found = self._kernels(function.module).get(function.name)
        return (function, found) if found else cuda.NO_KERNEL_IMAGE

    @request
    def _layout(self, n: Numbers, data: bytes) -> Answer:
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        places = [(parameter.offset, parameter.size) for parameter in found[1].parameters]
        total = max((offset + size for offset, size in places), default=0)
        return Answer(values=(total,), data=b"".join(struct.pack("<2i", *place) for place in places))

    @request
    def _symbol(self, n: Numbers, data: bytes) -> Answer:
        if n[0] not in self.variables:
            return Answer(cuda.INVALID_SYMBOL)
        module, name, size = self.variables[n[0]]
        for kernel in self._kernels(module).values():
            symbol = kernel.symbols.get(name)
            places = module.constants if symbol and symbol.space == "constant" else module.globals
            place = places.get(self.device)
            if symbol is not None and symbol.space in ("constant", "global") and place:
                return Answer(values=(place.start + symbol.offset, size or symbol.size))
        return Answer(cuda.INVALID_SYMBOL)

    @request
    def _function_attributes(self, n: Numbers, data: bytes) -> Answer:
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

    @request
    def _function_set(self, n: Numbers, data: bytes) -> Answer:
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        if n[1] not in _SETTABLE:
            return Answer(cuda.INVALID_VALUE)
        if n[1] == _MAX_DYNAMIC_SHARED:
            if n[2] + found[1].resources.shared_bytes > self.gpu.occupancy.shared_bytes_per_block_optin:
                return Answer(cuda.INVALID_VALUE)
            found[0].dynamic_shared = n[2]
        return Answer()

    @request
    def _occupancy(self, n: Numbers, data: bytes) -> Answer:
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        if n[1] < 1:
            return Answer(cuda.INVALID_VALUE)
        try:
            return Answer(values=(self._blocks_per_sm(found[1], n[1], n[2]),))
        except UsageError:
            return Answer(values=(0,))

    @request
    def _clusters(self, n: Numbers, data: bytes) -> Answer:
        """Clusters that run at once: kernel, threads of a block, dynamic shared memory, blocks of a cluster."""
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        if min(n[1], n[3]) < 1:
            return Answer(cuda.INVALID_VALUE)
        try:
            each, device = self._blocks_per_sm(found[1], n[1], n[2]), self.gpu.device
        except UsageError:
            return Answer(values=(0,))
        return Answer(values=(clusters_at_once(device.gpc_sms or (device.sm_count,), each, n[3]),))

    @request
    def _occupancy_shared(self, n: Numbers, data: bytes) -> Answer:
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

    def _with_device_addresses(self, kernel: Kernel, data: bytes) -> bytes:
        """Arguments with pointers to registered host memory replaced by its device addresses: kernels may use both."""
        parts = bytearray(data)
        for parameter in kernel.parameters:
            if parameter.size == struct.calcsize("P"):
                (address,) = struct.unpack_from("<Q", parts, parameter.offset)
                struct.pack_into("<Q", parts, parameter.offset, self.heap.device_address(address))
        return bytes(parts)

    @request
    def _launch(self, n: Numbers, data: bytes) -> Answer:
        stream = n[8]
        place = self.timeline.stream(stream)
        if place is None or place.device != self.device:
            return Answer(cuda.INVALID_HANDLE)
        if stream in self.capturing:
            self.capturing[stream].steps.append(("launch", n, data))
            return Answer()
        found = self._kernel(n[0])
        if isinstance(found, int):
            return Answer(found)
        function, kernel = found
        grid, block, shared = (n[1], n[2], n[3]), (n[4], n[5], n[6]), n[7]
        limits = self.gpu.occupancy
        if min(*grid, *block) < 1 or any(
            given > most
            for given, most in zip((*grid, *block), (*limits.max_grid_extent, *limits.max_block_extent), strict=True)
        ):
            return Answer(cuda.INVALID_CONFIGURATION)
        default = limits.shared_bytes_per_block_default - kernel.resources.shared_bytes
        if shared > max(function.dynamic_shared, default):
            return Answer(cuda.INVALID_VALUE)
        x, y, z = (max(1, n[10] >> shift & 0xFFFF) for shift in (0, 16, 32))
        early = bool(n[9] & _WITH_EARLIER)
        return self._launched(function, kernel, (grid, block, (x, y, z)), shared, stream, data, early=early)

    def _launched(
        self,
        function: Function,
        kernel: Kernel,
        extents: tuple[Dim3, Dim3, Dim3],
        shared: int,
        stream: int,
        data: bytes,
        by_host: bool = True,
        early: bool = False,
    ) -> Answer:
        """Run a launch and those that it asks for; `extents` are those of grid, block and cluster."""
        grid, block, cluster = extents
        module = function.module
        if constants := module.constants.get(self.device):
            content = self.heap.view(constants.start, constants.size).tobytes()
            kernel_now = replace(kernel, constant_banks={**kernel.constant_banks, _CONSTANT_BANK: content})
        else:
            kernel_now = kernel
        variables = module.globals[self.device].start if self.device in module.globals else 0
        if self.heap.registered:
            data = self._with_device_addresses(kernel, data)
        number = self.said.launched
        reach = frozenset({self.device, *(other for one, other in self.peers if one == self.device)})
        asked = Asked(number, module.data, kernel_now, kernel, grid, block, cluster, shared, data, variables, reach)
        try:
            if self.deferred:
                outcome = self.deferred.launch(asked, len(self.said.launches))
            else:
                outcome = self.launches.run(asked, self.heap)
        except UsageError:
            return Answer(cuda.LAUNCH_OUT_OF_RESOURCES)
        self._printed(outcome.printed)
        self.said.launched += 1
        given = [held for held, _ in pointers(asked, self.heap).values()]
        lost = tuple(sorted({held.lost for held in given if held.lost}))
        answer = outcome.analysis
        done = LaunchDone(number, kernel.name, grid, block, shared, stream, outcome, lost, device=self.device)
        last = self.said.launches[-1] if self.said.launches else None
        if (
            last
            and last.outcome is outcome
            and (last.device, last.stream) == (self.device, stream)
            # Each launch that is not computed names the one before it.
            and (last.reads_lost == lost or (last.reads_lost and lost and not outcome.computed))
        ):
            number = last.number
            self.said.launches[-1] = replace(last, count=last.count + 1)
        else:
            self.said.launches.append(done)
        if lost or not (outcome.computed or outcome.waits):
            # What was computed from results that are missing is as good as missing.
            for held in given:
                held.lost, held.written = f"launch {number} ({kernel.name})", True
        for problem in outcome.problems:
            self.said.found(problem, number)
        if not outcome.left_out:
            share = min(1.0, (outcome.estimate or answer).waves) if answer else 1.0
            seconds = outcome.time_s or 0.0
            overlap = overlap_of(kernel, answer, early, seconds) if answer else Overlap()
            self.timeline.kernel(stream, kernel.name, seconds, share, number, by_host, overlap)
        self._failed(done, outcome)
        for one in outcome.launched:
            self._launched_by_kernel(module, one, kernel.name, stream)
        return Answer()

    def _launched_by_kernel(self, module: Module, asked: DeviceLaunch, by: str, stream: int) -> None:
        """Run a launch that a kernel asked for: it has ended, and so have those that it asked for before."""
        kernel = self._kernels(module)[asked.symbol]
        size = max((parameter.offset + parameter.size for parameter in kernel.parameters), default=0)
        if _BY_KERNELS not in self.said.notes:
            self.said.notes.append(_BY_KERNELS)
        function = Function(module, asked.symbol)
        extents, limits = (asked.grid, asked.block, (1, 1, 1)), self.gpu.occupancy
        shared = kernel.resources.shared_bytes + asked.shared
        fits = min(*asked.grid, *asked.block) > 0 and shared <= limits.shared_bytes_per_block_optin
        data = asked.parameters[:size]
        if not fits or self._launched(function, kernel, extents, asked.shared, stream, data, by_host=False).status:
            self.said.notes.append(f"a launch of {kernel.name} by {by} does not fit the GPU and was left out")


# Programmatic dependent launch: what a kernel's code lets it overlap.

_WITH_EARLIER = 2


def overlap_of(kernel: Kernel, answer: Analysis, early: bool, seconds: float) -> Overlap:
    """When a launch lets the next one start, and when it waits for the one before.

    Where in a block's time an instruction stands is the share of the warps' time that the code before it takes. A
    block takes a wave's part of the run; the first wave waits, the last one lets the next launch start. A launch of
    other `seconds` than its analysis does both at the same share of them.
    """
    prediction = answer.prediction
    wave_s = (prediction.time_s - answer.start_s) / max(1, math.ceil(answer.waves))

    def share_before(number: int) -> float:
        spent = {index: sum(reasons.values()) for index, reasons in prediction.node_stalls.items()}
        total = sum(spent.values())
        return sum(cycles for index, cycles in spent.items() if index < number) / total if total else 0.0

    lets = [n for n, i in enumerate(kernel.instructions) if i.opcode == LETS]
    waits = [n for n, i in enumerate(kernel.instructions) if i.opcode == WAITS]
    lets_s = prediction.time_s - (1 - share_before(lets[-1])) * wave_s if lets and prediction.node_stalls else None
    waits_s = answer.start_s + share_before(waits[0]) * wave_s if waits else None
    ratio = seconds / prediction.time_s if prediction.time_s else 1.0
    return Overlap(
        not early,
        answer.start_s,
        None if waits_s is None else waits_s * ratio,
        None if lets_s is None else lets_s * ratio,
    )
