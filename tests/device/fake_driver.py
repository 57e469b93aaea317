"""A driver of a card that is not there: the calls of `cuda.bindings.driver` that ours makes, over the emulator.

Kernels are really run, with the parameters that arrive, so that what comes back is what the launch said. Events count
launches: each takes `LAUNCH_MS`.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from drywarp.errors import UsageError
from drywarp.execution.emulator import emulate
from drywarp.frontends.binary.cubin import kernels_of
from drywarp.frontends.binary.sass import disassemble
from drywarp.hardware import load_gpu
from drywarp.hardware.occupancy import occupancy
from drywarp.kernel.launch.launch import Buffer, Launch, Scalar

LAUNCH_MS = 0.5
ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MULTIPROCESSOR_COUNT": 132,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233472,
    "MAX_SHARED_MEMORY_PER_BLOCK": 49152,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    "RESERVED_SHARED_MEMORY_PER_BLOCK": 1024,
    "L2_CACHE_SIZE": 50 << 20,
    "GLOBAL_MEMORY_BUS_WIDTH": 5120,
    "CLOCK_RATE": 1_755_000,
    "MEMORY_CLOCK_RATE": 2_619_000,
}
INVALID_VALUE, OUT_OF_MEMORY, NOT_FOUND, LAUNCH_FAILED = 1, 2, 500, 719
NAMES = {1: b"CUDA_ERROR_INVALID_VALUE", 2: b"CUDA_ERROR_OUT_OF_MEMORY", 500: b"CUDA_ERROR_NOT_FOUND", 719: b"FAILED"}


def _enumeration(name: str, members: list[str]) -> Any:
    return IntEnum(name, {member: number for number, member in enumerate(members, 1)})


@cache
def _kernels(image: bytes) -> Any:
    return kernels_of(image, disassemble(image, "fake"), "sm_90", "fake", "")


class FakeDriver:
    """`broken` is added to the first byte of every output, as a kernel would that computes something else."""

    def __init__(self, devices: int = 1, broken: bool = False, memory: int = 1 << 30) -> None:
        self.devices, self.broken, self.memory = devices, broken, memory
        self.CUdevice_attribute = _enumeration("A", [f"CU_DEVICE_ATTRIBUTE_{name}" for name in ATTRIBUTES])
        functions = ("NUM_REGS", "LOCAL_SIZE_BYTES", "SHARED_SIZE_BYTES", "MAX_DYNAMIC_SHARED_SIZE_BYTES")
        self.CUfunction_attribute = _enumeration("F", [f"CU_FUNC_ATTRIBUTE_{name}" for name in functions])
        self.held: dict[int, np.ndarray] = {}
        self.allowed: dict[str, int] = {}
        self.seen: set[object] = set()
        self.launches = 0
        self.noted: dict[int, int] = {}
        self.events = 0

    def cuInit(self, flags: int) -> tuple[int]:
        return (0,)

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return 0, self.devices

    def cuDeviceGet(self, index: int) -> tuple[int, int]:
        return 0, index

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[int, str]:
        return 0, "context"

    def cuDevicePrimaryCtxRelease(self, device: int) -> tuple[int]:
        return (0,)

    def cuCtxSetCurrent(self, context: str) -> tuple[int]:
        assert context == "context"
        return (0,)

    def cuCtxSynchronize(self) -> tuple[int]:
        return (0,)

    def cuDeviceGetPCIBusId(self, length: int, device: int) -> tuple[int, bytes]:
        return 0, b"0000:01:00.0\0\0\0"

    def cuDriverGetVersion(self) -> tuple[int, int]:
        return 0, 13000

    def cuDeviceGetName(self, length: int, device: int) -> tuple[int, bytes]:
        return 0, b"NVIDIA H100 80GB HBM3\0\0"

    def cuDeviceTotalMem(self, device: int) -> tuple[int, int]:
        return 0, self.memory

    def cuDeviceGetAttribute(self, key: Any, device: int) -> tuple[int, int]:
        return 0, ATTRIBUTES[key.name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def cuGetErrorName(self, status: int) -> tuple[int, bytes]:
        return 0, NAMES[status]

    def cuModuleLoadData(self, image: bytes) -> tuple[int, Any]:
        return 0, _kernels(image)

    def cuModuleUnload(self, module: Any) -> tuple[int]:
        return (0,)

    def cuModuleGetFunction(self, module: Any, name: bytes) -> tuple[int, Any]:
        kernel = module.get(name.decode())
        return (0, kernel) if kernel else (NOT_FOUND, None)

    def cuFuncGetAttribute(self, key: Any, kernel: Any) -> tuple[int, int]:
        resources = kernel.resources
        name = key.name.removeprefix("CU_FUNC_ATTRIBUTE_")
        values = {"NUM_REGS": resources.registers, "LOCAL_SIZE_BYTES": resources.local_bytes}
        return 0, values.get(name, resources.shared_bytes)

    def cuFuncSetAttribute(self, kernel: Any, key: Any, value: int) -> tuple[int]:
        assert key.name.endswith("MAX_DYNAMIC_SHARED_SIZE_BYTES")
        if kernel.resources.shared_bytes + value > ATTRIBUTES["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]:
            return (INVALID_VALUE,)
        self.allowed[kernel.symbol] = value
        return (0,)

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, kernel: Any, threads: int, shared: int) -> tuple[int, int]:
        gpu = load_gpu("h100")
        whole = kernel.resources.shared_bytes + shared
        try:
            return 0, occupancy(gpu.occupancy, kernel.resources.registers, whole, threads).blocks_per_sm
        except UsageError:
            return 0, 0

    def cuMemAlloc(self, nbytes: int) -> tuple[int, int]:
        if nbytes + sum(array.nbytes for array in self.held.values()) > self.memory:
            return OUT_OF_MEMORY, 0
        address = (len(self.held) + 1) << 36
        self.held[address] = np.full(nbytes, 0xAB, np.uint8)
        return 0, address

    def cuMemFree(self, address: int) -> tuple[int]:
        del self.held[address]
        return (0,)

    def cuMemcpyHtoD(self, target: int, source: int, nbytes: int) -> tuple[int]:
        ctypes.memmove(self.held[target].ctypes.data, source, nbytes)
        return (0,)

    def cuMemcpyDtoH(self, target: int, source: int, nbytes: int) -> tuple[int]:
        ctypes.memmove(target, self.held[source].ctypes.data, nbytes)
        return (0,)

    def cuMemsetD8Async(self, address: int, value: int, nbytes: int, stream: int) -> tuple[int]:
        self.held[address][:nbytes] = value
        return (0,)

    def cuEventCreate(self, flags: int) -> tuple[int, int]:
        self.events += 1
        return 0, self.events

    def cuEventRecord(self, event: int, stream: int) -> tuple[int]:
        self.noted[event] = self.launches
        return (0,)

    def cuEventSynchronize(self, event: int) -> tuple[int]:
        return (0,)

    def cuEventElapsedTime(self, start: int, end: int) -> tuple[int, float]:
        return 0, (self.noted[end] - self.noted[start]) * LAUNCH_MS

    def cuLaunchKernel(self, kernel: Any, *given: int) -> tuple[int]:
        grid, block, (shared, _, pointers, extra) = given[:3], given[3:6], given[6:]
        assert extra == 0
        if shared > self.allowed.get(kernel.symbol, 49152 - kernel.resources.shared_bytes):
            return (INVALID_VALUE,)
        self.launches += 1
        key = (kernel.symbol, grid, block, shared)
        if key in self.seen:
            # The emulator has run this one: what the timings need is its count.
            return (0,)
        self.seen.add(key)
        table = (ctypes.c_void_p * max(1, len(kernel.parameters))).from_address(pointers)
        raw = [ctypes.string_at(table[n], p.size) for n, p in enumerate(kernel.parameters)]
        places = [int.from_bytes(data, "little") if len(data) == 8 else 0 for data in raw]
        arguments = [
            Buffer("u8", (self.held[place].size,), "array", self.held[place].copy())
            if place in self.held
            else Scalar(data, "")
            for place, data in zip(places, raw, strict=True)
        ]
        try:
            run = emulate(kernel, Launch(grid, block, tuple(arguments), shared), blocks="all")
        except Exception:
            return (LAUNCH_FAILED,)
        for number, (place, argument) in enumerate(zip(places, arguments, strict=True)):
            if isinstance(argument, Buffer):
                after = run.buffer(f"arg{number}")
                if self.broken and not np.array_equal(after, argument.array):
                    after = after.copy()
                    after[3::4] ^= 0x40
                self.held[place][:] = after
        return (0,)


class NVMLError(Exception):
    pass


def fake_nvml(mhz: float = 1620.0) -> Any:
    """The calls of `pynvml` that ours makes; power is not told."""

    def refuse(*_: Any) -> float:
        raise NVMLError

    return SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByPciBusId=lambda address: address,
        nvmlSystemGetDriverVersion=lambda: "580.65.06",
        nvmlDeviceGetClockInfo=lambda handle, kind: mhz if kind == 1 else 2619,
        nvmlDeviceGetTemperature=lambda handle, kind: 54,
        nvmlDeviceGetPowerUsage=refuse,
    )
