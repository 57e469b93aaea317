"""What no launch can be is refused in one line: elements of the wrong size, too little memory, clocks of no GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import drywarp
from drywarp.analysis.prepare import prepare_kernel, prepare_on
from drywarp.analysis.request import Options
from drywarp.cli.main import run
from drywarp.errors import UsageError
from drywarp.hardware import gpu_names, load_gpu

KERNEL = 'extern "C" __global__ void f(TYPE* x) { x[threadIdx.x] = x[0]; }'


def analyzed(type_: str, given: object) -> drywarp.Analysis:
    source = KERNEL.replace("TYPE", type_)
    return drywarp.analyze(source, gpu="a100", grid=1, block=32, args={"x": given})


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        ("float", "f16[64]"),
        ("float", "f64[64]:ones"),
        ("int", "i64[64]:iota"),
        ("double", "f32[64]"),
        ("short", "i32[64]:random"),
        ("unsigned long long", "u32[64]"),
        ("float", np.zeros(64, np.float64)),
    ],
)
def test_elements_of_another_size_are_refused(type_: str, given: object) -> None:
    with pytest.raises(UsageError) as error:
        analyzed(type_, given)
    said = str(error.value)
    assert (
        f"argument x ({type_}*): got {given[:3] if isinstance(given, str) else 'f64'}[…], whose elements have" in said
    )
    assert "or u8 for packed data" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        ("float", "f32[64]"),
        ("float", "i32[64]"),  # four bytes are four bytes
        ("float", "f64[64]"),  # zeros are zeros
        ("float", "u8[256]"),
        ("char", "f32[64]"),
        ("float4", "f32[128]"),
        ("int2", "i64[64]"),
        ("uint4", "f16[256]"),  # vectors carry what is packed
        ("unsigned long long", np.zeros(64, np.int64)),
    ],
)
def test_elements_that_may_be_meant_are_taken(type_: str, given: object) -> None:
    assert analyzed(type_, given).time_s > 0


@pytest.mark.parametrize("gpu", ["a100", "t4"])
def test_buffers_beyond_the_gpus_memory(gpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    room = load_gpu(gpu).memory.dram.bytes
    assert room is not None
    source = tmp_path / "f.cu"
    source.write_text(KERNEL.replace("TYPE", "float").replace("float* x", "float* x, float* y"))
    half = room // 2 // 4
    command = ["analyze", str(source), "--gpu", gpu, "--grid", "1", "--block", "32", "--arg", f"x=f32[{half}]", "--arg"]
    assert run([*command, f"y=f32[{half + 1}]", "--static"]) == 2
    assert run([*command, f"y=f32[{half + 1}]"]) == 2
    said = capsys.readouterr().err
    assert f"of {gpu}" in said
    assert said.count("\n") == 2


def test_every_product_states_its_memory() -> None:
    for name in gpu_names():
        gpu = load_gpu(name)
        if not gpu.abstract_only and gpu.machine_code is None:
            assert gpu.memory.dram.bytes is not None, name


@pytest.mark.parametrize("clock", ["1", "50", "9000"])
def test_clocks_of_no_gpu(clock: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", "examples/saxpy.cu", "--gpu", "a100", "--clock", clock]) == 2
    said = capsys.readouterr().err
    assert f"clock {clock} MHz: expected 76 to 2115; the highest stock clock of a100 is 1410" in said


def test_clocks_of_the_gpus_file_have_names() -> None:
    """The RTX 2080 Ti's three differ; a time in cycles alone is the shorter the higher the clock."""
    device = load_gpu("rtx2080ti").device
    stated = (device.base_clock_mhz, device.boost_clock_mhz, device.highest_clock_mhz)
    assert stated[0] < stated[1] < stated[2]
    for name, mhz in zip(("base", "boost", "highest"), stated, strict=True):
        named, given = (
            drywarp.analyze("examples/collatz.cu", gpu="rtx2080ti", clock_mhz=clock, occupancies=())
            for clock in (name, mhz)
        )
        assert (named.time_s, named.clock_hz) == (given.time_s, mhz * 1e6)


def test_a_clock_that_it_does_not_reach_by_itself_is_noted() -> None:
    note = "1500 MHz is above the highest clock of a100, 1410 MHz"
    assert note in drywarp.analyze("examples/saxpy.cu", gpu="a100", clock_mhz=1500).notes
    assert not any("highest clock" in text for text in drywarp.analyze("examples/saxpy.cu", gpu="a100").notes)
    other = prepare_on(prepare_kernel("examples/saxpy.cu", gpu="a100", options=Options(clock_mhz=1500)),
    "a100-sxm4-80gb",
                       Options(clock_mhz=1450))  # fmt: skip
    assert [text for text in (*other.notes, *other.costed.notes) if "highest clock" in text] == [
        "1450 MHz is above the highest clock of a100-sxm4-80gb, 1410 MHz"
    ]


def test_textures_count_towards_the_memory() -> None:
    """Two textures of 28 GB each are one too many for a card of 40."""
    source = """extern "C" __global__ void f(cudaTextureObject_t a, cudaTextureObject_t b, float* x) {
      x[threadIdx.x] = tex2D<float>(a, threadIdx.x, 0) + tex2D<float>(b, threadIdx.x, 0);
    }"""
    given = {"x": "f32[32]", "a": "texture():f32[65536,109375]"}
    with pytest.raises(UsageError, match=r"buffers of .*: expected at most the 40.0 GiB of a100"):
        drywarp.analyze(source, gpu="a100", grid=1, block=32, args={**given, "b": given["a"]})
