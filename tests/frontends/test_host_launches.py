"""Launches that a source states itself: what its host code says of grid, block, values and buffers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.frontends.cuda.host_values import Scope, evaluate, split_commas
from drywarp.frontends.cuda.launches import host_launches
from drywarp.frontends.cuda.nvrtc import gather
from drywarp.frontends.loaded import HostLaunch
from drywarp.kernel.kernel import Kernel, Parameter, Resources

FLOATS, INT, REAL = ("float", 8, True), ("int", 4, False), ("float", 4, False)


def kernel(name: str = "k", **parameters: tuple[str, int, bool]) -> Kernel:
    made = [Parameter(n, 0, one[1], key, one[0], one[2]) for n, (key, one) in enumerate(parameters.items())]
    return Kernel(name, name, "sm_80", (), tuple(made), 0, Resources(8, 0))


SCALE = kernel(a=FLOATS, f=REAL, n=INT)


def launches(body: str, of: Kernel = SCALE, before: str = "", **options: Any) -> tuple[HostLaunch, ...]:
    """The launches in `main` with this body, after other code."""
    text = f"{before}\nint main(int argc, char** argv) {{\n{body}\n}}\n"
    given, defines = options.get("given", {}), options.get("defines", {})
    return host_launches(gather(text, "m.cu", None, []), of, given, defines)


def launch(body: str, of: Kernel = SCALE, before: str = "", **options: Any) -> HostLaunch:
    (found,) = launches(body, of, before, **options)
    return found


WHOLE = """const int n = 1 << 16; float *h = new float[n], *d;
cudaMalloc((void**)&d, n * sizeof(float));
dim3 block(256), grid((n + block.x - 1) / block.x);
k<<<grid, block, 2 * block.x * sizeof(float)>>>(d, 0.5f, n);"""


def test_all_of_a_simple_program() -> None:
    assert launch(WHOLE) == HostLaunch(
        "m.cu:6", "256", "256", 2048, {"a": "f32[65536]:random", "f": "0.5", "n": "65536"}, {"a": "m.cu:4"}
    )


@pytest.mark.parametrize(
    ("before", "body", "grid", "block"),
    [
        ("#define B 128\n#define DIV(a, b) (((a) + (b) - 1) / (b))", "k<<<DIV(1000, B), B>>>(p, 1, 2);", "8", "128"),
        ("int up(int a, int b) { return a % b ? a / b + 1 : a / b; }", "k<<<up(9, 4), 32>>>(p, 1, 2);", "3", "32"),
        ("enum { X = 3, Y };", "k<<<dim3(X, Y, 2), dim3(8, 4)>>>(p, 1, 2);", "3,4,2", "8,4"),
        ("", "dim3 g{7, 2}; g.y = 5; int b = 16; b *= 2; b++; k<<<g, b>>>(p, 1, 2);", "7,5", "33"),
        ("", "int n = 100; k<<<(int)ceil(n / 32.0), static_cast<int>(32.5f)>>>(p, 1, n);", "4", "32"),
        ("", "int n = argc > 1 ? atoi(argv[1]) : 64; k<<<n, std::min(n, 32)>>>(p, 1, n);", "64", "32"),
        ("", "int n = 4; if (argc == 2) n = atoi(argv[1]); else if (argc == 1) n = 8; k<<<n, 1>>>(p, 1, 2);", "8", "1"),
        ("", "for (int s = 4; s > 0; s /= 2) { k<<<s, 32>>>(p, 1, s); }", "4", "32"),
        ("", "int big = 1; if (big) { int g = 6; k<<<g, 32>>>(p, 1, 2); } else k<<<9, 9>>>(p, 1, 2);", "6", "32"),
        ("", "auto run = [&] { int g = 3; k<<<g, 32>>>(p, 1, 2); };", "3", "32"),
        ("template <int B> void run(int g) { k<<<g, B>>>(p, 1, 2); }", "int g = 5; run<64>(2 * g);", "10", "64"),
        ("void run(int g, int b = 96) { k<<<g, b>>>(p, 1, 2); }", "run(11);", "11", "96"),
        ("struct R { void run() { int g = 2; k<<<g, 32>>>(p, 1, 2); } };", "", "2", "32"),
        ("static int blocks = 12;", "k<<<blocks, 32>>>(p, 1, 2);", "12", "32"),
    ],
)  # fmt: skip
def test_grids_and_blocks(before: str, body: str, grid: str, block: str) -> None:
    found = launch(body, before=before)
    assert (found.grid, found.block) == (grid, block)


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("", "int g = atoi(argv[1]); k<<<g, 32>>>(p, 1, 2);"),
        ("", "int g; scanf(f, &g); k<<<g, 32>>>(p, 1, 2);"),
        ("", "int g = 4; while (more()) g *= 2; k<<<g, 32>>>(p, 1, 2);"),
        ("", "int g = 4; for (int i = 0; i < 3; i++) { g += i; } k<<<g, 32>>>(p, 1, 2);"),
        ("", "int g = 4; if (fast()) g = 8; k<<<g, 32>>>(p, 1, 2);"),
        ("int g = 4; void set() { g = 8; }", "set(); k<<<g, 32>>>(p, 1, 2);"),
        ("int f(int n) { return f(n - 1); }", "k<<<f(3), 32>>>(p, 1, 2);"),
        ("", "int g = 4 / 0; k<<<g, 32>>>(p, 1, 2);"),
        ("", "k<<<0, 32>>>(p, 1, 2);"),
        ("", "dim3 g(4, rows()); k<<<g, 32>>>(p, 1, 2);"),
    ],
)
def test_what_the_text_does_not_settle_stays_open(before: str, body: str) -> None:
    found = launch(body, before=before)
    assert found.grid is None
    assert "grid" in found.open
    assert found.block == "32"


def test_what_a_function_may_change_is_forgotten() -> None:
    before = "void ask(const char* what, int& n) { n = 5; }\nvoid look(const int& n, int m) {}"
    plain = "int n = 64; float* d; {} k<<<n, 64>>>(d, 1, n);"
    assert launch(plain.replace("{}", "look(n, n);"), before=before).grid == "64"
    assert launch(plain.replace("{}", 'ask("n", n);'), before=before).grid is None
    assert launch(plain.replace("{}", 'if (argc > 0) ask("n", n);'), before=before).grid is None
    assert launch(plain.replace("{}", "std::cin >> n;")).grid is None
    # A string is an argument, too.
    run = "void run(const char* name, int blocks) { k<<<blocks, 64>>>(0, 1, 2); }"
    assert launch('run("fast", 8);', before=run).grid == "8"


def test_the_users_numbers_replace_the_programs() -> None:
    found = launch(WHOLE, given={"n": 1000})
    assert (found.grid, found.arguments["a"], found.arguments["n"]) == ("4", "f32[1000]:random", "1000")
    run = "void run(float* d, int m) { k<<<m / 64, 64>>>(d, 1, m); }"
    body = "int size = atoi(argv[1]); float* d; cudaMalloc(&d, size * 4); run(d, size);"
    assert launch(body, before=run).open.keys() == {"grid", "a", "n"}
    found = launch(body, before=run, given={"n": 640})
    assert (found.grid, found.arguments["a"]) == ("10", "f32[640]:random")


def test_macros_that_the_user_defines() -> None:
    before = "#ifndef N\n#define N 64\n#endif\n#ifdef WIDE\n#define B 256\n#else\n#define B 32\n#endif"
    body = "k<<<N, B>>>(p, 1, N);"
    assert [(f.grid, f.block) for f in launches(body, before=before)] == [("64", "32")]
    assert [(f.grid, f.block) for f in launches(body, before=before, defines={"N": "8", "WIDE": ""})] == [("8", "256")]


@pytest.mark.parametrize(
    ("body", "argument", "value"),
    [
        ("float* d; cudaMallocManaged(&d, 400); k<<<1, 1>>>(d, 1, 2);", ("float", 8, True), "f32[100]:random"),
        ("float* d; cudaMalloc(&d, 400); cudaMemset(d, 0, 400); k<<<1, 1>>>(d, 1, 2);", FLOATS, "f32[100]"),
        ("float* d; cudaMalloc(&d, 400); k<<<1, 1>>>(d + 10, 1, 2);", FLOATS, "f32[90]:random"),
        ("float* d; cudaMalloc(&d, 400); k<<<1, 1>>>(&d[10], 1, 2);", FLOATS, "f32[90]:random"),
        ("float* d; cudaMalloc(&d, 400); float* e = d; k<<<1, 1>>>(e, 1, 2);", FLOATS, "f32[100]:random"),
        ("void* d; cudaMalloc(&d, 400); k<<<1, 1>>>((float*)d, 1, 2);", FLOATS, "f32[100]:random"),
        ("CHECK(cudaMalloc(&d, 400)); k<<<1, 1>>>(d, 1, 2);", ("double", 8, True), "f64[50]:random"),
        ("CHECK(cudaMalloc(&d, 400)); k<<<1, 1>>>(d, 1, 2);", ("float4", 8, True), "f32[100]:random"),
        ("CHECK(cudaMalloc(&d, 400)); k<<<1, 1>>>(d, 1, 2);", ("Node", 8, True), "u8[400]"),
        ("s.n = 50; cudaMalloc(&s.d, s.n * sizeof(int)); k<<<1, 1>>>(s.d, 1, 2);", ("int", 8, True), "i32[50]:random"),
        ("thrust::device_vector<float> v(64); k<<<1, 1>>>(thrust::raw_pointer_cast(v.data()), 1, 2);", FLOATS,
         "f32[64]:random"),
        ("k<<<1, 1>>>(nullptr, 1, 2);", FLOATS, "null"),
        ("float* d; cudaMalloc(&d, size()); k<<<1, 1>>>(d, 1, 2);", FLOATS, None),
        ("k<<<1, 1>>>(7 * 3, 1, 2);", INT, "21"),
        ("k<<<1, 1>>>(1 / 2, 1, 2);", REAL, "0"),
        ("k<<<1, 1>>>(1 / 2.0f, 1, 2);", REAL, "0.5"),
        ("double x = 1; k<<<1, 1>>>(x / 4, 1, 2);", ("double", 8, False), "0.25"),
        ("int x = 7.9; k<<<1, 1>>>(x, 1, 2);", INT, "7"),
        ("k<<<1, 1>>>(make(), 1, 2);", ("Point", 12, False), None),
    ],
)  # fmt: skip
def test_arguments(body: str, argument: tuple[str, int, bool], value: str | None) -> None:
    found = launch(body, kernel(a=argument, f=REAL, n=INT))
    assert found.arguments.get("a") == value
    assert ("a" in found.open) == (value is None)


@pytest.mark.parametrize("call", [
    "cudaLaunchKernel((void*)k, dim3(4, 2), dim3(64), args, 128, 0)",
    "cudaLaunchCooperativeKernel((const void*)k, dim3(4, 2), 64, args, 128)",
    "cudaLaunchKernelEx(&c, k, d, f, n)",
    "hipLaunchKernelGGL(k, dim3(4, 2), 64, 128, 0, d, f, n)",
    "hipLaunchKernelGGL(HIP_KERNEL_NAME(k<float, 3>), dim3(4, 2), 64, 128, 0, d, f, n)",
])  # fmt: skip
def test_other_ways_to_launch(call: str) -> None:
    body = """float f = 2; int n = 9; float* d; cudaMalloc(&d, 64);
        cudaLaunchConfig_t c = {0}; c.gridDim = dim3(4, 2); c.blockDim = 64; c.dynamicSmemBytes = 128;
        void* args[] = {(void*)&d, &f, &n};"""
    found = launch(f"{body} {call};")
    assert (found.grid, found.block, found.shared) == ("4,2", "64", 128)
    assert found.arguments == {"a": "f32[16]:random", "f": "2.0", "n": "9"}


def test_launches_that_are_not_of_this_kernel_or_not_reached() -> None:
    body = "other<<<1, 2>>>(); mask<<<1, 3>>>(); // k<<<1, 4>>>();\n if (argc > 5) { k<<<1, 5>>>(p, 1, 2); }"
    assert [found.block for found in launches(body + " k<<<1, 6>>>(p, 1, 2);")] == ["6"]
    assert [found.block for found in launches(body)] == ["5"], "better than none"
    assert launches("other<<<1, 2>>>();") == ()


def test_instances_of_a_template() -> None:
    body = "k<4><<<1, 4>>>(p, 1, 2); k<8><<<1, 8>>>(p, 1, 2); k<T><<<1, 9>>>(p, 1, 2);"
    of = kernel("ns::k<8>", a=FLOATS, f=REAL, n=INT)
    assert [found.block for found in launches(body, of)] == ["8", "9"]


def test_a_number_is_converted_to_the_parameters_type() -> None:
    found = launch("k<<<1, 32>>>(0xDEADBEEF, 300, -1);", kernel(a=INT, b=("signed char", 1, False), c=INT))
    assert found.arguments == {"a": str(0xDEADBEEF - (1 << 32)), "b": "44", "c": "-1"}


def test_each_instance_has_the_numbers_and_types_of_its_own() -> None:
    """A host template is called several times; a launch in it takes what the kernel's instance says."""
    before = (
        "template <typename T, int N> void go() {\n  const int tile = 2 * N;\n  T* p;\n"
        "  cudaMalloc(&p, tile * sizeof(T));\n  k<T, N><<<4, N>>>(p, 1.0f, tile);\n}"
    )
    body = "go<float, 64>(); go<double, 128>();"
    for type_, number, dtype in (("float", 64, "f32"), ("double", 128, "f64")):
        of = kernel(f"k<{type_}, {number}>", a=(type_, 8, True), f=REAL, n=INT)
        found = launch(body, of, before)
        assert (found.block, found.arguments["n"]) == (str(number), str(2 * number))
        assert found.arguments["a"] == f"{dtype}[{2 * number}]:random"


