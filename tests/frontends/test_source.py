"""What is read off the text: kernels, parameters, namespaces, templates, other names of types."""

from __future__ import annotations

import pytest

from drywarp.frontends.cuda import source
from drywarp.frontends.cuda.source import (
    Declared,
    KernelDeclaration,
    blank_comments,
    decode,
    find_kernels,
    includes,
    resolve,
    template_arguments,
    type_names,
)


def only(text: str) -> KernelDeclaration:
    (kernel,) = find_kernels(text)
    return kernel


@pytest.mark.parametrize(
    "text",
    [
        "// __global__ void k(int n) {}",
        "/* __global__ void k(int n) {} */",
        'const char* s = "__global__ void k(int n) {}";',
        'const char* s = "\\"__global__ void k(int n) {}";',
        'const char* s = R"x(__global__ void k(int n) {})x";',
        "#define KERNEL __global__ void k(int n)",
        "#define KERNEL(x) \\\n  __global__ void x(int n)\n",
        "__global__",
        "template __global__ void k<int>(int*);",
        "template <> __global__ void k<int>(int* x) {}",
        "__device__ void k(int n) {}",
        "",
    ],
)
def test_what_is_no_kernel(text: str) -> None:
    assert find_kernels(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(int n) {}",
        "void __global__ k(int n) {}",
        "static __global__ void k(int n) {}",
        "__global__ static inline void k(int n) {}",
        'extern "C" __global__ void k(int n) {}',
        'extern "C" { __global__ void k(int n) {} }',
        "__global__ void __launch_bounds__(256) k(int n) {}",
        "__global__ __launch_bounds__(256, 2) void k(int n) {}",
        "__launch_bounds__(256) __global__ void k(int n) {}",
        "__global__ void __launch_bounds__((A + 1) * B) __maxnreg__(32) k(int n) {}",
        "__global__ void __cluster_dims__(2, 1, 1) k(int n) {}",
        "__global__ void __attribute__((used)) k(int n) {}",
        "__global__ [[maybe_unused]] void k(int n) {}",
        "__global__ void\nk(\n  int n // how many\n)\n{\n}",
        "__global__ auto k(int n) -> void {}",
    ],
)
def test_ways_to_write_one_kernel(text: str) -> None:
    kernel = only(text)
    assert kernel.name == "k"
    assert kernel.parameters == (Declared("n", "int", False),)
    assert not kernel.template


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("", ()),
        ("void", ()),
        ("float* x", (Declared("x", "float", True),)),
        ("const float *__restrict__ x, float * y", (Declared("x", "float", True), Declared("y", "float", True))),
        ("float const* const x", (Declared("x", "float", True),)),
        ("float x[4]", (Declared("x", "float", True),)),
        ("float x[][8]", (Declared("x", "float", True),)),
        ("const T& x", (Declared("x", "T", True),)),
        ("unsigned long long n", (Declared("n", "unsigned long long", False),)),
        ("struct Point p", (Declared("p", "Point", False),)),
        ("const __grid_constant__ Point p", (Declared("p", "Point", False),)),
        ("typename Traits<T, 4>::value_type v", (Declared("v", "Traits<T, 4>::value_type", False),)),
        ("cuda::std::uint32_t n", (Declared("n", "cuda::std::uint32_t", False),)),
        ("int, float*", (Declared("", "int", False), Declared("", "float", True))),
        ("unsigned int, long long", (Declared("", "unsigned int", False), Declared("", "long long", False))),
        (
            "cudaTextureObject_t image, float4 v",
            (Declared("image", "cudaTextureObject_t", False), Declared("v", "float4", False)),
        ),
    ],
)
def test_parameters(text: str, parameters: tuple[Declared, ...]) -> None:
    assert only(f"__global__ void k({text}) {{}}").parameters == parameters


