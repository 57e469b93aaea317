"""What a program is told about its device: CUDA's device properties and attributes, error names and texts.

Places in `cudaDeviceProp` are those of the headers of CUDA 12.6 and 13.0. What a GPU file does not say is what all
GPUs of its generation report (pitches, texture limits are left at zero).
"""

from __future__ import annotations

import struct
from typing import Any

from ..hardware import Gpu

PROPERTIES_BYTES = {11: 712, 12: 1032, 13: 1008}
_NEWEST = 12
_FIELDS: dict[str, tuple[int, int, str]] = {
    "name": (0, 0, "256s"), "totalGlobalMem": (288, 288, "Q"), "sharedMemPerBlock": (296, 296, "Q"),
    "regsPerBlock": (304, 304, "i"), "warpSize": (308, 308, "i"), "memPitch": (312, 312, "Q"),
    "maxThreadsPerBlock": (320, 320, "i"), "maxThreadsDim": (324, 324, "3i"), "maxGridSize": (336, 336, "3i"),
    "clockRate": (348, -1, "i"), "totalConstMem": (352, 352, "Q"), "major": (360, 360, "i"), "minor": (364, 364, "i"),
    "textureAlignment": (368, 368, "Q"), "texturePitchAlignment": (376, 376, "Q"), "deviceOverlap": (384, -1, "i"),
    "multiProcessorCount": (388, 384, "i"), "canMapHostMemory": (400, 392, "i"), "maxTexture1D": (408, 396, "i"),
    "maxTexture2D": (420, 404, "2i"), "maxTexture3D": (456, 440, "3i"), "surfaceAlignment": (568, 552, "Q"),
    "concurrentKernels": (576, 560, "i"), "pciBusID": (584, 568, "i"), "asyncEngineCount": (600, 584, "i"),
    "unifiedAddressing": (604, 588, "i"), "memoryClockRate": (608, -1, "i"), "memoryBusWidth": (612, 592, "i"),
    "l2CacheSize": (616, 596, "i"), "maxThreadsPerMultiProcessor": (624, 604, "i"),
    "streamPrioritiesSupported": (628, 608, "i"), "globalL1CacheSupported": (632, 612, "i"),
    "localL1CacheSupported": (636, 616, "i"), "sharedMemPerMultiprocessor": (640, 624, "Q"),
    "regsPerMultiprocessor": (648, 632, "i"), "managedMemory": (652, 636, "i"),
    "concurrentManagedAccess": (676, 656, "i"), "cooperativeLaunch": (688, 668, "i"),
    "sharedMemPerBlockOptin": (696, 672, "Q"), "maxBlocksPerMultiProcessor": (712, 688, "i"),
    "reservedSharedMemPerBlock": (720, 696, "Q"), "memoryPoolsSupported": (744, 720, "i"),
}  # fmt: skip
"""Place in CUDA 12 and 13 (-1: not there), and type."""
_ATTRIBUTES = {
    1: "maxThreadsPerBlock", 8: "sharedMemPerBlock", 9: "totalConstMem", 10: "warpSize", 11: "memPitch",
    12: "regsPerBlock", 13: "clockRate", 14: "textureAlignment", 15: "deviceOverlap", 16: "multiProcessorCount",
    19: "canMapHostMemory", 30: "surfaceAlignment", 31: "concurrentKernels", 33: "pciBusID", 36: "memoryClockRate",
    37: "memoryBusWidth", 38: "l2CacheSize", 39: "maxThreadsPerMultiProcessor", 40: "asyncEngineCount",
    41: "unifiedAddressing", 51: "texturePitchAlignment", 75: "major", 76: "minor", 78: "streamPrioritiesSupported",
    79: "globalL1CacheSupported", 80: "localL1CacheSupported", 81: "sharedMemPerMultiprocessor",
    82: "regsPerMultiprocessor", 83: "managedMemory", 89: "concurrentManagedAccess", 95: "cooperativeLaunch",
    97: "sharedMemPerBlockOptin", 106: "maxBlocksPerMultiProcessor", 111: "reservedSharedMemPerBlock",
    102: "virtualMemory", 115: "memoryPoolsSupported",
}  # fmt: skip
"""CUDA's number of an attribute, and the property that it is."""
_EXTENTS = {2: "maxThreadsDim", 5: "maxGridSize"}
"""Attribute of x; y and z follow."""
_CONSTANT_BYTES = 1 << 16
_PITCH = (1 << 31) - 1
_TEXTURE_1D, _TEXTURE_2D, _TEXTURE_3D = 131072, (131072, 65536), (16384, 16384, 16384)
_DEFAULT_MEMORY = 8 << 30
"""Bytes of device memory where a GPU file does not say."""


