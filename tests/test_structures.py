"""Structures by value: layouts are the compiler's, fields come out where the kernel reads them, and what does not fit
is refused in one line."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drywarp
from drywarp.cli.main import run
from drywarp.errors import DrywarpError, InputFileError
from drywarp.execution.emulator import emulate
from drywarp.execution.emulator.run import Emulation
from drywarp.frontends.binary.signatures import layouts_in
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda, layouts_of, machine_code_of
from drywarp.frontends.load import load
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.arguments import make_launch, signature
from drywarp.kernel.launch.launch import Buffer, Scalar, Structure, buffers_in
from drywarp.kernel.launch.layout import Layouts, tables_in
from drywarp.kernel.launch.structures import with_layouts

PARTICLES = Path(__file__).parents[1] / "examples" / "structures" / "particles.cu"
ONE = (1, 1, 1)


def built(source: str, arch: str = "sm_80", entry: str | None = None) -> Kernel:
    """A kernel with the layouts of its structures."""
    kernel = compile_cuda(source, arch=arch, entry=entry)
    return with_layouts(kernel, layouts_of(source, arch, entry, CudaOptions(), kernel))


def ran(kernel: Kernel, **arguments: Any) -> Emulation:
    return emulate(kernel, make_launch(kernel, ONE, (32, 1, 1), arguments), blocks="all")


def message(kernel: Kernel, constants: dict[str, Any] | None = None, **arguments: Any) -> str:
    with pytest.raises(DrywarpError) as raised:
        make_launch(kernel, ONE, ONE, arguments, constants=constants)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# The law: a structure's bytes are those of NumPy's structured type with C's alignment.

NUMBERS = {
    "bool": "?", "signed char": "i1", "unsigned char": "u1", "short": "i2", "unsigned short": "u2", "int": "i4",
    "unsigned": "u4", "long long": "i8", "unsigned long": "u8", "float": "f4", "double": "f8",
}  # fmt: skip
FIELDS = st.recursive(
    st.sampled_from(sorted(NUMBERS)),
    lambda inner: st.lists(st.tuples(inner, st.sampled_from([(), (), (3,), (2, 2)])), min_size=1, max_size=4),
    max_leaves=8,
).filter(lambda made: isinstance(made, list))


def in_c(fields: Any, name: str, before: list[str]) -> str:
    """Write the structure's declaration, after those of the structures in it; returns its name."""
    lines = []
    for n, (type_, extents) in enumerate(fields):
        inner = type_ if isinstance(type_, str) else in_c(type_, f"{name}{n}_", before)
        lines.append(f"{inner} m{n}{''.join(f'[{extent}]' for extent in extents)};")
    before.append(f"struct {name} {{ {' '.join(lines)} }};")
    return name


def in_numpy(fields: Any) -> np.dtype[Any]:
    held = [
        (f"m{n}", NUMBERS[type_] if isinstance(type_, str) else in_numpy(type_), extents)
        for n, (type_, extents) in enumerate(fields)
    ]
    return np.dtype(held, align=True)


