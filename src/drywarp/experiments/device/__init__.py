"""A real GPU through its driver: loads, launches and times machine code, and reads the clocks.

Nothing here changes a setting of the GPU: no clock, no power limit, no mode. Needs `pip install 'drywarp[gpu]'` (the
driver's own Python bindings) and a driver; without either, `open_card` raises an error of one line.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import UsageError
from .driver import CardAttributes, CardFunction, ClockReader, Clocks, DeviceError, Driver, load_driver, read_attributes

Extents = tuple[int, int, int]
_PCI_LENGTH = 32
_STREAM = 0


class Card:
    """A GPU with its primary context, as a context manager. Only one thread may use it at a time."""

    def __init__(self, driver: Driver, index: int = 0, nvml: Any = None) -> None:
        self._driver = driver
        count = int(driver.call("cuDeviceGetCount"))
        if not 0 <= index < count:
            raise UsageError(f"no GPU number {index}: the driver finds {count} (expected 0 to {count - 1})")
        self._device = driver.call("cuDeviceGet", index)
        self._context = driver.call("cuDevicePrimaryCtxRetain", self._device)
        driver.call("cuCtxSetCurrent", self._context)
        address = driver.call("cuDeviceGetPCIBusId", _PCI_LENGTH, self._device)
        text = address.split(b"\0")[0].decode() if isinstance(address, bytes) else str(address)
        self._clocks = ClockReader(text, nvml)
        self.attributes: CardAttributes = read_attributes(driver, self._device, self._clocks.driver_version)
        self._events: tuple[Any, Any] = (driver.call("cuEventCreate", 0), driver.call("cuEventCreate", 0))

    def __enter__(self) -> Card:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the context, and with it all allocations."""
        self._clocks.close()
        self._driver.call("cuDevicePrimaryCtxRelease", self._device)

    # Code -----------------------------------------------------------------------------------------------------------

    def load(self, cubin: bytes, symbol: str) -> CardFunction:
        """Load machine code and get the kernel with this (mangled) name. Raises DeviceError."""
        module = self._driver.call("cuModuleLoadData", cubin)
        handle = self._driver.call("cuModuleGetFunction", module, symbol.encode())
        names = ("NUM_REGS", "LOCAL_SIZE_BYTES", "SHARED_SIZE_BYTES")
        return CardFunction(handle, module, *(self._driver.function_attribute(handle, name) for name in names))

    def unload(self, function: CardFunction) -> None:
        """Unload the code."""
        self._driver.call("cuModuleUnload", function.module)

    def variable(self, function: CardFunction, symbol: str) -> tuple[int, int]:
        """Address and size of a `__constant__` or `__device__` variable in the kernel's module."""
        address, nbytes = self._driver.call("cuModuleGetGlobal", function.module, symbol.encode())
        return int(address), int(nbytes)

    def blocks_per_sm(self, function: CardFunction, threads: int, dynamic_shared: int) -> int:
        """Blocks of this many threads that an SM holds at once; 0 if none fits."""
        self._allow(function, dynamic_shared)
        name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return int(self._driver.call(name, function.handle, threads, dynamic_shared))

    def _allow(self, function: CardFunction, dynamic_shared: int) -> None:
        """Opt in to more dynamic shared memory than the default, for this kernel only."""
        if function.static_shared_bytes + dynamic_shared > self.attributes.shared_bytes_per_block_default:
            key = self._driver.bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._driver.call("cuFuncSetAttribute", function.handle, key, dynamic_shared)

    # Memory ---------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        """Allocate device memory and return its address. Raises DeviceError if out of memory."""
        return int(self._driver.call("cuMemAlloc", max(1, nbytes)))

    def upload(self, address: int, array: npt.NDArray[Any]) -> None:
        """Copy an array to the GPU, and wait."""
        held = np.ascontiguousarray(array)
        if held.nbytes:
            self._driver.call("cuMemcpyHtoD", address, held.ctypes.data, held.nbytes)

    def download(self, address: int, array: npt.NDArray[Any]) -> None:
        """Copy from the GPU into a contiguous array, and wait."""
        if array.nbytes:
            self._driver.call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)

    def fill(self, address: int, nbytes: int, value: int = 0) -> None:
        """Set bytes, in stream order; does not wait."""
        self._driver.call("cuMemsetD8Async", address, value, nbytes, _STREAM)

    def free(self, address: int) -> None:
        """Free memory."""
        self._driver.call("cuMemFree", address)

    # Launches -------------------------------------------------------------------------------------------------------

    def launch(
        self,
        function: CardFunction,
        grid: Extents,
        block: Extents,
        parameters: Sequence[bytes],
        dynamic_shared: int = 0,
        times: int = 1,
    ) -> None:
        """Launch a kernel, optionally several times in a row; does not wait. Each parameter is given as its bytes."""
        self._allow(function, dynamic_shared)
        held = [ctypes.create_string_buffer(data, len(data)) for data in parameters]
        pointers = (ctypes.c_void_p * max(1, len(held)))(*(ctypes.addressof(data) for data in held))
        given = (function.handle, *grid, *block, dynamic_shared, _STREAM, ctypes.addressof(pointers), 0)
        for _ in range(times):
            # The driver has copied the parameters when it returns.
            self._driver.call("cuLaunchKernel", *given)

    def start_timing(self) -> None:
        """Record the start event; does not wait."""
        self._driver.call("cuEventRecord", self._events[0], _STREAM)

    def stop_timing(self) -> None:
        """Record the end event; does not wait."""
        self._driver.call("cuEventRecord", self._events[1], _STREAM)

    def elapsed_s(self) -> float:
        """Wait for the end event, and return the seconds since the start event (resolution: half a microsecond)."""
        self._driver.call("cuEventSynchronize", self._events[1])
        return float(self._driver.call("cuEventElapsedTime", *self._events)) * 1e-3

    def wait(self) -> None:
        """Wait for all launches. Raises DeviceError if a kernel failed."""
        self._driver.call("cuCtxSynchronize")

    def clocks(self) -> Clocks:
        """The current clocks; read them while kernels run, because an idle GPU slows down."""
        return self._clocks.read()


def open_card(index: int = 0) -> Card:
    """Open the GPU with this index. Raises ToolError without a GPU, a driver or the bindings."""
    driver = load_driver()
    try:
        return Card(driver, index)
    except DeviceError as error:
        raise DeviceError(f"GPU {index} cannot be used: {error.code}", error.code) from None


__all__ = ["Card", "CardAttributes", "CardFunction", "Clocks", "DeviceError", "open_card"]
