"""CUDA C++ becomes a kernel: options, the choice of the kernel, errors in one line, and the cache."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from drywarp.errors import CompileError, DrywarpError, InputFileError, UsageError
from drywarp.execution.emulator import emulate
from drywarp.frontends import cache
from drywarp.frontends import cache as toolchain
from drywarp.frontends.cuda import CudaOptions, headers
from drywarp.frontends.cuda import build as cuda
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.cuda.nvrtc import first_error
from drywarp.kernel.instruction import Immediate
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.arguments import make_launch
from tests.effort import first

SCALE = "__global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }"
TWO = SCALE + "\n__global__ void fill(int* x, int n) { x[threadIdx.x] = n; }"
STORE = "__global__ void store(int* x) { x[0] = VALUE; }"
TEMPLATE = "template <typename T, int N> __global__ void add(T* x, T a) { x[threadIdx.x + N] += a; }"


def stored(kernel: Kernel) -> int | float:
    """The constant that kernel `store` stores."""
    return next(
        o.value for i in kernel.instructions if "MOV" in i.full_opcode for o in i.operands if isinstance(o, Immediate)
    )


# Options --------------------------------------------------------------------------------------------------------


def test_defines_with_and_without_a_value() -> None:
    text = "#ifdef ON\n" + STORE + "\n#endif"
    kernel = compile_cuda(text, arch="sm_80", options=CudaOptions(defines={"ON": "", "VALUE": "77"}))
    assert stored(kernel) == 77


def test_include_folders_and_the_files_own(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "far.cuh").write_text("#define FAR 4\n")
    (tmp_path / "near.cuh").write_text("#define NEAR 3\n")
    source = tmp_path / "k.cu"
    source.write_text('#include "near.cuh"\n#include <far.cuh>\n#define VALUE (NEAR * 10 + FAR)\n' + STORE)
    kernel = compile_cuda(source, arch="sm_80", options=CudaOptions(includes=(str(tmp_path / "far"),)))
    assert stored(kernel) == 34
    assert kernel.source_file == str(source)


def test_the_standard_decides_what_compiles() -> None:
    text = "template <typename T> concept Any = true;\n" + SCALE
    assert compile_cuda(text, arch="sm_80", options=CudaOptions(std="c++20")).name == "scale"
    with pytest.raises(CompileError, match=r"^<source>\(1\): error: "):
        compile_cuda(text, arch="sm_80", options=CudaOptions(std="c++14"))


@pytest.mark.parametrize("include", ["", "#include <cmath>\n", "#include <math.h>\n", "#include <cuda_runtime.h>\n"])
def test_constants_of_the_c_library_are_there_as_with_nvcc(include: str) -> None:
    text = include + "__global__ void k(float* x) { constexpr float v = INFINITY; x[0] = v; x[1] = NAN; }"
    kernel = compile_cuda(text, arch="sm_80")
    values = {o.value for i in kernel.instructions for o in i.operands if isinstance(o, Immediate)}
    assert {0x7F800000, 0x7FFFFFFF} <= values


def test_a_file_may_define_them_itself() -> None:
    macros = "#define M_PI 3\n#undef INFINITY\n#define INFINITY 1e30f\n"
    assert compile_cuda(macros + "__global__ void k(float* x) { x[0] = INFINITY * M_PI; }", arch="sm_80").name == "k"


def test_lines_of_a_file_carry_the_users_spelling_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.cu").write_text(SCALE)
    monkeypatch.chdir(tmp_path)
    kernel = compile_cuda(Path("k.cu"), arch="sm_80")
    assert {i.source.file for i in kernel.instructions if i.source} == {"k.cu"}


# The choice of the kernel ---------------------------------------------------------------------------------------


def test_one_kernel_needs_no_name() -> None:
    kernel = compile_cuda(SCALE, arch="sm_80")
    assert (kernel.name, kernel.symbol) == ("scale", "_Z5scalePff")
    assert [(p.name, p.type, p.pointer) for p in kernel.parameters] == [("x", "float", True), ("a", "float", False)]


def test_several_kernels_are_told_apart_by_name() -> None:
    kernel = compile_cuda(TWO, arch="sm_80", entry="fill")
    assert kernel.name == "fill"
    assert [p.name for p in kernel.parameters] == ["x", "n"]


def test_a_template_is_named_with_its_arguments_and_its_types_are_filled_in() -> None:
    kernel = compile_cuda(TEMPLATE, arch="sm_80", entry="add<double, 3>")
    assert kernel.name == "add<double, 3>"
    assert [(p.name, p.type, p.pointer, p.size) for p in kernel.parameters] == [
        ("x", "double", True, 8),
        ("a", "double", False, 8),
    ]


@pytest.mark.parametrize("entry", [None, "k", "a::b::k"])
def test_a_kernel_in_a_namespace(entry: str | None) -> None:
    kernel = compile_cuda(
        "namespace a { namespace b { __global__ void k(float* x) { *x = 1; } } }", arch="sm_80", entry=entry
    )
    assert kernel.symbol == "_ZN1a1b1kEPf"
    assert kernel.parameters[0].name == "x"


def test_a_kernel_with_c_linkage() -> None:
    assert compile_cuda('extern "C" ' + SCALE, arch="sm_80").symbol == "scale"


def test_a_kernel_in_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "kernels.cuh").write_text(SCALE)
    source = tmp_path / "k.cu"
    source.write_text('#include "kernels.cuh"\n')
    assert [p.name for p in compile_cuda(source, arch="sm_80").parameters] == ["x", "a"]


def test_a_kernel_that_a_macro_makes_can_be_named() -> None:
    text = "#define KERNEL(name) __global__ void name\nKERNEL(hidden)(float* x) { *x = 1; }"
    kernel = compile_cuda(text, arch="sm_80", entry="hidden")
    assert (kernel.name, kernel.parameters[0].size, kernel.parameters[0].name) == ("hidden", 8, "")


def test_other_names_of_types_are_resolved() -> None:
    text = "#define REAL float\ntypedef REAL real;\nusing Vec = real*;\n__global__ void k(Vec x, real a) { *x = a; }"
    kernel = compile_cuda(text, arch="sm_80")
    assert [(p.type, p.pointer) for p in kernel.parameters] == [("float", True), ("float", False)]
    wide = compile_cuda(
        text.replace("#define REAL float\n", ""), arch="sm_80", options=CudaOptions(defines={"REAL": "double"})
    )
    assert wide.parameters[1].type == "double"


@pytest.mark.parametrize(
    ("text", "entry", "message"),
    [
        ("int x;", None, "<source>: no __global__ function found (expected a CUDA kernel)"),
        (TWO, None, "<source>: several kernels; name one with --entry: scale, fill"),
        (TWO, "fil", "<source>: no kernel named 'fil'; it holds: scale, fill"),
        (TEMPLATE, None, "<source>: add is a template; give its arguments: --entry 'add<…>'"),
        (TEMPLATE, "add", "<source>: add is a template; give its arguments: --entry 'add<…>'"),
        (
            f"namespace a {{ {SCALE} }} namespace b {{ {SCALE} }}",
            "scale",
            "<source>: several kernels named 'scale': a::scale, b::scale",
        ),
    ],
)
def test_a_kernel_that_cannot_be_told(text: str, entry: str | None, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        compile_cuda(text, arch="sm_80", entry=entry)
    assert str(raised.value) == message


# Errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "entry", "message"),
    [
        ("\n__global__ void k(int* x) { *x = y; }", None, '<source>(2): error: identifier "y" is undefined'),
        (
            "__global__ void k(int* x) { *x = y + z; }",
            None,
            '<source>(1): error: identifier "y" is undefined (and 1 more)',
        ),
        (
            '#include "nothing.h"\n__global__ void k() {}',
            None,
            '<source>(1): catastrophic error: cannot open source file "nothing.h"',
        ),
        # A warning that holds the word does not pass for the error.
        (
            "__global__ void k(int* x) { int error; *x = 1; }\n__global__ void m() { f(); }",
            "k",
            '<source>(2): error: identifier "f" is undefined',
        ),
        (TEMPLATE, "add<Nothing, 3>", "<source>: kernel 'add<Nothing, 3>': identifier \"Nothing\" is undefined"),
        (
            "__global__ void k(float* x) { __shared__ float a[20000]; a[threadIdx.x] = *x; *x = a[3]; }",
            None,
            "<source>: ptxas error   : Entry function '_Z1kPf' uses too much shared data (0x13880 bytes, 0xc000 max)",
        ),
    ],
)
def test_the_compilers_first_error_is_one_line(text: str, entry: str | None, message: str) -> None:
    with pytest.raises(CompileError) as raised:
        compile_cuda(text, arch="sm_80", entry=entry)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)
    assert raised.value.log


MACROS = """__global__ void k(float* x, int n) {
  __shared__ float a[Tile];
  a[threadIdx.x] = x[threadIdx.x * ROWS];
  x[threadIdx.x] = a[0] + typo;
  KIND(x);
}
"""


def test_macros_that_a_build_file_sets_are_named_with_the_option() -> None:
    """What is called or is in lower case is rather a mistake."""
    with pytest.raises(CompileError) as raised:
        compile_cuda(MACROS, arch="sm_80")
    hint = "not defined: ROWS, Tile (a build file may set them: -D ROWS=VALUE -D Tile=VALUE)"
    assert str(raised.value).endswith(hint)
    given = {"Tile": "64", "ROWS": "2", "typo": "1", "KIND(a)": ""}
    assert compile_cuda(MACROS, arch="sm_80", options=CudaOptions(given)).resources.shared_bytes == 256


def test_a_log_without_an_error() -> None:
    assert first_error("\n \nsomething odd\n") == "something odd"
    assert first_error("") == "the compiler failed without a message"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file (expected CUDA C++ source)"),
        (b"\xff\xfe\x00", "not text (expected CUDA C++ source)"),
        ("folder", "is a folder (expected CUDA C++ source)"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes | str | None, message: str) -> None:
    path = tmp_path / "k.cu"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        path.mkdir()
    with pytest.raises(InputFileError) as raised:
        compile_cuda(path, arch="sm_80")
    assert str(raised.value) == f"{path}: {message}"


# The cache ------------------------------------------------------------------------------------------------------


class Compiler:
    """Stands before the real compiler and counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self.allowed = True
        self._real = cuda.compile_program
        monkeypatch.setattr(cuda, "compile_program", self._run)

    def _run(self, *arguments: Any) -> Any:
        assert self.allowed, "the compiler was called"
        self.runs += 1
        return self._real(*arguments)


