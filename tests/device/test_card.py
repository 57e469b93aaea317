"""The card's calls against a driver that runs kernels on the emulator, and what is said where there is none."""

from __future__ import annotations

import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from drywarp.errors import ToolError, UsageError
from drywarp.experiments.device import Card, open_card
from drywarp.experiments.device.driver import DeviceError, Driver, load_driver
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import machine_code_of

from .fake_driver import LAUNCH_MS, FakeDriver, fake_nvml

SOURCE = "__global__ void scale(float* x, float by, int n) { int i = threadIdx.x; if (i < n) x[i] *= by; }"


def card(driver: FakeDriver | None = None, **more: object) -> Card:
    return Card(Driver(driver or FakeDriver()), nvml=fake_nvml(), **more)  # type: ignore[arg-type]


def test_attributes_are_the_drivers() -> None:
    with card() as mine:
        said = mine.attributes
    assert (said.name, said.arch, said.sm_count) == ("NVIDIA H100 80GB HBM3", "sm_90", 132)
    assert said.driver == "580.65.06, CUDA 13.0"
    assert (said.max_warps_per_sm, said.clock_mhz) == (64, 1755)
    assert said.shared_bytes_per_block_optin == 232448


def test_a_kernel_gets_its_parameters_and_its_memory() -> None:
    made = machine_code_of(SOURCE, "sm_90", None, CudaOptions())
    driver = FakeDriver()
    with card(driver) as mine:
        function = mine.load(made.compiled.cubin, made.symbol)
        assert function.registers > 0
        x = np.arange(32, dtype=np.float32)
        address = mine.allocate(x.nbytes)
        mine.upload(address, x)
        parameters = [struct.pack("<Q", address), struct.pack("<f", 3.0), struct.pack("<i", 20)]
        mine.start_timing()
        mine.launch(function, (1, 1, 1), (32, 1, 1), parameters, 60_000, times=4)
        mine.stop_timing()
        assert mine.elapsed_s() == pytest.approx(4 * LAUNCH_MS * 1e-3)
        after = np.zeros_like(x)
        mine.download(address, after)
        mine.free(address)
        mine.unload(function)
    np.testing.assert_array_equal(after, np.where(x < 20, 3 * x, x))
    # More than 48 KiB is asked for first.
    assert list(driver.allowed.values()) == [60_000]
    assert not driver.held


def test_clocks_are_read_and_what_a_card_does_not_tell_is_none() -> None:
    with card() as mine:
        found = mine.clocks()
    assert (found.sm_mhz, found.memory_mhz, found.temperature_c, found.power_w) == (1620, 2619, 54, None)


def test_errors_name_the_call_and_the_drivers_reason() -> None:
    made = machine_code_of(SOURCE, "sm_90", None, CudaOptions())
    with card(FakeDriver(memory=100)) as mine:
        with pytest.raises(DeviceError, match=r"cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"):
            mine.allocate(101)
        with pytest.raises(DeviceError, match=r"cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"):
            mine.load(made.compiled.cubin, "nothing")
    with pytest.raises(UsageError, match=r"no GPU number 2: the driver finds 1"):
        card(index=2)


@pytest.mark.parametrize(("devices", "reason"), [(0, "finds none"), (None, "bindings are not installed")])
def test_no_gpu_is_one_line(monkeypatch: pytest.MonkeyPatch, devices: int | None, reason: str) -> None:
    fake = None if devices is None else FakeDriver(devices)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", fake)
    with pytest.raises(ToolError, match=reason) as caught:
        open_card()
    assert caught.value.exit_status == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [RuntimeError, type("DynamicLibNotFoundError", (Exception,), {})])
def test_no_driver_is_one_line(monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    def absent(flags: int) -> None:
        raise kind("no libcuda\nat all")

    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", SimpleNamespace(cuInit=absent))
    with pytest.raises(ToolError, match=r"the NVIDIA driver is not installed"):
        load_driver()


def test_the_bindings_have_every_call_that_is_made() -> None:
    """Names and order of arguments, held against the real bindings where they are installed."""
    real = pytest.importorskip("cuda.bindings.driver", reason="the gpu extra is not installed")
    for name in [name for name in dir(FakeDriver) if name.startswith("cu")]:
        assert hasattr(real, name), name
    for name in ("CUdevice_attribute", "CUfunction_attribute"):
        for member in getattr(FakeDriver(), name):
            assert hasattr(getattr(real, name), member.name), member.name
    text = real.cuLaunchKernel.__doc__.splitlines()[0]
    order = ["gridDimX", "blockDimX", "sharedMemBytes", "hStream", "kernelParams", "extra"]
    places = [text.index(word) for word in order]
    assert places == sorted(places)
