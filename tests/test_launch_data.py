"""Data from elsewhere than the command line: files of arguments, functions, host memory, variables in device memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import drywarp
from drywarp import analyze
from drywarp.cli.options import argument_file
from drywarp.errors import DrywarpError, InputFileError, UsageError
from tests.emulator.support import run

SCALE = """
extern "C" __global__ void scale(float* a, const float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = 2 * b[i];
}
"""


def _analyzed(**args: object):
    return analyze(SCALE, gpu="a100", grid=8, block=128, args=args)


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


def test_host_memory_is_told_first() -> None:
    found = _analyzed(n=1024, a="f32[1024]", b="host f32[1024]:ones")
    assert found.doubts[0].startswith("the time is a lower bound: b in host memory")
    assert found.notes[0] == found.doubts[0]
    plain = _analyzed(n=1024, a="f32[1024]", b="f32[1024]:ones")
    assert not plain.doubts
    # The band reaches to the rate of the bus, of which the A100's DRAM has some fifty times.
    assert found.band.high_s > 20 * plain.band.high_s
    assert found.band.low_s == pytest.approx(plain.band.low_s)


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
