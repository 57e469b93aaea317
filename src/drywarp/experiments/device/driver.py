"""The CUDA driver's functions with error checks, and a kernel that it has loaded."""

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