def filled(dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
    """A value for a type, as a user states it in Python: dicts, lists and numbers."""
    if dtype.subdtype is not None:
        element, extents = dtype.subdtype
        inner = element if len(extents) == 1 else np.dtype((element, extents[1:]))
        return [filled(inner, rng) for _ in range(extents[0])]
    if dtype.names is not None:
        return {name: filled(dtype[name], rng) for name in dtype.names}
    if dtype.kind == "f":
        return float(np.float32(rng.normal()))
    return bool(rng.integers(2)) if dtype.kind == "b" else int(rng.integers(np.iinfo(dtype).max, endpoint=True))


def store(array: Any, value: Any) -> None:
    """The same value, written by NumPy."""
    for name, one in value.items():
        if isinstance(one, dict):
            store(array[name], one)
        elif isinstance(one, list):
            for index, element in np.ndenumerate(np.empty(array[name].shape)):
                del element
                held: Any = one
                for step in index:
                    held = held[step]
                store(array[name][index], held) if isinstance(held, dict) else array[name].__setitem__(index, held)
        else:
            array[name] = one


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(fields=FIELDS, seed=st.integers(0, 1 << 30))
def test_every_field_arrives_where_the_kernel_reads_it(fields: Any, seed: int) -> None:
    before: list[str] = []
    name = in_c(fields, "P", before)
    kernel = built("\n".join(before) + f"\n__global__ void k(const {name} p, {name}* out) {{ *out = p; }}")
    dtype = in_numpy(fields)
    value = filled(dtype, np.random.default_rng(seed))
    expected = np.zeros((), dtype)
    store(expected, value)
    layout = kernel.parameters[0].layout
    assert layout is not None
    assert layout.size == dtype.itemsize
    assert dtype.fields is not None
    assert {one.name: one.offset for one in layout.fields} == {name: at[1] for name, at in dtype.fields.items()}
    launch = make_launch(kernel, ONE, ONE, {"p": value, "out": np.zeros(dtype.itemsize, np.uint8)})
    assert isinstance(launch.arguments[0], Structure)
    assert launch.arguments[0].zeroed == ()
    assert emulate(kernel, launch, blocks="all").buffer("out").tobytes() == expected.tobytes()
    # The text of the argument gives the same bytes again.
    again = make_launch(kernel, ONE, ONE, {"p": expected[()], "out": "u8[4096]"}).arguments[0]
    assert again.data == launch.arguments[0].data  # type: ignore[union-attr]


# Templates, pointers, enumerations, unions, bit-fields, vectors, base classes.

SOURCE = """
#include <cuda_fp16.h>
namespace ns { enum class Mode : unsigned char { Off = 1, On = 200 }; }
template <typename T> struct View { T* data; int n; float s[3]; };
struct Base { int kind; };
template <typename T> struct Params : Base {
  View<T> v; const float* second; ns::Mode mode; union { int whole; float real; };
  unsigned low : 3; int high : 5; float4 color; half h; dim3 extent; short grid[2][2]; char name[4];
  struct { int u; } inner; static const int ignored = 4; int (*function)(int);
};
__constant__ struct { float dt; int steps; } c = {0.5f, 7};
template <typename T> __global__ void k(const Params<T> p, float* out, ns::Mode mode, int n) {
  out[0] = p.v.data[1] + p.v.n + p.v.s[1]; out[1] = (int)p.mode; out[2] = p.real; out[3] = p.low * 100 + p.high;
  out[4] = p.color.z; out[5] = (float)p.h; out[6] = p.extent.x + 10 * p.extent.y; out[7] = p.grid[1][0];
  out[8] = p.name[1]; out[9] = p.inner.u; out[10] = p.kind; out[11] = p.second ? p.second[0] : -1;
  out[12] = c.dt; out[13] = c.steps; out[14] = (int)mode;
}
"""


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return built(SOURCE, entry="k<float>")


REST: dict[str, Any] = {"out": "f32[16]", "mode": "On", "n": 1}


def test_fields_of_all_kinds(kernel: Kernel) -> None:
    given = {
        "p": "{v={data=f32[4]:iota, n=10, 's[1]'=0.25}, mode=ns::Mode::On, real=2.5, low=5, high=-3}",
        "p.color": "1,2,3,4",
        "p.h": 0.5,
        "p.extent": "3,4",
        "p.grid": [[1, 2], [-3, 4]],
        "p.name": "ab",
        "p.inner.u": "0x10",
        "p.kind": 6,
        "p.second": np.array([9.0], np.float32),
    }
    launch = make_launch(kernel, ONE, ONE, {**given, **REST}, constants={"c.dt": 0.125})
    out = emulate(kernel, launch, blocks="all").buffer("out")
    assert out[:15].tolist() == [11.25, 200, 2.5, 497, 3, 0.5, 43, -3, ord("b"), 16, 6, 9, 0.125, 7, 200]
    made = launch.arguments[0]
    assert isinstance(made, Structure)
    assert made.zeroed == ("p.v.s[0]", "p.v.s[2]", "p.function")
    assert [b.count for b in buffers_in(made)] == [4, 1]
    assert "v.data=f32[4]:iota" in made.text
    assert launch.arguments[2] == Scalar(b"\xc8", "On")


def test_texts_tables_and_python_mean_the_same(kernel: Kernel) -> None:
    ways: list[dict[str, Any]] = [
        {"p.v.n": 3, "p.v.s": "1,2,3", "p.second": "f32[2,2]:random(0,1)"},
        {"p": "{v.n=3, v.s=[1, 2, 3], second=f32[2,2]:random(0,1)}"},
        {"p": '{"v": {"n": 3, "s": [1, 2, 3]}, "second": "f32[2,2]:random(0,1)"}'},
        {"p": {"v": {"n": 3, "s": np.array([1, 2, 3])}, "second": "f32[2,2]:random(0,1)"}},
        {"arg0.v": {"n": np.int64(3), "s": (1, 2, 3)}, "arg0.second": Buffer("f32", (2, 2), "random(0,1)")},
        {"p": "{v.n=4, v.s=[1, 2, 3]}", "p.v.n": 3, "p.second": "f32[2,2]:random(0,1)"},
    ]
    made = [make_launch(kernel, ONE, ONE, {**way, **REST}).arguments[0] for way in ways]
    assert all(isinstance(one, Structure) for one in made)
    assert len({(one.data, one.parts[0][2].text, one.zeroed) for one in made}) == 1  # type: ignore[union-attr]


def test_a_structure_is_given_whole_as_before(kernel: Kernel) -> None:
    size = kernel.parameters[0].size
    assert make_launch(kernel, ONE, ONE, {"p": bytes(size), **REST}).arguments[0] == Scalar(
        bytes(size), f"{size} bytes"
    )
    assert isinstance(make_launch(kernel, ONE, ONE, {"p": f"u8[{size}]", **REST}).arguments[0], Scalar)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"p.colour": 1},
            "p (Params<float>) has no field 'colour'; did you mean color? it has: int kind, View<float> v",
        ),
        ({"p.v.n.x": 1}, "argument p: p.v.n (int) is not a structure, so it has no field 'x'"),
        ({"n.x": 1}, "argument n: n (int) is not a structure"),
        ({"q.x": 1}, "no parameter named 'q'; it takes: Params<float> p {int kind, float* v.data"),
        ({"p.v.s": "1,2,3,4"}, "argument p.v.s (float[3]): got 4 elements, expected 3, as in [1,1,1]"),
        ({"p.v.s[3]": 1}, "p.v.s (float[3]) has no element [3]; expected 0 to 2"),
        ({"p.v[0]": 1}, "p.v (View<float>) is not an array"),
        ({"p.v.s": "f32[3]:random"}, "expected a list of numbers, an array or @file.npy: not a buffer"),
        ({"p.v.n": 1.5}, "argument p.v.n (int): got 1.5, expected a whole number"),
        ({"p.v.n": "f32[4]"}, "argument p.v.n (int): got a buffer, expected a value, as in p.v.n=1"),
        ({"p.v.data": 4}, "argument p.v.data (float*): got 4, expected a buffer or null"),
        (
            {"p.v.data": "f16[4]:ones"},
            "argument p.v.data (float*): got f16[…], whose elements have 2 bytes, expected 4",
        ),
        ({"p.mode": "Of"}, "argument p.mode (ns::Mode): no enumerator 'Of'; did you mean Off? it has: Off, On"),
        ({"p.mode": 1.5}, "got 1.5, expected a whole number or an enumerator's name"),
        ({"mode": "Onn"}, "argument mode (ns::Mode): no enumerator 'Onn'; did you mean On?"),
        ({"p": "{whole=1, real=2.0}"}, "argument p.real (float): overlaps p.whole, another member of a union"),
        ({"p.low": 8}, "argument p.low (unsigned int): got 8, expected a whole number from 0 to 7 for its 3 bits"),
        ({"p.high": -17}, "from -16 to 15 for its 5 bits"),
        ({"p.name": "abcde"}, "argument p.name (char[4]): got 5 characters, expected at most 4"),
        ({"p.v": 4}, "argument p.v (View<float>): got 4, expected its fields, as in {data=1}, or its bytes"),
        ({"p": "{v.n=}"}, "invalid value; expected fields, as in {n=1024, s=[0, 2.5, 0]}"),
        ({"p.": 1}, "'.': expected a field's path, as in v.data or s[1]"),
        ({"p.color": "1,2"}, "argument p.color (float4): got 2 numbers, expected 4"),
    ],
)
def test_what_does_not_fit_is_refused(kernel: Kernel, given: dict[str, Any], expected: str) -> None:
    assert expected in message(kernel, **{**REST, **given})


