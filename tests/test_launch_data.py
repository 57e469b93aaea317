"""Data from elsewhere than the command line: files of arguments, functions, host memory, variables in device memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drywarp
from drywarp import analyze
from drywarp.cli.values import argument_file
from drywarp.errors import DrywarpError, InputFileError, UsageError
from drywarp.hardware import Gpu, load_gpu
from drywarp.kernel.launch.launch import Buffer
from tests.emulator.support import run

SCALE = """
extern "C" __global__ void scale(float* a, const float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = 2 * b[i];
}
"""


def _analyzed(gpu: str | Gpu = "a100", **args: object):
    return analyze(SCALE, gpu=gpu, grid=8, block=128, args=args)


def test_a_file_gives_arguments(tmp_path: Path) -> None:
    file = tmp_path / "args.toml"
    file.write_text("n = 1024\na = 'f32[1024]'\nb = 'f32[1024]:ones'\nv = [1, 2.5]\nflag = true\n")
    assert argument_file(str(file)) == {
        "n": 1024,
        "a": "f32[1024]",
        "b": "f32[1024]:ones",
        "v": "1,2.5",
        "flag": "true",
    }


@pytest.mark.parametrize("text", ["n = ", "a = [[1], [2]]", "d = 2025-01-01"])
def test_a_bad_file_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "args.toml"
    file.write_text(text)
    with pytest.raises(InputFileError, match=r"args\.toml"):
        argument_file(str(file))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InputFileError, match=r"nowhere\.toml: no such file"):
        argument_file("nowhere.toml")


def test_a_function_gives_an_argument_from_the_others() -> None:
    seen = []

    def make(others):
        seen.append(dict(others))
        return np.ones(others["n"], np.float32)

    found = _analyzed(n=1024, a="f32[1024]", b=make)
    assert found.arguments["b"] == "f32[1024]:array"
    assert seen == [{"n": 1024, "a": "f32[1024]"}]


READ_MANY = """
extern "C" __global__ void k(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
"""
CHASE = """
extern "C" __global__ void k(const int* p, int* out) {
    int i = *out;
    for (int n = 0; n < 64; ++n) i = p[i];
    *out = i;
}
"""
MANY, BUS = 1 << 22, 24.8e9


def _added(*host: str) -> Any:
    args = {"a": f"f32[{MANY}]", "b": f"f32[{MANY}]", "out": f"f32[{MANY}]", "n": MANY}
    args |= {name: f"host {args[name]}" for name in host}
    return analyze(READ_MANY, gpu="a100", grid=MANY // 256, block=256, args=args)


def test_host_memory_is_reached_at_the_rate_of_the_bus() -> None:
    plain, read = _added(), _added("b")
    assert plain.limiter == "dram"
    assert read.limiter == "host"
    assert read.time_s == pytest.approx(4 * MANY / BUS, rel=0.02)
    assert read.memory.dram_bytes == pytest.approx(2 / 3 * plain.memory.dram_bytes, rel=0.01)
    assert any("16.0 MiB cross the bus to host memory at 24.8 GB/s" in note for note in read.notes)
    assert not any("cross the bus" in note for note in plain.notes)
    assert not read.doubts
    (part,) = (part for part in read.band.parts if part.name == "host memory")
    assert part.high == pytest.approx(1.5, rel=0.02)


def test_the_bus_to_the_host_carries_both_directions_at_once() -> None:
    read, both = _added("b"), _added("b", "out")
    assert both.time_s == pytest.approx(read.time_s, rel=0.03)
    every = _added("a", "b", "out")
    assert every.time_s == pytest.approx(2 * read.time_s, rel=0.03)


def test_a_chain_through_host_memory_waits_for_the_bus() -> None:
    chain = np.roll(np.arange(64 * 32, dtype=np.int32), -32)  # a line further each time

    def seconds(buffer: Any) -> float:
        args = {"p": buffer, "out": "i32[1]"}
        return analyze(CHASE, gpu="a100", grid=1, block=1, args=args).time_s

    device = Buffer("i32", chain.shape, "array", chain)
    waits = seconds(replace(device, host=True)) - seconds(device)
    gpu = load_gpu("a100")
    assert waits == pytest.approx(64e-9 * (1400 - gpu.memory.dram.latency_ns), rel=0.02)


def test_host_memory_takes_no_room_on_the_gpu() -> None:
    args = {"a": f"f32[{1 << 34}]", "b": "f32[256]", "out": "f32[256]", "n": 256}
    with pytest.raises(UsageError, match="expected at most"):
        analyze(READ_MANY, gpu="a100", grid=1, block=256, args=args)
    args["a"] = f"host {args['a']}"
    assert analyze(READ_MANY, gpu="a100", grid=1, block=256, args=args).time_s < 1e-3


def test_host_memory_without_a_known_bus_is_told_first() -> None:
    a100 = load_gpu("a100")
    without = replace(a100, sections={**a100.sections, "host": None})
    found = _analyzed(n=1024, a="f32[1024]", b="host f32[1024]:ones", gpu=without)
    assert found.doubts[0].startswith("the time is a lower bound: b in host memory")
    assert found.notes[0] == found.doubts[0]
    assert not _analyzed(n=1024, a="f32[1024]", b="host f32[1024]:ones").doubts


def test_a_buffer_that_is_too_small_is_told_first() -> None:
    found = _analyzed(n=1024, a="f32[1024]", b="f32[100]:ones")
    assert found.doubts[0].startswith("b is probably too small")
    again = _analyzed(n=1024, a="f32[1024]", b="f32[100]:ones")
    assert again.doubts == found.doubts


VARIABLES = """
__device__ float factor;
__device__ int table[4];
namespace deep { __device__ double offset; }
extern "C" __global__ void k(float* out) {
    out[threadIdx.x] = factor * table[threadIdx.x] + (float)deep::offset;
}
"""


def test_variables_in_device_memory_are_filled() -> None:
    from drywarp.execution.emulator import emulate
    from drywarp.frontends.cuda.compile import compile_cuda
    from drywarp.kernel.launch.arguments import make_launch

    kernel = compile_cuda(VARIABLES, arch="sm_80")
    constants = {"factor": "2.5", "table": "i32[4]:iota", "offset": 1}
    launch = make_launch(kernel, (1, 1, 1), (4, 1, 1), {"out": "f32[4]"}, constants=constants)
    assert emulate(kernel, launch).buffer("out").tolist() == [1.0, 3.5, 6.0, 8.5]
    empty = make_launch(kernel, (1, 1, 1), (4, 1, 1), {"out": "f32[4]"})
    assert emulate(kernel, empty).buffer("out").tolist() == [0.0] * 4


def test_a_variable_keeps_its_own_value_where_none_is_given() -> None:
    source = '__device__ int seven = 7;\nextern "C" __global__ void k(int* out) { out[0] = seven; seven = 8; }'
    assert run(source, 1, 1, np.zeros(1, np.int32)).buffer("out").tolist() == [7]


OVERRUN = """__global__ void k(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * 2;
}
"""


def test_a_small_buffer_is_not_read_beyond_into_the_next() -> None:
    """An index that fits the largest buffer leads out of a smaller one, wherever it leads on a GPU."""
    given = {"b": "f32[1048576]", "n": 1048576}
    with pytest.raises(DrywarpError, match=r"beyond the end of a \(4000 bytes\)"):
        drywarp.analyze(OVERRUN, grid=4096, block=256, args={"a": "f32[1000]", **given})
    with pytest.raises(DrywarpError, match=r"bytes from a null pointer: a pointer that was not given"):
        drywarp.analyze(OVERRUN, grid=4096, block=256, args={"a": "null", **given})


def test_a_misspelt_argument_is_named_before_what_is_missing() -> None:
    with pytest.raises(UsageError, match=r"no parameter named 'bb'; did you mean b\? it takes: float\* a, float\* b"):
        drywarp.analyze(OVERRUN, grid=4096, block=256, args={"a": "f32[1000]", "bb": "f32[1000]"})
    with pytest.raises(UsageError, match=r"grid '64x64': expected X,Y,Z, as in 64,64"):
        drywarp.analyze(OVERRUN, grid="64x64", block=256, args={"a": "f32[1000]"})
