"""What the driver states of a card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .driver import DeviceError, Driver

_NAME_LENGTH = 256


@dataclass(frozen=True)
class CardAttributes:
    """A card's name and limits. Sizes in bytes, clocks in MHz (the highest that the driver states).

    `driver` is the driver's version, with the CUDA version that it speaks; `arch` what it takes machine code for, as in
    ``sm_90``. `reserved_shared_bytes` is what the system keeps of each block's shared memory.
    """

    name: str
    driver: str
    compute_capability: str
    arch: str
    sm_count: int
    max_threads_per_sm: int
    max_threads_per_block: int
    max_blocks_per_sm: int
    registers_per_sm: int
    shared_bytes_per_sm: int
    shared_bytes_per_block_default: int
    shared_bytes_per_block_optin: int
    reserved_shared_bytes: int
    l2_bytes: int
    memory_bytes: int
    memory_bus_bits: int
    clock_mhz: float
    memory_clock_mhz: float

    @property
    def max_warps_per_sm(self) -> int:
        """Warps that an SM holds at once."""
        return self.max_threads_per_sm // 32


def read_attributes(driver: Driver, device: Any, driver_version: str) -> CardAttributes:
    """Ask the driver. `driver_version` is NVML's, empty where there is none."""

    def get(name: str) -> int:
        try:
            return driver.attribute(device, name)
        except (DeviceError, AttributeError):
            # An attribute that this driver or these bindings do not know is not worth the run.
            return 0

    major, minor = get("COMPUTE_CAPABILITY_MAJOR"), get("COMPUTE_CAPABILITY_MINOR")
    cuda = int(driver.call("cuDriverGetVersion"))
    speaks = f"CUDA {cuda // 1000}.{cuda % 1000 // 10}"
    name = driver.call("cuDeviceGetName", _NAME_LENGTH, device)
    return CardAttributes(
        name=name.split(b"\0")[0].decode() if isinstance(name, bytes) else str(name),
        driver=f"{driver_version}, {speaks}" if driver_version else speaks,
        compute_capability=f"{major}.{minor}",
        arch=f"sm_{major}{minor}",
        sm_count=get("MULTIPROCESSOR_COUNT"),
        max_threads_per_sm=get("MAX_THREADS_PER_MULTIPROCESSOR"),
        max_threads_per_block=get("MAX_THREADS_PER_BLOCK"),
        max_blocks_per_sm=get("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        registers_per_sm=get("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        shared_bytes_per_sm=get("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        shared_bytes_per_block_default=get("MAX_SHARED_MEMORY_PER_BLOCK"),
        shared_bytes_per_block_optin=get("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        reserved_shared_bytes=get("RESERVED_SHARED_MEMORY_PER_BLOCK"),
        l2_bytes=get("L2_CACHE_SIZE"),
        memory_bytes=int(driver.call("cuDeviceTotalMem", device)),
        memory_bus_bits=get("GLOBAL_MEMORY_BUS_WIDTH"),
        clock_mhz=get("CLOCK_RATE") / 1000,
        memory_clock_mhz=get("MEMORY_CLOCK_RATE") / 1000,
    )