def test_fields_of_variables(kernel: Kernel) -> None:
    assert "no field 'd'; did you mean dt?" in message(kernel, {"c.d": 1}, p={}, **REST)
    launch = make_launch(kernel, ONE, ONE, {"p": {}, **REST}, constants={"c": {"steps": 3}})
    assert launch.constants["c"] == Scalar(np.float32(0.5).tobytes() + np.int32(3).tobytes(), "{steps=3}")


def test_layouts_that_contradict_the_machine_code_are_refused(kernel: Kernel) -> None:
    described = tuple((p.name, p.layout) for p in kernel.parameters if p.layout)
    with pytest.raises(DrywarpError, match="lists 3 parameters, its machine code 4"):
        with_layouts(kernel, Layouts(described[:3]))
    with pytest.raises(DrywarpError, match=r"argument p: its layout \(float\*\) has 8 bytes, the machine code's"):
        with_layouts(kernel, Layouts((described[1], *described[1:])))
    plain = compile_cuda(SOURCE, arch="sm_80", entry="k<float>")
    assert "the offsets of its fields are not known" in message(plain, **{**REST, "mode": 1, "p.v.n": 1})


def test_fields_without_quotation_marks() -> None:
    assert tables_in("{a=f32[2,3]:random(0,1), b={c=null}, d='x=y', e=true, f=tensormap(box=8x8):g.h}", "") == {
        "a": "f32[2,3]:random(0,1)", "b": {"c": "null"}, "d": "x=y", "e": True, "f": "tensormap(box=8x8):g.h",
    }  # fmt: skip


