"""What a program is told about its device: CUDA's device properties and attributes (`properties.csv`), and error codes.

What a GPU file does not say is what all GPUs of its generation report (pitches, texture limits are left at zero).
"""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import Any

from ..hardware import Gpu
from ..support.folders import packaged_rows

PROPERTIES_BYTES = {11: 712, 12: 1032, 13: 1008}
_NEWEST = 12
_DEFAULT_MEMORY = 8 << 30
"""Bytes of device memory where a GPU file does not say."""


@cache
def _rows() -> list[dict[str, str]]:
    return packaged_rows(Path(__file__).with_name("properties.csv"))


def memory_bytes(gpu: Gpu) -> int:
    """Device memory of a GPU in bytes."""
    return _DEFAULT_MEMORY if gpu.machine_code else gpu.memory.dram.bytes or _DEFAULT_MEMORY


def properties_of(gpu: Gpu, device: int = 0) -> dict[str, Any]:
    """The properties by CUDA's names, in CUDA's units (bytes, kHz); `device` counts equal ones."""
    limits, (major, minor) = gpu.occupancy, gpu.compute_capability.split(".")
    alike = {row["name"]: tuple(map(int, row["value"].split())) for row in _rows() if row["value"]}
    known: dict[str, Any] = {name: value if len(value) > 1 else value[0] for name, value in alike.items()}
    # The product of clock and width is what programs compute a peak bandwidth from: 2 · clock · width / 8.
    clock_khz = 0.0 if gpu.machine_code else gpu.memory.dram.peak_gbs * 1e6 * 8 / 2 / known["memoryBusWidth"]
    return known | {
        "name": gpu.title.encode(),
        "totalGlobalMem": memory_bytes(gpu),
        "sharedMemPerBlock": limits.shared_bytes_per_block_default,
        "regsPerBlock": limits.max_registers_per_block,
        "warpSize": limits.warp_size,
        "maxThreadsPerBlock": limits.max_threads_per_block,
        "maxThreadsDim": limits.max_block_extent,
        "maxGridSize": limits.max_grid_extent,
        "clockRate": round(gpu.device.boost_clock_mhz * 1000),
        "major": int(major),
        "minor": int(minor),
        "multiProcessorCount": gpu.device.sm_count,
        "pciBusID": 1 + device,
        "memoryClockRate": round(clock_khz),
        "l2CacheSize": 0 if gpu.machine_code else gpu.memory.l2.bytes,
        "maxThreadsPerMultiProcessor": limits.max_threads_per_sm,
        "sharedMemPerMultiprocessor": limits.shared_bytes_per_sm,
        "regsPerMultiprocessor": limits.registers_per_sm,
        "sharedMemPerBlockOptin": limits.shared_bytes_per_block_optin,
        "maxBlocksPerMultiProcessor": limits.max_blocks_per_sm,
        "reservedSharedMemPerBlock": limits.shared_reserved_per_block,
    }


def packed_properties(gpu: Gpu, version: int, device: int = 0) -> bytes:
    """`cudaDeviceProp` as CUDA 11, 12 or 13 lays it out."""
    data, values = bytearray(PROPERTIES_BYTES[version]), properties_of(gpu, device)
    for row in _rows():
        form, value = f"<{row['type']}", values[row["name"]]
        place = row["cuda12" if version <= _NEWEST else "cuda13"]
        if place and int(place) <= len(data) - struct.calcsize(form):
            struct.pack_into(form, data, int(place), *(value if isinstance(value, tuple) else (value,)))
    return bytes(data)


def attribute_of(gpu: Gpu, number: int, device: int = 0) -> int:
    """The value of a device attribute by CUDA's number; 0 for those that a GPU here does not have."""
    values = properties_of(gpu, device)
    for row in _rows():
        value = values[row["name"]]
        parts = value if isinstance(value, tuple) else (value,)
        if row["attribute"] and 0 <= number - int(row["attribute"]) < len(parts):
            return int(parts[number - int(row["attribute"])])
    return 0


# Errors: the codes that are returned here, and those that programs ask the names of.

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONFIGURATION, INVALID_SYMBOL = 0, 1, 2, 9, 13
INVALID_DEVICE_FUNCTION, INVALID_DEVICE, NO_KERNEL_IMAGE, INVALID_HANDLE, NOT_READY = 98, 101, 209, 400, 600
ILLEGAL_ADDRESS, LAUNCH_OUT_OF_RESOURCES, ASSERT, ILLEGAL_INSTRUCTION, MISALIGNED = 700, 701, 710, 715, 716
LAUNCH_FAILURE, NOT_SUPPORTED, CAPTURE_UNSUPPORTED, GRAPH_UPDATE_FAILURE, UNKNOWN = 719, 801, 900, 910, 999
HOST_MEMORY_REGISTERED, HOST_MEMORY_NOT_REGISTERED = 712, 713
PEER_ALREADY_ENABLED, PEER_NOT_ENABLED = 704, 705


def code_of(fault: str) -> int:
    """The error code that a GPU gives for a fault of a kernel, by its text."""
    if "misaligned" in fault:
        return MISALIGNED
    if "assert" in fault:
        return ASSERT
    if "out of bounds" in fault:
        return ILLEGAL_ADDRESS
    return LAUNCH_FAILURE