@pytest.fixture
def fresh(own_cache: Path) -> Path:
    """An empty cache of its own."""
    return own_cache


@pytest.fixture
def compiler(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    return Compiler(monkeypatch)


def test_the_second_time_nothing_is_compiled(compiler: Compiler) -> None:
    first = compile_cuda(SCALE, arch="sm_80")
    compiler.allowed = False
    assert compile_cuda(SCALE, arch="sm_80") == first


def test_whatever_matters_is_part_of_the_key(compiler: Compiler) -> None:
    usual: dict[str, Any] = {"source": SCALE, "arch": "sm_80"}
    changes: list[dict[str, Any]] = [
        {"source": SCALE + " "},
        {"arch": "sm_75"},
        {"options": CudaOptions({"A": "1"})},
        {"options": CudaOptions(max_registers=32)},
        {"options": CudaOptions(std="c++14")},
    ]
    compile_cuda(**usual)
    for number, change in enumerate(changes):
        compile_cuda(**{**usual, **change})
        assert compiler.runs == 2 + number, change


def test_a_changed_include_is_compiled_again_even_one_that_an_include_includes(
    compiler: Compiler, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.cuh").write_text('#include "b.cuh"\n')
    inner = tmp_path / "sub" / "b.cuh"
    source = tmp_path / "k.cu"
    source.write_text('#include "sub/a.cuh"\n' + STORE)
    for value in (11, 12):
        inner.write_text(f"#define VALUE {value}\n")
        assert stored(compile_cuda(source, arch="sm_80")) == value
    assert compiler.runs == 2


def entry_file(folder: Path) -> Path:
    (path,) = (folder / "kernels").rglob("*.msgpack")
    return path


@pytest.mark.parametrize("damage", first([b"half", b"", b"\x00" * 40]))
def test_a_damaged_entry_is_compiled_again_and_replaced(compiler: Compiler, fresh: Path, damage: bytes) -> None:
    first = compile_cuda(SCALE, arch="sm_80")
    path = entry_file(fresh)
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2] if damage == b"half" else damage)
    assert compile_cuda(SCALE, arch="sm_80") == first
    assert compiler.runs == 2
    assert cache.load(path.parent.name + path.stem) is not None


