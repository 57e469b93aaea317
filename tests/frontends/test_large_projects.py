"""Sources of large projects: PyTorch's types, handles of libraries, host code in the forms that such projects use."""

from __future__ import annotations

from pathlib import Path

import pytest

from drywarp.errors import CompileError, InputFileError, UsageError
from drywarp.frontends.cuda import build as build_module
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.cuda.host_code import is_class, pieces, without_template
from drywarp.frontends.cuda.nvcc import VARIABLE
from drywarp.frontends.cuda.source import find_kernels
from tests.effort import first
from tests.frontends.blanked import device_part


@pytest.fixture(autouse=True)
def without_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVRTC has to do it alone."""
    monkeypatch.setenv(VARIABLE, "off")


TORCH = """#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/util/BFloat16.h>
#include <torch/extension.h>
#include <cuda.h>
#if CUDA_VERSION < 9000
#error an old compiler
#endif
template <typename scalar_t> C10_LAUNCH_BOUNDS_1(128)
__global__ void sums(const scalar_t *__restrict__ x, scalar_t *y, at::PhiloxCudaState random, int n) {
  using acc_t = at::acc_type<scalar_t, true>;
  static_assert(sizeof(acc_t) >= 4);
  auto [seed, offset] = at::cuda::philox::unpack(random);
  acc_t sum = seed + offset;
  CUDA_KERNEL_LOOP(i, n) { sum += static_cast<acc_t>(x[i]) * 2; }
  sum += WARP_SHFL_XOR(sum, 16);
  if (sum > std::numeric_limits<scalar_t>::lowest() && x[0] < 3.f) y[threadIdx.x] = x[1] * x[2] + 1;
}
__global__ void rows(torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> view) {
  view[blockIdx.x][threadIdx.x] += view.size(1);
}
at::Tensor run(const at::Tensor &x) {
  auto y = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "sums", ([&] { sums<scalar_t><<<1, 128>>>(nullptr); }));
  return y;
}
TORCH_LIBRARY(ours, m) { m.def("run", &run); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run, "doc"); }
"""


@pytest.mark.parametrize("element", first(["at::Half", "double", "c10::BFloat16", "float"], 2))
def test_kernels_over_pytorchs_types(element: str) -> None:
    kernel = compile_cuda(TORCH, arch="sm_80", entry=f"sums<{element}>")
    sizes = [(p.name, p.type, p.size) for p in kernel.parameters]
    assert sizes == [("x", element, 8), ("y", element, 8), ("random", "at::PhiloxCudaState", 32), ("n", "int", 4)]
    opcodes = {i.opcode for i in kernel.instructions}
    # 16-bit values are summed up as floats.
    assert ("DFMA" in opcodes) == (element == "double")
    assert ("F2FP" in opcodes) == (element not in ("float", "double"))
    assert ("FADD" in opcodes) == (element != "double")
    assert kernel.resources.max_threads == 128


def test_views_of_tensors_have_pytorchs_layout() -> None:
    kernel = compile_cuda(TORCH, arch="sm_80", entry="rows")
    assert [(p.name, p.size) for p in kernel.parameters] == [("view", 24)]
    assert {i.source.line for i in kernel.instructions if i.source and i.opcode == "STG"} == {20}


LIBRARIES = """#include <cublasLt.h>
#include <cstdio>
#include <memory>
using handle_t = cublasLtHandle_t;
struct Context {
  cublasHandle_t handle;
  FILE *log;
};
template <int TYPE> int product(
    handle_t handle, const struct Missing *shape, std::vector<float> values
);
API void save(const struct Missing *shape, std::vector<char> &bytes, FILE *to);
template <typename T, int ROWS = 32, int COLUMNS = 64>
__global__ void __launch_bounds__(128) tile(T *x, Context *context) { x[threadIdx.x] += ROWS * COLUMNS; }
template <typename T> static void launch(T *x, cudaStream_t stream) {
  cudaFuncSetAttribute(tile<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, 99);
  tile<T><<<1, 128, 0, stream>>>(x, nullptr);
}
struct Pair { __extension__ union { int a; float b; }; };
__device__ bool operator==(const Pair &a, const Pair &b) { return a.a == b.a; }
void after(int times = 3) { std::cout << times; }
template void launch<half>(half *, cudaStream_t);
"""


def test_host_code_with_handles_between_device_code() -> None:
    kernel = compile_cuda(LIBRARIES, arch="sm_80", entry="tile<half>")
    assert [p.name for p in kernel.parameters] == ["x", "context"]
    kept = device_part(LIBRARIES).splitlines()
    assert [number for number, line in enumerate(kept, 1) if line.strip()] == [2, 3, 4, 5, 6, 7, 8, 13, 14, 19, 20]


@pytest.mark.parametrize(
    ("header", "plain", "is_one"),
    [
        ("template <class T, int N = (1 > 0)> __global__ void f(T *x)", " __global__ void f(T *x)", False),
        ("template <class T> template <class U> struct S", " struct S", True),
        ("template <class T, class = A<B<T>>> int f(struct Missing *m)", " int f(struct Missing *m)", False),
        ("template <auto F = [](int x) -> int { return x > 1; }> class C", " class C", True),
        ("struct alignas(16) S", "struct alignas(16) S", True),
        ("struct S f(int x)", "struct S f(int x)", False),
        ("template <", "", False),
    ],
)
def test_headers_of_templates(header: str, plain: str, is_one: bool) -> None:
    assert without_template(header) == plain
    assert is_class(header) == is_one


def test_defaults_of_parameters_do_not_join_definitions() -> None:
    text = "template <int N = 1> __global__ void a() {} void b(int x = 2) {} bool operator==(A x, A y) {} int c[] = {};"
    assert [piece.header.split("(")[0].split()[-1] for piece in pieces(text)] == ["a", "b", "operator==", "="]


def test_launch_bounds_by_macro_hide_neither_template_nor_name() -> None:
    text = (
        "template <typename T> C10_LAUNCH_BOUNDS_1(N * 32) __global__ void a(T *x) {}\n"
        "__global__ void C10_LAUNCH_BOUNDS_2(of::N, 2) b(int n) { f(n); }\n"
        "__global__ C10_LAUNCH_BOUNDS_1(3) void c(int n) { f(n); }\n"
    )
    found = find_kernels(text)
    assert [(k.name, k.template, [p.name for p in k.parameters]) for k in found] == [
        ("a", True, ["x"]),
        ("b", False, ["n"]),
        ("c", False, ["n"]),
    ]


def test_one_header_under_two_names_is_one_header(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "twice.cuh").write_text("#pragma once\n__device__ int twice(int x) { return 2 * x; }\n")
    (tmp_path / "inner" / "more.cuh").write_text('#include "twice.cuh"\n#include <iostream>\n')
    source = tmp_path / "k.cu"
    source.write_text(
        '#include "inner/more.cuh"\n#include "inner/twice.cuh"\n'
        "__global__ void k(int *x) { x[0] = twice(x[0]); }\nint main() { std::cout << 1; }\n"
    )
    assert compile_cuda(source, arch="sm_80").name == "k"


def test_headers_that_were_left_out_are_named_with_the_error() -> None:
    text = '#include "table.cuh"\n__global__ void k(Table<4> *x) { x->a = 1; }\nint main() { k<<<1, 1>>>(nullptr); }\n'
    with pytest.raises(CompileError, match=r"^<source>\(2\): error: .*; not found, and left out: table.cuh \(-I adds"):
        compile_cuda(text, arch="sm_80")


def test_an_included_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locked.cuh").write_text("")
    (tmp_path / "k.cu").write_text('#include "locked.cuh"\n__global__ void k(int *x) { x[0] = 1; }\n')
    real = Path.read_text

    def refused(path: Path, *given: object, **more: object) -> str:
        if path.name == "locked.cuh":
            raise PermissionError(13, "Permission denied")
        return real(path, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "read_text", refused)
    with pytest.raises(InputFileError, match=r"locked.cuh: cannot be read \(Permission denied; .*k.cu includes it\)$"):
        compile_cuda(tmp_path / "k.cu", arch="sm_80")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "__global__ void k(int *x) {\n  if (x[0]) {\n    x[0] = 1;\n}\n",
            r'^<source>\(1\): error: expected a "}"; the br',
        ),
        (
            "namespace a {\n__global__ void k(int *x) { x[0] = 1; }\n/* { */\n",
            r"^<source>\(1\): error: .*never closed$",
        ),
        # The name of the kernel is missing as well, which is not the cause.
        ("__global__ void k(int *x", r'^<source>: error: expected a "\)"'),
    ],
)
def test_files_that_end_too_early(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as error:
        compile_cuda(text, arch="sm_80", entry="a::k" if "namespace" in text else "k")
    assert "\n" not in str(error.value)


DEFAULTS = """template <typename T = float, int N = 2> __global__ void scaled(T *x) { x[0] = x[1] * (T)N; }
template <typename T, int N = 2> __global__ void copied(T *x) { x[N] = x[1]; }
"""


@pytest.mark.parametrize(
    ("entry", "element"),
    [
        ("scaled", "float"),
        ("scaled<>", "float"),
        ("scaled<double>", "double"),
        ("copied<half>", "half"),
        ("copied<__half, 3>", "__half"),
        ("copied<nv_bfloat16>", "nv_bfloat16"),
        ("copied<int64_t>", "int64_t"),
    ],
)
def test_instances_by_default_arguments_and_types_that_the_source_does_not_include(entry: str, element: str) -> None:
    kernel = compile_cuda(DEFAULTS, arch="sm_80", entry=entry)
    assert (kernel.name, kernel.parameters[0].type) == (entry, element)


def test_arguments_without_defaults_have_to_be_given() -> None:
    with pytest.raises(UsageError, match="copied is a template; give its arguments"):
        compile_cuda(DEFAULTS, arch="sm_80", entry="copied")
    with pytest.raises(CompileError, match="kernel 'copied<Nothing>': identifier \"Nothing\" is undefined"):
        compile_cuda(DEFAULTS, arch="sm_80", entry="copied<Nothing>")


def test_a_mistake_in_device_code_costs_few_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    real = build_module.compile_program

    def counted(*given: object) -> object:
        tried.append(given)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(build_module, "compile_program", counted)
    with pytest.raises(CompileError, match=r'^<source>\(1\): error: identifier "typo" is undefined$'):
        compile_cuda("__global__ void k(float *x) { x[0] = typo; }\nint main() { printf(); }\n", arch="sm_80")
    assert len(tried) == 2


def test_kernels_in_included_files_lead_to_the_files_around_them(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    header = tmp_path / "core" / "tile.cuh"
    header.write_text("template <int N> __global__ void tile(int *x) { x[0] = N * WIDTH; }\n")
    (tmp_path / "a_binary.cu").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "run.cu").write_text('constexpr int WIDTH = 4;\n#include "core/tile.cuh"\n__global__ void other() {}\n')
    assert compile_cuda(tmp_path / "run.cu", arch="sm_80", entry="tile<4>").parameters[0].name == "x"
    with pytest.raises(
        CompileError, match=r"\"WIDTH\" is undefined.*; [^ .]*/run.cu includes this file, so try that with"
    ):
        compile_cuda(header, arch="sm_80", entry="tile<4>")
    with pytest.raises(UsageError, match=r"no kernel named 'other'; it holds: tile<…>; \S*run.cu holds it$"):
        compile_cuda(header, arch="sm_80", entry="other")
    with pytest.raises(UsageError, match=r"no kernel named 'nowhere'; it holds: tile<…>$"):
        compile_cuda(header, arch="sm_80", entry="nowhere")