def test_lines_count_from_one_past_comments_and_long_macros() -> None:
    text = "/* one\ntwo */\n#define A \\\n  1 \\\n  + 2\n\n__global__ void first() {}\n\n__global__ void second() {}\n"
    assert [(k.name, k.line) for k in find_kernels(text)] == [("first", 7), ("second", 9)]


def test_windows_line_ends() -> None:
    text = "#define A \\\r\n  __global__ void no()\r\n__global__ void k(int n)\r\n{\r\n}\r\n"
    assert [(k.name, k.line) for k in find_kernels(text)] == [("k", 3)]


def test_a_kernel_that_is_declared_and_defined_is_one_with_the_names_of_its_definition() -> None:
    kernel = only(
        "__global__ void k(float*, int);\n__global__ void k(float* x, int n) {}\n__global__ void k(float*, int);"
    )
    assert (kernel.line, [p.name for p in kernel.parameters]) == (2, ["x", "n"])


def test_namespaces() -> None:
    text = """
namespace a { __global__ void k() {} namespace { __global__ void m() { if (1) { } } } }
namespace b::c { struct S { int x; }; __global__ void k() {} }
__global__ void k() {}
"""
    assert [k.qualified for k in find_kernels(text)] == ["a::k", "a::m", "b::c::k", "k"]


def test_templates_and_their_arguments() -> None:
    kernel = only("template <typename T, int N = 4, class U = float>\n__global__ void k(T* x, U a) {}")
    assert kernel.template
    assert kernel.template_parameters == (("T", ""), ("N", "4"), ("U", "float"))
    assert template_arguments(kernel, "k<double, 8>") == {"T": "double", "N": "8", "U": "float"}
    assert template_arguments(kernel, "k<Pair<int, 2>>") == {"T": "Pair<int, 2>", "N": "4", "U": "float"}
    assert [resolve(p, {"T": "double", "U": "float"}) for p in kernel.parameters] == [
        Declared("x", "double", True),
        Declared("a", "float", False),
    ]


def test_launch_bounds_that_call_functions_between_a_template_and_its_kernel() -> None:
    """As in ggml: what stands in parentheses may hold more of them."""
    kernel = only(
        "template <typename T, int N>\n__launch_bounds__(warps(N, size())*lanes(), 1)\n"
        "static __global__ void k(T* x) {}"
    )
    assert kernel.template_parameters == (("T", ""), ("N", ""))
    assert [p.name for p in kernel.parameters] == ["x"]


def test_each_of_many_headers_is_read_for_its_macros_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each header's kernels are found with the macros of all; CUTLASS has hundreds of headers."""
    texts = [f"#define MARK{n} MARK{n + 1}\nMARK{n} void k{n}(int* x);\n" for n in range(30)]
    texts.append("#define MARK30 __global__\n")
    calls = []
    plain = source.blank_comments
    monkeypatch.setattr(source, "blank_comments", lambda *a, **more: calls.append(a) or plain(*a, **more))
    assert [k.name for text in texts for k in source.find_kernels(text, texts)] == [f"k{n}" for n in range(30)]
    assert len(calls) <= 2 * len(texts)


def test_other_names_of_types() -> None:
    text = """
typedef float real;
typedef const real* vector;
using index = unsigned int;
// using nothing = int;
#define SCALAR double
"""
    names = type_names([text])
    assert names == {"real": "float", "vector": "const real*", "index": "unsigned int", "SCALAR": "double"}
    assert resolve(Declared("x", "vector", False), names) == Declared("x", "float", True)
    assert resolve(Declared("n", "index", False), names) == Declared("n", "unsigned int", False)
    assert resolve(Declared("s", "SCALAR", False), names) == Declared("s", "double", False)


REAL = "#ifndef DOUBLE\ntypedef float real;\n#else\ntypedef double real;\n#endif\n"
CHAIN = (
    "#if BITS == 16\nusing real = half;\n#elif defined(BITS) && BITS >= 32\nusing real = float;\n"
    "#else\nusing real = double;\n#endif\n"
)