def test_nothing_is_left_beside_an_entry(compiler: Compiler, fresh: Path) -> None:
    compile_cuda(SCALE, arch="sm_80")
    assert list(entry_file(fresh).parent.iterdir()) == [entry_file(fresh)]


def test_a_failed_compilation_is_not_kept(compiler: Compiler) -> None:
    for _ in range(2):
        with pytest.raises(CompileError):
            compile_cuda("__global__ void k() { f(); }", arch="sm_80")
    assert compiler.runs == 2


def test_without_a_writable_cache_it_works_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(tmp_path / "file" / "cache"))
    text = "#include <cuda_fp16.h>\n__global__ void k(__half* x) { *x = __hadd(*x, *x); }"
    assert compile_cuda(text, arch="sm_80").name == "k"
    assert (tmp_path / "file").read_text() == ""


def test_keys_tell_parts_apart() -> None:
    assert cache.key_of("ab", "c") != cache.key_of("a", "bc")
    assert cache.key_of("a") != cache.key_of("a", "")
    assert cache.key_of("a") == cache.key_of(b"a")


# The bundled headers --------------------------------------------------------------------------------------------


def install_slowly(folder: Path) -> None:
    """In place of the real thing: two files, and time for others to come between."""
    (folder / "first.h").write_text("1")
    threading.Event().wait(0.02)
    (folder / "last.h").write_text("2")


