"""Values for `__constant__` variables, from the command line's words to the constant bank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drywarp import analyze
from drywarp.errors import UsageError
from drywarp.execution.emulator import emulate
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.cuda.instances import constant_types
from drywarp.frontends.loaded import read_launches
from drywarp.kernel.launch.arguments import make_launch

SOURCE = """
typedef unsigned short word;
namespace physics { __constant__ float step = 3; }
static __constant__ double wide;
__constant__ word small, other;
__constant__ float4 colour;
__constant__ int table[3];
__constant__ int* where;
struct Pair { int a; float b; };
__constant__ Pair pair, pairs[9];
extern "C" __global__ void k(float* o) {
  o[0] = physics::step; o[1] = wide; o[2] = small; o[3] = other; o[4] = colour.y; o[5] = table[threadIdx.x];
  o[6] = pair.b + pairs[threadIdx.x].b; o[7] = where != nullptr;
}
"""
ONE = (1, 1, 1)


@pytest.fixture(scope="module")
def kernel() -> Any:
    return compile_cuda(SOURCE, arch="sm_80")


def stored(kernel: Any, constants: dict[str, Any]) -> list[float]:
    launch = make_launch(kernel, ONE, ONE, {"o": "f32[8]"}, constants=constants)
    return emulate(kernel, launch).buffer("o").tolist()


def test_values_take_the_type_that_the_source_declares(kernel: Any) -> None:
    given = {"step": "2.5", "wide": 7, "small": "65535", "other": 3, "colour": "1,2,3,4", "table": "i32[3]:ones"}
    assert stored(kernel, given) == [2.5, 7.0, 65535.0, 3.0, 2.0, 1.0, 0.0, 0.0]


def test_a_namespace_may_be_named_and_a_structure_is_given_as_bytes(kernel: Any) -> None:
    pair = np.array([(1, 0.5)], np.dtype([("a", "i4"), ("b", "f4")]))[0]
    assert stored(kernel, {"physics::step": 4, "pair": np.frombuffer(pair.tobytes(), np.uint8)})[::6] == [4.0, 0.5]


@pytest.mark.parametrize(("value", "first"), [("7", 7.0), ("[7, 8, 9]", 7.0), ([6, 5], 6.0), ("i32[3]:4", 4.0)])
def test_an_array_of_numbers_takes_a_list(kernel: Any, value: Any, first: float) -> None:
    assert stored(kernel, {"table": value})[5] == first


def test_the_text_may_be_a_number_without_a_declared_type() -> None:
    kernel = compile_cuda('extern "C" { __constant__ float c; __global__ void k(float* o) { *o = c; } }', arch="sm_80")
    assert emulate(kernel, make_launch(kernel, ONE, ONE, {"o": "f32[1]"}, constants={"c": "0x10"})).buffer("o")[0] == 16


@pytest.mark.parametrize(
    ("constants", "expected"),
    [
        ({"small": "65536"}, "constant small (unsigned short): 65536 does not fit into 2 bytes"),
        ({"small": "1.5"}, "constant small (unsigned short): got 1.5, expected a whole number"),
        ({"small": "many"}, "constant small (unsigned short): got 'many', expected a number"),
        ({"table": "1,2,3,4"}, "constant table (int[]): got 4 numbers, expected at most 3"),
        ({"table": "1,2.5"}, "constant table (int[]): got 2.5, expected a whole number"),
        ({"pairs": "4"}, "constant pairs (Pair[]): got '4', expected a buffer, as in f32[9]:ones or @file"),
        ({"colour": "1,2"}, "constant colour (float4): got 2 numbers, expected 4, as in 1,1,1,1"),
        (
            {"where": "i32[4]"},
            "constant where (int*): got a buffer, but variables that hold pointers are not supported",
        ),
        ({"missing": "1"}, "k: no __constant__ or __device__ variable named 'missing'; it has: "),
    ],
)
def test_values_that_do_not_fit_are_named(kernel: Any, constants: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError) as error:
        make_launch(kernel, ONE, ONE, {"o": "f32[8]"}, constants=constants)
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__constant__ float a;", {"a": ("float", False, False)}),
        ("static const unsigned int __constant__ n = 4;", {"n": ("unsigned int", False, False)}),
        ("int x; __constant__ double a, b[4], *c;", {
            "a": ("double", False, False), "b": ("double", False, True), "c": ("double", True, False)}),
        ("__device__ __constant__ alignas(16) P p = {1, 2};", {"p": ("P", False, False)}),
        ("__constant__ float m[2][3] = {{1}};", {"m": ("float", False, True)}),
        ("// __constant__ int no;\n__constant__ long long yes;", {"yes": ("long long", False, False)}),
        ("struct P { int a; }; __constant__ struct P p;", {"p": ("struct P", False, False)}),
        ("__constant__", {}),
    ],
)  # fmt: skip
def test_declarations(text: str, expected: dict[str, tuple[str, bool, bool]]) -> None:
    assert constant_types(text) == expected


def test_numbers_in_a_comment_a_launches_file_and_python(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(
        "// drywarp: --grid 1 --block 32 --arg o=i32[64] --const turns=3\n"
        "__constant__ int turns;\n"
        "__global__ void k(int* o) { for (int i = 0; i < turns; ++i) o[threadIdx.x] += i; }\n"
    )
    three, nine = (analyze(file, **given).warp_instructions for given in ({}, {"constants": {"turns": 9}}))
    assert three < nine
    launches = tmp_path / "launches.toml"
    launches.write_text('[[launch]]\ngrid = 1\nblock = 32\nconstants = { turns = 9, x = 2.5, y = "f32[2]" }\n')
    assert read_launches(launches)[0].constants == {"turns": 9, "x": 2.5, "y": "f32[2]"}