# Tensor maps in structures and behind pointers.

MAPS = """
#include <cuda.h>
struct alignas(64) Globals { CUtensorMap in; float* out; int rows; CUtensorMap rest[2]; };
__device__ unsigned shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void copy(const CUtensorMap* map, float* out, int n) {
  __shared__ alignas(128) float tile[8 * 32];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&bar)));
    asm volatile("fence.proxy.async.shared::cta;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&bar)), "r"(8 * 32 * 4));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];"
        ::"r"(shared(tile)), "l"(map), "r"(0), "r"(shared(&bar)) : "memory");
  }
  __syncthreads();
  asm volatile(
      "{ .reg .pred d;\\n again: mbarrier.try_wait.parity.shared::cta.b64 d, [%0], 0;\\n @!d bra again;\\n}"
      ::"r"(shared(&bar)) : "memory");
  for (int i = threadIdx.x; i < n * 32; i += 32) out[i] = tile[i];
}
__global__ void by_field(const __grid_constant__ Globals g) { copy(&g.in, g.out, g.rows); }
__global__ void by_element(const __grid_constant__ Globals g) { copy(&g.rest[1], g.out, g.rows); }
__global__ void by_pointer(const CUtensorMap* maps, float* out, int rows) { copy(maps + 1, out, rows); }
"""


def test_tensor_maps_of_fields_and_pointers() -> None:
    tensor = np.arange(256, dtype=np.float32).reshape(8, 32)
    made = drywarp.tensor_map(tensor, box=(8, 32))
    kernel = built(MAPS, "sm_90a", "by_field")
    found = ran(kernel, g={"in": made, "out": "f32[256]", "rows": 8}).buffer("g.out")
    np.testing.assert_array_equal(found, tensor.reshape(-1))
    kernel = built(MAPS, "sm_90a", "by_element")
    arguments = {"g.rest[1]": "tensormap(box=8x32):g.out", "g.out": np.ones((8, 32), np.float32), "g.rows": 4}
    assert (ran(kernel, **arguments).buffer("g.out") == 1).all()
    pointer = compile_cuda(MAPS, arch="sm_90a", entry="by_pointer")
    listed = ["tensormap(box=8x32):f32[8,32]", made]
    np.testing.assert_array_equal(ran(pointer, maps=listed, out="f32[8,32]", rows=8).buffer("out"), tensor)
    with pytest.raises(DrywarpError, match=r"maps\[0\]: 'x' is not an argument with a buffer"):
        ran(pointer, maps="tensormap(box=8x32):x", out="f32[8,32]", rows=8)


# From the command line, in answers, and in machine code.


