"""The CUDA driver's functions, each checked."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import DrywarpError, ToolError

INSTALL = "pip install 'drywarp[gpu]'"


class DeviceError(DrywarpError):
    """The driver refused a call, or a kernel failed on the card: names the call and the driver's own reason."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Driver:
    """The module of bindings, `cuda.bindings.driver`; anything with its functions and enumerations will do."""

    def __init__(self, bindings: Any) -> None:
        self.bindings = bindings

    def call(self, name: str, *arguments: Any) -> Any:
        """One function's results: nothing, one, or a tuple. Raises DeviceError."""
        status, *results = getattr(self.bindings, name)(*arguments)
        if int(status) != 0:
            _, text = self.bindings.cuGetErrorName(status)
            code = text.decode() if isinstance(text, bytes) else str(text)
            raise DeviceError(f"the GPU's driver: {name}: {code}", code)
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def attribute(self, device: Any, name: str) -> int:
        """A device attribute by the name that the driver's header gives it, without its prefix."""
        key = getattr(self.bindings.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.call("cuDeviceGetAttribute", key, device))


def load_driver() -> Driver:
    """The driver of this machine. Raises ToolError where bindings, driver or a GPU are missing."""
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
        # How the bindings say that there is no libcuda has changed between their versions.
        absent = isinstance(error, RuntimeError | OSError | ImportError)
        if not absent and type(error).__name__ != "DynamicLibNotFoundError":
            raise
        raise ToolError("no GPU can be used: the NVIDIA driver is not installed (expected a GPU and libcuda)") from None
    if count == 0:
        raise ToolError("no GPU can be used: the driver finds none (expected an NVIDIA GPU)")
    return driver
