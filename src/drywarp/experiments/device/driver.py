"""The CUDA driver's functions with error checks, what it reports about a GPU, and the clocks."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ...errors import DrywarpError, ToolError

INSTALL = "pip install 'drywarp[gpu]'"


class DeviceError(DrywarpError):
    """The driver rejected a call, or a kernel failed on the GPU: names the call and the driver's error code."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Driver:
    """The bindings module `cuda.bindings.driver`, or any object with the same functions and enumerations."""

    def __init__(self, bindings: Any) -> None:
        self.bindings = bindings

    def call(self, name: str, *arguments: Any) -> Any:
        """Call one function; returns None, one result, or a tuple. Raises DeviceError."""
        status, *results = getattr(self.bindings, name)(*arguments)
        if int(status) != 0:
            _, text = self.bindings.cuGetErrorName(status)
            code = text.decode() if isinstance(text, bytes) else str(text)
            raise DeviceError(f"GPU driver: {name}: {code}", code)
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def attribute(self, device: Any, name: str) -> int:
        """A device attribute by its name in the driver's header, without the prefix."""
        key = getattr(self.bindings.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.call("cuDeviceGetAttribute", key, device))

    def function_attribute(self, handle: Any, name: str) -> int:
        """The same of a kernel."""
        key = getattr(self.bindings.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(self.call("cuFuncGetAttribute", key, handle))


@dataclass(frozen=True)
class CardFunction:
    """A loaded kernel: the driver's handles, and the code's attributes."""

    handle: Any
    module: Any
    registers: int
    local_bytes: int
    static_shared_bytes: int


def load_driver() -> Driver:
    """The driver of this machine. Raises ToolError if the bindings, the driver or a GPU is missing."""
    try:
        driver = Driver(import_module("cuda.bindings.driver"))
    except ImportError:
        raise ToolError(f"no GPU can be used: the driver's Python bindings are not installed ({INSTALL})") from None
    try:
        driver.call("cuInit", 0)
        count = int(driver.call("cuDeviceGetCount"))
    except DeviceError as error:
        raise ToolError(f"no GPU can be used: {error.code} (expected an NVIDIA GPU and its driver)") from None
    except Exception as error:
        # The exception for a missing libcuda differs between versions of the bindings.
        absent = isinstance(error, RuntimeError | OSError | ImportError)
        if not absent and type(error).__name__ != "DynamicLibNotFoundError":
            raise
        raise ToolError("no GPU can be used: the NVIDIA driver is not installed (expected a GPU and libcuda)") from None
    if count == 0:
        raise ToolError("no GPU can be used: the driver finds none (expected an NVIDIA GPU)")
    return driver


# What the driver reports about a GPU.


_NAME_LENGTH = 256


@dataclass(frozen=True)
class CardAttributes:
    """A GPU's name and limits. Sizes in bytes, clocks in MHz (the maximum that the driver reports).

    `driver` is the driver's version with the CUDA version that it supports; `arch` is the machine-code target, such as
    ``sm_90``. `reserved_shared_bytes` is the shared memory per block that the system reserves.
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
    """Query the driver. `driver_version` is NVML's, empty without NVML."""

    def get(name: str) -> int:
        try:
            return driver.attribute(device, name)
        except (DeviceError, AttributeError):
            # An attribute unknown to this driver or these bindings must not stop the run.
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


# The GPU's current clocks, read through NVML and never set.


@dataclass(frozen=True)
class Clocks:
    """One reading: MHz, degrees Celsius, watts; None for what the GPU does not report."""

    sm_mhz: float | None = None
    memory_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None


class ClockReader:
    """NVML readings of the GPU at a PCI address. Without NVML every reading is empty."""

    def __init__(self, pci_address: str, nvml: Any = None) -> None:
        self.driver_version = ""
        self._nvml: Any = None
        try:
            nvml = nvml or import_module("pynvml")
        except ImportError:
            return
        try:
            nvml.nvmlInit()
            self._handle = nvml.nvmlDeviceGetHandleByPciBusId(pci_address.encode())
            version = nvml.nvmlSystemGetDriverVersion()
        except nvml.NVMLError:
            return
        self._nvml = nvml
        self.driver_version = version.decode() if isinstance(version, bytes) else str(version)

    def read(self) -> Clocks:
        """The current clocks. A reading takes some ten microseconds and does not wait for the GPU."""
        nvml = self._nvml
        if nvml is None:
            return Clocks()
        return Clocks(
            sm_mhz=self._value("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            memory_mhz=self._value("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            temperature_c=self._value("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            power_w=self._value("nvmlDeviceGetPowerUsage", scale=1e-3),
        )

    def _value(self, name: str, *arguments: Any, scale: float = 1.0) -> float | None:
        try:
            return float(getattr(self._nvml, name)(self._handle, *arguments)) * scale
        except self._nvml.NVMLError:
            return None

    def close(self) -> None:
        """Shut NVML down."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None