def test_the_example_is_what_numpy_computes() -> None:
    loaded = load(PARTICLES, arch="sm_80").with_fields({"p.dt": 1}, {})
    assert isinstance(loaded.kernel, Kernel)
    rng = np.random.default_rng(5)
    x, v = rng.random((2, 300, 3), np.float32)
    gravity, dt = np.array([0, -9.75, 0.5], np.float32), np.float32(0.125)
    given = {"particles": {"position": x, "velocity": v, "count": 300}, "gravity": gravity, "dt": dt, "border": "Open"}
    launch = make_launch(loaded.kernel, (2, 1, 1), (256, 1, 1), {"p": given})
    made = emulate(loaded.kernel, launch, blocks="all")
    faster = (v + gravity * dt.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(made.buffer("p.particles.velocity"), faster)
    moved = (x + faster * dt.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(made.buffer("p.particles.position"), moved)


def test_grids_answers_and_notes_know_fields() -> None:
    fields = {"p": {"particles": {"count": 512, "position": "f32[1536]", "velocity": "f32[1536]"}}}
    options: dict[str, Any] = {"gpu": "a100", "grid": "cdiv(p.particles.count,256)", "block": 256}
    source = PARTICLES.read_text(encoding="utf-8").replace("// drywarp:", "//")
    for static in (False, True):
        found = drywarp.analyze(source, args=fields, static=static, **options)
        assert found.grid == (2, 1, 1)
        assert "p: 3 fields not given, assumed to be 0 or null: p.gravity, p.dt, p.border" in found.notes
        assert found.to_dict()["launch"]["arguments"]["p"].startswith(
            "{particles.count=512, particles.position=f32[1536]:zeros"
        )
    emulated = drywarp.analyze(PARTICLES, gpu="a100")
    assert not any("not given" in note for note in emulated.notes)
    followed = drywarp.analyze(PARTICLES, gpu="a100", static=True)
    assert followed.memory.global_load_sectors == pytest.approx(emulated.memory.global_load_sectors, rel=0.01)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = tmp_path / "values.toml"
    values.write_text("[p]\ndt = 0.5\nparticles = {count = 256, position = 'f32[768]', velocity = 'f32[768]'}\n")
    bare = tmp_path / "bare.cu"
    bare.write_text(PARTICLES.read_text(encoding="utf-8").replace("// drywarp:", "//"))
    shape = ["--grid", "1", "--block", "256"]
    assert run(["analyze", str(bare), *shape, "--arg-file", str(values), "--arg", "p.gravity[1]=-1", "--json"]) == 0
    assert "gravity[1]=-1" in capsys.readouterr().out
    assert run(["analyze", str(bare), *shape, "--arg", "p.gravty=1"]) == 2
    assert "did you mean gravity?" in capsys.readouterr().err
    assert run(["analyze", str(bare), *shape]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "no value for p (Parameters: float* particles.position," in told
    assert "--arg 'p={particles.position=f32[1048576]:random, " in told
    assert "border=Open}'" in told
    assert run(["list", str(bare)]) == 0
    assert "Parameters p {float* particles.position," in " ".join(capsys.readouterr().out.split())


def test_the_command_that_a_message_shows_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = tmp_path / "bare.cu"
    bare.write_text(
        "struct P { float* x; int n; };\n__global__ void k(P p) { if (threadIdx.x < p.n) p.x[threadIdx.x] = 1; }"
    )
    assert run(["analyze", str(bare)]) == 2
    words = capsys.readouterr().err.partition("for example: drywarp ")[2].partition(" (values to")[0]
    assert run(shlex.split(words)) == 0


def test_machine_code_with_debug_information(tmp_path: Path) -> None:
    options = CudaOptions(compiler_options=("-G",))
    made = machine_code_of(SOURCE, "sm_80", "k<float>", options)
    path = tmp_path / "debug.cubin"
    path.write_bytes(made.compiled.cubin)
    loaded = load(path, arch="sm_80", entry="k").kernel
    assert isinstance(loaded, Kernel)
    assert signature(loaded).startswith("Params<float> p {int kind, float* v.data")
    made_of = make_launch(loaded, ONE, ONE, {"p": {"v": {"data": "f32[4]:iota", "n": 3}}, **REST}).arguments[0]
    assert isinstance(made_of, Structure)
    assert [(at, path) for at, path, _ in made_of.parts] == [(8, "p.v.data")]
    assert made_of.data[16:20] == b"\3\0\0\0"
    without = machine_code_of(SOURCE, "sm_80", "k<float>", CudaOptions()).compiled.cubin
    assert layouts_in(without, made.symbol, "x") is None


@settings(max_examples=60, deadline=None)
@given(at=st.floats(0, 1), byte=st.integers(0, 255))
def test_damaged_debug_information_is_read_or_refused(at: float, byte: int) -> None:
    made = machine_code_of(SOURCE, "sm_80", "k<float>", CudaOptions(compiler_options=("-G",)))
    cubin = bytearray(made.compiled.cubin)
    start = cubin.index(b"Params<float>") - 400
    cubin[start + int(at * 1600)] = byte
    with contextlib.suppress(InputFileError):
        layouts_in(bytes(cubin), made.symbol, "x")


def test_launches_files_take_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launches = tmp_path / "launches.toml"
    particles = "{ particles = { count = 256, position = 'f32[768]', velocity = 'f32[768]' } }"
    launches.write_text(f"[[launch]]\ngrid = 1\nblock = 256\nargs = {{ p = {particles} }}\n")
    assert run(["analyze", str(PARTICLES), "--launches", str(launches)]) == 0
    assert "step" in capsys.readouterr().out