@pytest.mark.parametrize(
    ("texts", "defines", "real"),
    [
        ([REAL], {}, "float"),
        ([f"//#define DOUBLE\n{REAL}"], {}, "float"),
        ([f"#define DOUBLE\n{REAL}"], {}, "double"),
        ([f"#define DOUBLE\n#undef DOUBLE\n{REAL}"], {}, "float"),
        ([REAL], {"DOUBLE": ""}, "double"),
        ([REAL, '#define DOUBLE 1\n#include "real.h"\n'], {}, "double"),
        ([f"#ifndef REAL_H\n#define REAL_H\n{REAL}#endif\n"], {}, "float"),
        ([f"#ifndef REAL_H\n#define REAL_H\n{REAL}#endif\n", "int x;"], {}, "float"),
        ([CHAIN], {}, "double"),
        ([CHAIN], {"BITS": "16"}, "half"),
        ([CHAIN], {"BITS": "64"}, "float"),
        ([REAL.replace("DOUBLE", "__SOME_COMPILER__")], {}, None),
        ([REAL.replace("#ifndef DOUBLE", "#if SIZE(x) > 2")], {}, None),
        ([REAL.replace("#ifndef DOUBLE", "#if SIZE(2) > 2")], {"SIZE": "1"}, None),
        ([REAL.replace("#ifndef DOUBLE", "#if SIZE > 2")], {"SIZE": "9" * 5000}, None),
        ([REAL.replace("#ifndef DOUBLE", f"#if {'9' * 5000} > 2")], {}, None),
        ([REAL.replace("#ifndef DOUBLE", f"#if {'(' * 5000}1{')' * 5000}")], {}, None),
        (["#if 0\ntypedef double real;\n#endif\ntypedef float real;\n"], {}, "float"),
        (["#if !defined(A) || (B != 0 && !C)\ntypedef float real;\n#endif\n"], {"A": "1", "B": "2"}, "float"),
        (["#if !defined(A) || (B != 0 && !C)\ntypedef float real;\n#endif\n"], {"A": "1", "B": "2", "C": "1"}, None),
    ],
)
def test_names_of_types_depend_on_conditions(texts: list[str], defines: dict[str, str], real: str | None) -> None:
    """What is neither ruled in nor out stands for nothing."""
    assert type_names(texts, defines).get("real") == real


def test_a_name_that_stands_for_itself_ends() -> None:
    assert resolve(Declared("x", "T", False), {"T": "T"}) == Declared("x", "T", False)


def test_includes_and_how_they_are_written() -> None:
    text = '#include <a.h>\n  #  include "b/c.cuh"\n// #include "no.h"\n/* #include "no.h" */\n'
    assert includes(text) == [("a.h", False), ("b/c.cuh", True)]


def test_blanking_keeps_every_line_where_it_was() -> None:
    text = 'a /* x\ny */ b // c\n"s\\"t" d'
    blanked = blank_comments(text)
    assert len(blanked) == len(text)
    assert blanked.split() == ["a", "b", "d"]
    assert blanked.count("\n") == 2


def test_pointers_to_rows_and_functions_have_names() -> None:
    (kernel,) = find_kernels("__global__ void k(const float (*rows)[32], void (*f)(int, float), int n) {}")
    assert [(p.name, p.type, p.pointer) for p in kernel.parameters] == [
        ("rows", "float", True),
        ("f", "void", True),
        ("n", "int", False),
    ]


def test_text_in_old_encodings() -> None:
    assert decode(b"\xef\xbb\xbfint a;") == "int a;"
    assert decode(b"// gr\xf6\xdfe\n") == "// gr\xf6\xdfe\n"
    for garbage in (b"\xff\xfei\0n\0", b"\x7fELF\xff\x02"):
        with pytest.raises(UnicodeDecodeError):
            decode(garbage)
