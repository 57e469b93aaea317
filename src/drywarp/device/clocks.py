"""The clocks that a card runs at, read through NVML and never set."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Clocks:
    """One reading: MHz, degrees Celsius, watts; None for what the card does not tell."""

    sm_mhz: float | None = None
    memory_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None


class ClockReader:
    """NVML's view of the card at a PCI address. Without NVML every reading is empty."""

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
        """The clocks now. A reading costs some ten microseconds and does not wait for the card."""
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
        """Let NVML go."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None