def memory_bytes(gpu: Gpu) -> int:
    """Device memory of a GPU in bytes."""
    return _DEFAULT_MEMORY if gpu.machine_code else gpu.memory.dram.bytes or _DEFAULT_MEMORY


def properties_of(gpu: Gpu, device: int = 0) -> dict[str, Any]:
    """The properties by CUDA's names, in CUDA's units (bytes, kHz); `device` counts equal ones."""
    limits, (major, minor) = gpu.occupancy, gpu.compute_capability.split(".")
    return {
        "name": gpu.title.encode(),
        "totalGlobalMem": memory_bytes(gpu),
        "sharedMemPerBlock": limits.shared_bytes_per_block_default,
        "regsPerBlock": limits.max_registers_per_block,
        "warpSize": limits.warp_size,
        "memPitch": _PITCH,
        "maxThreadsPerBlock": limits.max_threads_per_block,
        "maxThreadsDim": limits.max_block_extent,
        "maxGridSize": limits.max_grid_extent,
        "clockRate": round(gpu.device.boost_clock_mhz * 1000),
        "totalConstMem": _CONSTANT_BYTES,
        "major": int(major),
        "minor": int(minor),
        "textureAlignment": 512,
        "texturePitchAlignment": 32,
        "deviceOverlap": 1,
        "multiProcessorCount": gpu.device.sm_count,
        "canMapHostMemory": 1,
        "maxTexture1D": _TEXTURE_1D,
        "maxTexture2D": _TEXTURE_2D,
        "maxTexture3D": _TEXTURE_3D,
        "surfaceAlignment": 512,
        "concurrentKernels": 1,
        "pciBusID": 1 + device,
        "asyncEngineCount": 2,
        "unifiedAddressing": 1,
        # The product of both is what programs compute a peak bandwidth from: 2 · clock · width / 8.
        "memoryClockRate": 0 if gpu.machine_code else round(gpu.memory.dram.peak_gbs * 1e6 * 8 / 2 / _BUS_BITS),
        "memoryBusWidth": _BUS_BITS,
        "l2CacheSize": 0 if gpu.machine_code else gpu.memory.l2.bytes,
        "maxThreadsPerMultiProcessor": limits.max_threads_per_sm,
        "streamPrioritiesSupported": 1,
        "globalL1CacheSupported": 1,
        "localL1CacheSupported": 1,
        "sharedMemPerMultiprocessor": limits.shared_bytes_per_sm,
        "regsPerMultiprocessor": limits.registers_per_sm,
        "managedMemory": 1,
        "concurrentManagedAccess": 1,
        "cooperativeLaunch": 1,
        "sharedMemPerBlockOptin": limits.shared_bytes_per_block_optin,
        "maxBlocksPerMultiProcessor": limits.max_blocks_per_sm,
        "reservedSharedMemPerBlock": limits.shared_reserved_per_block,
        "memoryPoolsSupported": 1,
    }


_BUS_BITS = 256
"""Of the memory interface. GPU files state its bandwidth only."""


def packed_properties(gpu: Gpu, version: int, device: int = 0) -> bytes:
    """`cudaDeviceProp` as CUDA 11, 12 or 13 lays it out."""
    data = bytearray(PROPERTIES_BYTES[version])
    for name, value in properties_of(gpu, device).items():
        old, new, form = _FIELDS[name]
        place = old if version <= _NEWEST else new
        if 0 <= place <= len(data) - struct.calcsize(form):
            struct.pack_into(f"<{form}", data, place, *(value if isinstance(value, tuple) else (value,)))
    return bytes(data)


def attribute_of(gpu: Gpu, number: int, device: int = 0) -> int:
    """The value of a device attribute by CUDA's number; 0 for those that a GPU here does not have."""
    known = properties_of(gpu, device) | {"virtualMemory": 1}
    for first, name in _EXTENTS.items():
        if first <= number < first + 3:
            return int(known[name][number - first])
    return int(known[_ATTRIBUTES[number]]) if number in _ATTRIBUTES else 0


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