def test_headers_appear_whole_and_once(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "install_headers", install_slowly)
    seen: list[set[str]] = []

    def use() -> None:
        folder = headers.header_folder()
        seen.append({path.name for path in folder.iterdir()})

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [{"first.h", "last.h"}] * 6
    assert len(list((fresh / "drywarp-headers").iterdir())) == 1  # nothing half done is left beside it


def test_an_interrupted_installation_leaves_nothing(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: Path) -> None:
        (folder / "first.h").write_text("1")
        raise DrywarpError("no space")

    monkeypatch.setattr(headers, "install_headers", fail)
    with pytest.raises(DrywarpError):
        headers.header_folder()
    assert list((fresh / "drywarp-headers").iterdir()) == []
    monkeypatch.setattr(headers, "install_headers", install_slowly)
    assert {path.name for path in headers.header_folder().iterdir()} == {"first.h", "last.h"}


def test_a_chosen_compiler_gets_the_headers_of_its_toolkit(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolkit = tmp_path / "cuda" / "include"
    (toolkit / "cooperative_groups").mkdir(parents=True)
    for name in ("cuda_fp16.h", "cuda_fp16.hpp", "cooperative_groups.h", "cooperative_groups/reduce.h", "thrust.h"):
        (toolkit / name).write_text("theirs")
    (tmp_path / "cuda" / "lib64").mkdir()

    def install(folder: Path) -> None:
        (folder / "cooperative_groups" / "details").mkdir(parents=True)
        for name in ("cuda_fp16.h", "cuda_fp8.h", "math_constants.h"):
            (folder / name).write_text("ours")

    monkeypatch.setattr(headers, "install_headers", install)
    monkeypatch.setenv("DRYWARP_NVRTC", "chosen")
    monkeypatch.setattr(toolchain, "compiler_library", lambda: tmp_path / "cuda" / "lib64" / "libnvrtc.so.12")
    toolchain.toolkit_headers.cache_clear()
    try:
        folder = headers.header_folder()
        found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    finally:
        toolchain.toolkit_headers.cache_clear()
    # Those that follow the version are the toolkit's alone: no cuda_fp8.h is left that it does not know.
    theirs = ("cuda_fp16.h", "cuda_fp16.hpp", "cooperative_groups.h", "cooperative_groups/reduce.h")
    assert found == {**dict.fromkeys(theirs, "theirs"), "math_constants.h": "ours"}


@pytest.mark.parametrize("linkage", ["", 'extern "C" '])
def test_a_typedef_that_a_macro_of_the_compiler_decides_has_the_compilers_type(linkage: str) -> None:
    """The mangled symbol says which branch is taken; where there is none, the compiler's own macros do."""
    choice = "#if __CUDA_ARCH__ >= 800\ntypedef double real;\n#else\ntypedef float real;\n#endif\n"
    text = choice + linkage + "__global__ void k(real* x, const real a, size_t n, cudaTextureObject_t t) { x[n] = a; }"
    for arch, real in (("sm_75", "float"), ("sm_80", "double")):
        found = [(p.name, p.type, p.pointer) for p in compile_cuda(text, arch=arch).parameters]
        assert found[:2] == [("x", real, True), ("a", real, False)]
        # What the text states is shown as it is written.
        assert found[2:] == [("n", "size_t", False), ("t", "cudaTextureObject_t", False)]


def test_handles_keep_the_types_that_the_source_names() -> None:
    """For the compiler a texture object is an integer of eight bytes, and behind two stars there are addresses."""
    text = (
        "__global__ void k("
        "const cudaTextureObject_t* t, cudaTextureObject_t one, float** rows, size_t* sizes, float* o)"
        "{ o[0] = tex2D<float>(t[0], 0, 0) + tex2D<float>(one, 0, 0) + rows[0][0] + sizes[0]; }"
    )
    found = [(p.type, p.pointer) for p in compile_cuda(text, arch="sm_80").parameters]
    handle = "cudaTextureObject_t"
    assert found == [(handle, True), (handle, False), ("float", True), ("size_t", True), ("float", True)]


def test_macros_that_expand_to_global_mark_kernels(tmp_path: Path) -> None:
    """In the file itself or in a header, alone or with linkage and return type."""
    (tmp_path / "kernels.h").write_text('#define KERNEL_FN extern "C" __global__ void\n#define GLOBAL __global__\n')
    source = tmp_path / "k.cu"
    source.write_text(
        '#include "kernels.h"\n#define OWN __global__ __launch_bounds__(64) /* here */\n'
        "#ifdef HOST\n#define MIXED __global__\n#else\n#define MIXED __device__\n#endif\n"
        "MIXED float zero() { return 0; }\n"
        "KERNEL_FN first(float* x, int n) { x[n] = 1; }\n"
        "GLOBAL void second(double* y) { y[threadIdx.x] = 2; }\n"
        "template <class T> OWN void third(const T* z, T* o) { o[0] = z[0]; }\n"
    )
    named = {"first": [("x", "float"), ("n", "int")], "second": [("y", "double")]}
    for entry, parameters in {**named, "third<short>": [("z", "short"), ("o", "short")]}.items():
        kernel = compile_cuda(source, arch="sm_80", entry=entry)
        assert [(p.name, p.type) for p in kernel.parameters] == parameters
    with pytest.raises(UsageError, match="several kernels; name one with --entry: first, second, third<…>"):
        compile_cuda(source, arch="sm_80")


def test_macros_that_reach_global_by_way_of_others_defined_below_mark_kernels() -> None:
    """As CLBlast's `opencl_to_cuda.h` turns OpenCL's words into CUDA's; its functions say `inline` for `__device__`."""
    text = (
        '#define __kernel __placeholder__\n#define __placeholder__ extern "C" __global__\n'
        "#define __global\n#define FUNC inline\n#define inline __device__\n"
        "typedef float real;\ntypedef real real_arg;\n"
        "FUNC real twice(real x) { return x + x; }\n"
        "__kernel __attribute__((always_inline))\n"
        "void scale(const int n, const real_arg alpha, __global real* x) { x[n] = twice(alpha); }\n"
    )
    kernel = compile_cuda(text, arch="sm_80", entry="scale")
    assert [(p.name, p.type) for p in kernel.parameters] == [("n", "int"), ("alpha", "float"), ("x", "float")]


def test_types_that_a_macro_chooses_by_way_of_others() -> None:
    """As the precisions of CLBlast's kernels: a chain of typedefs under `#if`, without a mangled symbol."""
    text = (
        "#if PRECISION == 16\ntypedef short real;\ntypedef short real_arg;\n"
        "#elif PRECISION == 32\ntypedef float real;\ntypedef real real_arg;\n"
        "#elif PRECISION == 6464\ntypedef double2 real;\ntypedef double2 real_arg;\n#endif\n"
        'extern "C" __global__ void scale(const int n, const real_arg alpha, real* __restrict__ x) { x[n] = alpha; }'
    )
    for precision, type_ in (("16", "short"), ("32", "float"), ("6464", "double2")):
        kernel = compile_cuda(text, arch="sm_80", options=CudaOptions({"PRECISION": precision}))
        assert [(p.name, p.type) for p in kernel.parameters] == [("n", "int"), ("alpha", type_), ("x", type_)]


@pytest.mark.parametrize("argument", ["uint64_t", "unsigned long", "std::uint64_t"])
def test_a_template_argument_by_any_name_of_its_type(argument: str, tmp_path: Path) -> None:
    """The integer types are known after a header of the host's, in a header too."""
    (tmp_path / "small.h").write_text("#include <cstdint>\nstruct Small { int8_t value; };\n")
    source = tmp_path / "k.cu"
    source.write_text(
        '#include <chrono>\n#include "small.h"\n'
        "template <typename T> __global__ void k(T* x, int8_t* y, T a) { x[threadIdx.x] = a; y[0] = (int8_t)a; }\n"
        "int main() { auto t = std::chrono::steady_clock::now(); k<uint64_t><<<1, 32>>>(nullptr, nullptr, 3); }\n"
    )
    kernel = compile_cuda(source, arch="sm_80", entry=f"k<{argument}>")
    assert [(p.name, p.size, p.pointer) for p in kernel.parameters] == [("x", 8, True), ("y", 8, True), ("a", 8, False)]


def test_headers_go_to_a_temporary_folder_where_the_cache_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(headers, "install_headers", install_slowly)
    headers.temporary_headers.cache_clear()
    folder = headers.header_folder()
    assert {path.name for path in folder.iterdir()} == {"first.h", "last.h"}
    assert headers.header_folder() == folder
    headers.temporary_headers.cache_clear()


def test_a_kernel_may_be_named_like_a_function_of_cuda() -> None:
    kernel = compile_cuda("__global__ void all(float* x, int n) { x[threadIdx.x] = n; }", arch="sm_80")
    assert (kernel.name, [p.name for p in kernel.parameters]) == ("all", ["x", "n"])


RANDOM = """#include <curand_kernel.h>
__global__ void draw(unsigned* bits, float* uniform, float* normal, unsigned long long seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t s;
  curand_init(seed, i, 0, &s);
  uint4 x = curand4(&s);
  if (i == 0) { bits[0] = x.x; bits[1] = x.y; bits[2] = x.z; bits[3] = x.w; bits[4] = curand(&s); }
  curandState t;
  curand_init(seed, i, 0, &t);
  uniform[i] = curand_uniform(&t);
  normal[i] = i & 1 ? curand_normal(&s) : curand_normal(&t);
}
"""


def test_curands_stand_in_draws_what_the_literature_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drywarp.frontends.cuda.build.library_folders", tuple)
    monkeypatch.setattr("drywarp.frontends.cuda.nvcc.library_folders", tuple)
    kernel = compile_cuda(RANDOM, arch="sm_80")
    assert any("stand-in for cuRAND" in note for note in kernel.notes)
    given = {"bits": "u32[5]", "uniform": "f32[4096]", "normal": "f32[4096]", "seed": 0}
    made = emulate(kernel, make_launch(kernel, (32, 1, 1), (128, 1, 1), given), blocks="all")
    # The first test vector of Random123 (Salmon et al., SC 2011): Philox4x32-10 of counter and key 0.
    assert made.buffer("bits").tolist()[:4] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    uniform, normal = made.buffer("uniform"), made.buffer("normal")
    assert ((uniform > 0) & (uniform <= 1)).all()
    assert abs(uniform.mean() - 0.5) < 0.03
    assert max(abs(normal.mean()), abs(normal.std() - 1)) < 0.08
