"""Whole .cu files: host code is set aside, device code stays on its lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from drywarp.errors import CompileError
from drywarp.execution.emulator import emulate
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.cuda.host_code import pieces
from drywarp.frontends.cuda.nvrtc import Included, Translation
from drywarp.frontends.cuda.repair import compile_repaired
from drywarp.kernel.launch.arguments import make_launch
from tests.frontends.blanked import device_part

WHOLE = """#include <cuda_runtime.h>
#include <cstdio>
#include <vector>
#include <fstream>
#include "not_there.h"
#define CHECK(call) do { if ((call) != cudaSuccess) exit(1); } while (0)
typedef struct { float x, y; } Point;
struct HostOnly { std::vector<float> values; };
static float *device_buffer = nullptr;
const int WIDTH = 32;
__constant__ float factors[4];
__device__ float square(float v) { return v * v; }
namespace inner {
__global__ void scale(Point *points, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) points[i].x = square(points[i].y) * factors[i & 3] + WIDTH;
}
}  // namespace inner
float reference(float v) { return v * v; }
int main(int argc, char **argv) {
  std::vector<float> host(1024);
  CHECK(cudaMalloc(&device_buffer, 1024));
  inner::scale<<<4, 256>>>((Point *)device_buffer, 512);
  printf("%f\\n", reference(host[0]));
  return 0;
}
"""


def test_a_whole_file_compiles_and_keeps_its_lines() -> None:
    kernel = compile_cuda(WHOLE, arch="sm_80")
    assert kernel.name == "inner::scale"
    lines = {i.source.line for i in kernel.instructions if i.source and i.opcode in ("LDG", "STG")}
    assert lines <= {16, 12}
    assert "factors" in kernel.symbols


def test_nothing_of_the_device_is_taken_out() -> None:
    kept = device_part(WHOLE).splitlines()
    assert len(kept) == len(WHOLE.splitlines())
    for number in (6, 7, 10, 11, 12, 14, 15, 16, 17):
        assert kept[number - 1] == WHOLE.splitlines()[number - 1]
    for number in (9, 19, 20, 21, 23, 25):
        assert kept[number - 1].strip() == ""


def test_headers_of_the_user_lose_their_host_code_too(tmp_path: Path) -> None:
    (tmp_path / "common.h").write_text(
        "#pragma once\n#include <iostream>\ninline void report() { std::cout << 1; }\n"
        "__device__ inline float twice(float v) { return 2 * v; }\n"
    )
    source = tmp_path / "k.cu"
    source.write_text(
        '#include "common.h"\n__global__ void k(float* x) { *x = twice(*x); }\nint main() { report(); }\n'
    )
    assert compile_cuda(source, arch="sm_90").parameters[0].name == "x"


def test_an_error_in_device_code_is_still_reported_on_its_line() -> None:
    broken = WHOLE.replace("square(points[i].y)", "cube(points[i].y)")
    with pytest.raises(CompileError, match=r'<source>\(16\): error: identifier "cube" is undefined'):
        compile_cuda(broken, arch="sm_80")


def test_host_code_is_hidden_before_anything_else_is_tried() -> None:
    """The error lies in what is hidden anyway: no stand-in is taken, although the header has nothing to hide."""
    header = Included("twice.cuh", Path("twice.cuh"), "__device__ inline float twice(float v) { return 2 * v; }\n")
    text = '#include "twice.cuh"\n__global__ void k(float* x) { *x = twice(*x); }\nint main() { return odd; }\n'
    tried = []

    def attempt(source: str, headers: Mapping[str, str], flags: Sequence[str]) -> str:
        tried.append((source, dict(headers), list(flags)))
        return "compiled"

    error = CompileError("", 'k.cu(3): error: identifier "odd" is undefined')
    given = Translation(text, "k.cu", None, (header,))
    assert compile_repaired(given, attempt, error, whole=True) == "compiled"
    ((source, headers, flags),) = tried
    assert source.splitlines()[:2] == text.splitlines()[:2]
    assert "main" not in source
    assert headers["twice.cuh"] == header.text
    assert flags == []


@pytest.mark.exhaustive
def test_cooperative_groups_and_std_functions() -> None:
    text = (
        "#include <cooperative_groups.h>\n#include <cmath>\n#include <cstdint>\nnamespace cg = cooperative_groups;\n"
        "__global__ void k(float* x, uint32_t n) {\n  auto block = cg::this_thread_block();\n  block.sync();\n"
        "  x[block.thread_rank()] = std::sqrt(std::abs(x[n]));\n}\nint main() { k<<<1, 32>>>(0, 1); }\n"
    )
    assert any(i.opcode == "BAR" for i in compile_cuda(text, arch="sm_80").instructions)


def test_templates_that_only_the_host_instantiates() -> None:
    text = (
        "template <int N> __global__ void add(int* x) { x[threadIdx.x] += N; }\n"
        "template <typename T> void launch(T* x) { add<3><<<1, 32>>>(x); }\nint main() { launch<int>(0); }\n"
    )
    kernel = compile_cuda(text, arch="sm_80", entry="add<3>")
    assert kernel.parameters[0].pointer


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        (
            "int a; void f(int x) { if (x) { f(1); } } struct S { int m; } s;",
            ["int a", " void f(int x) ", " struct S "],
        ),
        ("namespace a { namespace b { int x; } void g() {} } int y;", [" int x", " void g() ", " int y"]),
        ('extern "C" { void h(); } int z = f({1, 2});', [" void h()", " int z = f({1, 2})"]),
        ("int w[] = {1, 2}; enum E { A, B };", ["int w[] = ", " enum E "]),
        ("// struct X {\n/* } */ char c = '}'; const char* s = \"{\";", None),
        ("void unfinished(", []),
        ("}}}} int k;", [" int k"]),
    ],
)
def test_pieces(text: str, headers: list[str] | None) -> None:
    found = list(pieces(text))
    if headers is None:
        assert len(found) == 2
        return
    assert [piece.header for piece in found] == headers
    for piece in found:
        assert 0 <= piece.start < piece.end <= len(text)


def test_long_stretches_of_blanks_cost_nothing() -> None:
    text = WHOLE + "\n".join(" " * 200 for _ in range(400)) + "\n__global__ void last(int* x) { *x = 1; }\n"
    assert len(list(pieces(text))) == len(list(pieces(WHOLE))) + 1
    assert compile_cuda(text, arch="sm_80", entry="last", options=CudaOptions()).name == "last"


def test_the_short_names_of_unsigned_types_are_known_as_under_nvcc() -> None:
    text = "template <uint N> __global__ void k(uint *x, ushort *y, ulong n) { x[n] = y[n] + N; }\n"
    kernel = compile_cuda(text, arch="sm_80", entry="k<3>")
    assert [p.name for p in kernel.parameters] == ["x", "y", "n"]
    # Many sources define them again, as the C library does or by macro.
    for again in ("typedef unsigned int uint;\n", "#define uint unsigned int\n", "using uint = unsigned;\n"):
        compile_cuda(again + text, arch="sm_80", entry="k<3>")


MEMBERS = """
#include <map>
#include <string>
#include <vector>
using namespace std;
struct Config {
  int first;
  std::vector<int> sizes;
  string name;
  std::map<int, int> known;
  int total() const { int s = 0; for (int v : sizes) s += v; return s + name.size(); }
  int last;
};
class Net {
 public:
  Net(int n) : weights(n), n(n) {}
  __device__ int get() const { return n; }
  size_t host() const { return weights.size(); }
 private:
  vector<float> weights;
  int n;
};
struct Line { int n; float x; int host() const { std::vector<int> v(3); return v.size(); } };
__global__ void k(int* out, const Config* c, const Net* net, Line line) {
  auto twice = [=] __device__(int x) { return 2 * x; };
  out[0] = c->last;
  out[1] = net->get();
  out[2] = twice(line.n);
}
"""


def test_classes_keep_their_layout_around_members_of_the_host() -> None:
    """As large as in libstdc++: what follows a vector or a string lies where it does in the program."""
    kernel = compile_cuda(MEMBERS, arch="sm_80")
    config, net = np.zeros(34, np.int32), np.zeros(8, np.int32)
    config[(8 + 24 + 32 + 48) // 4], net[24 // 4] = 77, 88
    line = np.array([5, 0], np.int32).tobytes()
    launch = make_launch(kernel, (1, 1, 1), (1, 1, 1), {"out": "i32[3]", "c": config, "net": net, "line": line})
    assert emulate(kernel, launch, blocks="all").buffer("out").tolist() == [77, 88, 10]
