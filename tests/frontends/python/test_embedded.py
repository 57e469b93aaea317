"""CUDA C++ in strings of Python programs, read without running them."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from drywarp.errors import CompileError, DrywarpError, InputFileError, UsageError
from drywarp.execution.emulator import emulate
from drywarp.frontends.cuda import CudaOptions, known_options
from drywarp.frontends.load import load, load_kernel
from drywarp.frontends.python.embedded import embedded_sources
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.arguments import make_launch
from tests.effort import some

KERNEL = """extern "C" __global__ void {name}(float* a, int n) {{
  int i = threadIdx.x;
  if (i < n) a[i] *= FACTOR;
}}"""
HEAD = "raise SystemExit('this file must not be run')\nimport cupy as cp\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "program.py"
    path.write_text(HEAD + text)
    return path


def compiled(tmp_path: Path, text: str, entry: str | None = None) -> Kernel:
    kernel, _ = load_kernel(written(tmp_path, text), arch="sm_80", entry=entry)
    return kernel


def scaled(kernel: Kernel, n: int = 20) -> np.ndarray:
    launch = make_launch(kernel, (1, 1, 1), (32, 1, 1), {"a": np.ones(32, np.float32), "n": n})
    return emulate(kernel, launch, blocks="all").buffer("a")


CALLS = {
    "CuPy RawKernel": "k = cp.RawKernel(r'''\n{code}\n''', 'scale', options=('-DFACTOR=3.0f', '--std=c++17'))",
    "by keyword": "k = cp.RawKernel(name='scale', code='''\n{code}\n''', options=('-D', 'FACTOR=3.0f',))",
    "CuPy RawModule": "m = cp.RawModule(code='''\n{code}\n''', options=('-DFACTOR=3.0f',), backend='nvrtc')",
    "a name": "code = '''#define FACTOR 3.0f\n{code}\n'''\nk = cp.RawKernel(code, 'scale')",
    "a sum": "M = '#define FACTOR 3.0f\\n'\nk = cp.RawKernel(M + '''\n{code}\n''', 'scale')",
    "an f-string": "F = 3\nk = cp.RawKernel(f'''#define FACTOR {{F}}.0f\n{doubled}\n''', 'scale')",
    "PyTorch load_inline": "from torch.utils.cpp_extension import load_inline\n"
    "load_inline('ext', [''], ['''\n{code}\n'''], extra_cuda_cflags=['-O3', '-DFACTOR=3.0f', '-lineinfo'])",
    "PyTorch _compile_kernel": "import torch\nk = torch.cuda._compile_kernel('''\n{code}\n''', 'scale',"
    " header_code='#define FACTOR 3.0f', nvcc_options=None)",
    "PyCUDA": "from pycuda.compiler import SourceModule\nm = SourceModule('''\n{code}\n''', options=['-DFACTOR=3.0f'])",
    "CUDA Python": "from cuda.core import Program, ProgramOptions\n"
    "p = Program('''#define FACTOR 3.0f\n{code}\n''', 'c++', ProgramOptions(std='c++17', arch='sm_90'))",
}


@pytest.mark.parametrize("call", some([pytest.param(call, id=name) for name, call in CALLS.items()], 3))
def test_every_way_of_handing_over_source(tmp_path: Path, call: str) -> None:
    code = KERNEL.format(name="scale")
    kernel = compiled(tmp_path, call.format(code=code, doubled=code.replace("{", "{{").replace("}", "}}")))
    np.testing.assert_array_equal(scaled(kernel), np.where(np.arange(32) < 20, 3, 1))


def test_lines_are_those_of_the_python_file(tmp_path: Path) -> None:
    path = written(tmp_path, CALLS["CuPy RawKernel"].format(code=KERNEL.format(name="scale")))
    loaded = load(path, arch="sm_80")
    assert isinstance(loaded.kernel, Kernel)
    assert loaded.text == ""
    lines = path.read_text().split("\n")
    store = next(i for i in loaded.kernel.instructions if i.opcode == "STG")
    assert store.source
    assert store.source.file == str(path)
    assert lines[store.source.line - 1] == "  if (i < n) a[i] *= FACTOR;"


def test_a_source_of_several_pieces_has_lines_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, CALLS["a sum"].format(code=KERNEL.format(name="scale")))
    loaded = load(path, arch="sm_80")
    assert isinstance(loaded.kernel, Kernel)
    store = next(i for i in loaded.kernel.instructions if i.opcode == "STG")
    assert store.source
    assert store.source.file == loaded.kernel.source_file == f"{path}:4:scale"
    assert loaded.text.split("\n")[store.source.line - 1] == "  if (i < n) a[i] *= FACTOR;"


def test_one_literal_a_line_keeps_its_place(tmp_path: Path) -> None:
    text = "k = cp.RawKernel(\n  'extern \"C\" __global__ void scale(float* a, int n) {\\n'\n  'a[n] = 1;\\n'\n"
    text += "  '}\\n', 'scale')"
    with pytest.raises(CompileError, match=r"program\.py\(5\): error: "):
        compiled(tmp_path, text.replace("a[n]", "b[n]"))


def test_the_compilers_error_names_the_python_files_line(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"program\.py\(6\): error: identifier \"b\" is undefined"):
        compiled(tmp_path, CALLS["PyCUDA"].format(code="__global__ void k(float* a) {\n  a[0] = b; }"))


TORCH = """from torch.utils.cpp_extension import load_inline
source = '''
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
template <typename scalar_t>
__global__ void square(const scalar_t* __restrict__ x, scalar_t* y, size_t n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];
}
inline unsigned blocks(unsigned n) { return (n + 255) / 256; }
torch::Tensor launch(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "a tensor on the GPU");
  auto y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "square", ([&] {
    square<scalar_t><<<blocks(x.numel()), 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
'''
load_inline(name='ext', cpp_sources='torch::Tensor launch(torch::Tensor x);', cuda_sources=source, functions=['launch'])
"""


def test_pytorchs_host_code_is_set_aside(tmp_path: Path) -> None:
    kernel = compiled(tmp_path, TORCH, entry="square<double>")
    x = np.linspace(-1, 1, 100)
    launch = make_launch(kernel, (1, 1, 1), (128, 1, 1), {"x": x, "y": np.zeros(100), "n": 100})
    np.testing.assert_array_equal(emulate(kernel, launch, blocks="all").buffer("y"), x * x)
    assert {i.source.line for i in kernel.instructions if i.source and i.opcode == "DMUL"} == {10}


def test_several_kernels_are_listed(tmp_path: Path) -> None:
    one, two = (KERNEL.format(name=name).replace("FACTOR", "2") for name in ("one", "two"))
    text = f"a = cp.RawKernel('''{one}''', 'one')\nb = cp.RawModule(code='''{one}\n{two}''')\n"
    with pytest.raises(UsageError, match=r"program\.py: several kernels; name one with --entry: one, two"):
        compiled(tmp_path, text)
    assert compiled(tmp_path, text, "two").name == "two"
    with pytest.raises(UsageError, match=r"several sources define a kernel 'one' \(lines 3, 7\)"):
        compiled(tmp_path, text, "one")
    with pytest.raises(UsageError, match=r"no kernel named 'three'; it holds: one, two$"):
        compiled(tmp_path, text, "three")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k = cp.RawKernel(open('k.cu').read(), 'k')", r":3: the source is built at run time; pass"),
        ("def f(code):\n  return cp.RawKernel(code, 'k')", r":4: the source is built"),
        ("a = '1'\na = '2'\nk = cp.RawKernel(a, 'k')", r":5: the source is built"),
        ("k = cp.RawKernel('x' % 3, 'k')", r":3: the source is built"),
        ("k = cp.ElementwiseKernel('T x', 'T y', 'y = x', 'k')", r":3: the source of a CuPy ElementwiseKernel"),
        ("print('nothing')", r"no kernel found \(expected a function under @triton\.jit"),
        ("p = Program('; ptx', 'ptx')", r"no kernel found"),
    ],
)
def test_what_the_text_alone_does_not_tell(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        compiled(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_cupys_own_headers_are_found_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "k = cp.RawKernel('#include <cupy/three.cuh>\\n__global__ void k(int* a) { *a = THREE; }', 'k')"
    with pytest.raises(CompileError, match=r"cannot open source file \"cupy/three\.cuh\""):
        compiled(tmp_path, text)
    headers = tmp_path / "packages" / "cupy" / "_core" / "include" / "cupy"
    headers.mkdir(parents=True)
    (headers / "three.cuh").write_text("#define THREE 3\n")
    (tmp_path / "packages" / "cupy" / "__init__.py").write_text("raise ImportError('must not be imported')\n")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    assert compiled(tmp_path, text).name == "k"


def test_files_that_are_no_python(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("import cupy\nk = (\n")
    with pytest.raises(InputFileError, match=r"program\.py:2: not Python: '\(' was never closed"):
        load(path, arch="sm_80")
    path.write_text("x = 1\x00")
    with pytest.raises(DrywarpError, match=r"program\.py"):
        load(path, arch="sm_80")


def test_flags_that_change_machine_code_are_taken() -> None:
    flags = [
        "-O3",
        "-DA",
        "-D B=2",
        "-I/x",
        "-I",
        "/y",
        "-std=c++20",
        "--use_fast_math",
        "-fmad=false",
        "--maxrregcount=40",
    ]
    assert known_options(flags) == CudaOptions(
        {"A": "", "B": "2"}, ("/x", "/y"), "c++20", 40, ("--use_fast_math", "--fmad=false")
    )


def test_fast_math_reaches_the_compiler(tmp_path: Path) -> None:
    code = 'extern "C" __global__ void k(float* a) { a[0] = sinf(a[1]) / a[2]; }'
    exact, fast = (
        compiled(tmp_path, f"k = cp.RawKernel('{code}', 'k', options=({flag}))") for flag in ("", "'--use_fast_math',")
    )
    assert len(fast.instructions) < len(exact.instructions) / 4


def test_flags_known_only_at_run_time_leave_the_source_out() -> None:
    text = "k = cp.RawKernel('__global__ void k() {}', 'k', options=tuple(make()))"
    found, passed = embedded_sources(ast.parse(text), text, "p.py")
    assert (found, passed) == ([], ["p.py:1: the source is built at run time"])


class RawKernel:
    """What CuPy's object holds of its source."""

    __module__ = "cupy._core.raw"

    def __init__(self, code: str, name: str, options: tuple[str, ...] = ()) -> None:
        self.code, self.name, self.options = code, name, options


def test_a_cupy_object_is_taken_for_its_source() -> None:
    code = KERNEL.format(name="scale")
    loaded = load(RawKernel(code, "scale", ("-DFACTOR=3.0f",)), arch="sm_80")
    assert isinstance(loaded.kernel, Kernel)
    assert loaded.text == code
    np.testing.assert_array_equal(scaled(loaded.kernel, 32), np.full(32, 3))


def test_objects_and_python_files_are_for_nvidias_gpus(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^RawKernel: for NVIDIA GPUs, but the GPU runs gfx90a"):
        load(RawKernel("", "k"), arch="gfx90a")
    with pytest.raises(UsageError, match=r"program\.py: for NVIDIA GPUs, but the GPU runs gfx90a"):
        load(written(tmp_path, ""), arch="gfx90a")


@pytest.mark.parametrize(
    "thing", [print, 3, SimpleNamespace(fn=4), lambda x: x], ids=["builtin", "int", "fn", "lambda"]
)
def test_other_objects_are_refused(thing: object) -> None:
    with pytest.raises(UsageError, match=r"expected a path, a source text, a function under @triton\.jit"):
        load(thing, arch="sm_80")