def test_the_launch_of_the_same_alias_comes_first() -> None:
    body = "k<One><<<1, 32>>>(p, 1, 2);\nk<Two><<<2, 64>>>(p, 1, 2);\nk<T><<<3, 96>>>(p, 1, 2);"
    for name, number in (("k<One>", 1), ("k<Two>", 2)):
        assert launches(body, kernel(name, a=FLOATS, f=REAL, n=INT))[0].grid == str(number), "its own first"


def test_headers_count_and_are_named(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#pragma once\n#define N 320\n")
    (tmp_path / "run.h").write_text(
        '#include "sizes.h"\ninline void run(float* d) {\n  k<<<N / 32, 32>>>(d, 1, N);\n}\n'
    )
    text = '#include "run.h"\nint main() { float* d; cudaMalloc(&d, 4 * N); run(d); }\n'
    (found,) = host_launches(gather(text, "m.cu", tmp_path, []), SCALE, {}, {})
    assert (found.grid, found.place) == ("10", f"{tmp_path}/run.h:3")
    assert found.arguments["a"] == "f32[320]:random"


# ---- Expressions

numbers = st.integers(-(2**20), 2**20)
signs = st.sampled_from(["+", "-", "*", "&", "|", "^"])


@given(numbers, signs, numbers, signs, numbers)
def test_whole_numbers_are_computed_as_python_does_where_both_agree(a: int, one: str, b: int, two: str, c: int) -> None:
    for text in (f"({a} {one} ({b})) {two} ({c})", f"({a}) {one} (({b}) {two} ({c}))"):
        assert evaluate(text, Scope()) == eval(text)


@given(numbers, numbers.filter(bool))
def test_division_rounds_towards_zero(a: int, b: int) -> None:
    assert evaluate("a / b", Scope({"a": a, "b": b})) == math.trunc(a / b)
    assert evaluate("a / b * b + a % b", Scope({"a": a, "b": b})) == a


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4 << 1", 28), ("1 << 2 + 3", 32), ("a ? b : c", 2), ("0 ? b : a ? c : 9", 3), ("-a + !0", 0),
        ("0x10u + 010 + 1e2", 124.0), ("(float)a / 2", 0.5), ("(a) / 2", 0), ("sizeof(float4) * sizeof(double *)", 128),
        ("sizeof(unsigned long long)", 8), ("p->n + q.m", 30), ("max(a, min(b, c)) + std::max<int>(4, 5)", 7),
        ("unknown && 0", 0), ("1 || unknown", 1), ("unknown && 1", None), ("unknown ? 1 : 2", None), ("1 +", None),
        ("f(1)", None), ("x[2]", None), ("g.x * g.y", 12), ("~0", -1), ("1 << 80", None), ("uint(3.7)", 3),
        ("a, b", None),        ("", None), ("powf(2, 3) + log2(8.0)", 11.0), ("5 == 5 && 3 != 4", 1), ("1 / 0", None),
    ],
)  # fmt: skip
def test_expressions(text: str, value: float | None) -> None:
    scope = Scope({"a": 1, "b": 2, "c": 3, "p.n": 10, "q.m": 20, "g": (3, 4, 5), "unknown": None})
    assert evaluate(text, scope) == value


@given(st.text(max_size=60))
def test_any_text_has_a_value_or_none(text: str) -> None:
    evaluate(text, Scope({"a": 1}, {"a": "b", "b": "a"}))
    assert "".join(split_commas(text)).count(",") <= text.count(",")


def test_launches_of_an_instance_by_the_meaning_of_its_types() -> None:
    before = "typedef unsigned char byte_t;\nusing real = double;\n"
    body = "scale<real><<<1, 32>>>(a, 1);\nscale<byte_t><<<2, 64>>>(a, 1);\nscale<uint32_t><<<3, 96>>>(a, 1);\n"
    for name, grid in (("double", "1"), ("real", "1"), ("unsigned char", "2"), ("uint8_t", "2"), ("unsigned", "3")):
        (found,) = launches(body, kernel(f"scale<{name}>", a=FLOATS, f=REAL), before)
        assert (name, found.grid) == (name, grid)
