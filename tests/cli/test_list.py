"""`drywarp list`, and launches that a file's host code states, through the command line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from drywarp.frontends.amd.metadata import find_clang
from drywarp.frontends.cuda.nvrtc import compile_program
from tests.effort import first

from .command import complaint, run

PROGRAM = """#include <cstdio>
#define TILE 16
__global__ void scale(float* a, float f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= f;
}
template <int N> __global__ void add(const int* from, int* to) {
  __shared__ int held[TILE];
  held[threadIdx.x] = from[blockIdx.x * TILE + threadIdx.x] + N;
  __syncthreads();
  to[blockIdx.x * TILE + threadIdx.x] = held[TILE - 1 - threadIdx.x];
}
template <typename T> __global__ void unused(T* a) { *a = 1; }
__global__ void rows(float* a, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) a[y * width + x] += 1;
}
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 2048;
  float* d_a;
  int *from, *to;
  cudaMalloc((void**)&d_a, n * sizeof(float));
  cudaMalloc(&from, 64 * TILE * sizeof(int));
  cudaMalloc(&to, 64 * TILE * sizeof(int));
  scale<<<(n + 255) / 256, 256>>>(d_a, 2.0f, n);
  scale<<<1, 32>>>(d_a, 3.0f, 32);
  add<7><<<64, TILE>>>(from, to);
  rows<<<width(), 8>>>(d_a, 4, 4);
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.cu").write_text(PROGRAM)
    return tmp_path


def listed(file: str, folder: Path, *more: str) -> dict[str, dict[str, Any]]:
    result = run("list", file, "--json", *more, cwd=folder)
    assert result.returncode == 0, result.stderr
    return {one["name"]: one for one in json.loads(result.stdout)["kernels"]}


def analysed(folder: Path, *arguments: str) -> dict[str, Any]:
    result = run("analyze", *arguments, "--json", cwd=folder)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def test_every_kernel_with_its_resources_and_why_one_has_none(folder: Path) -> None:
    found = listed("program.cu", folder)
    assert found.keys() == {"scale", "add<7>", "rows", "unused<…>"}
    assert (found["scale"]["signature"], found["scale"]["shared_bytes"]) == ("float* a, float f, int n", 0)
    assert found["add<7>"]["shared_bytes"] == 64
    assert all(one["registers"] > 4 for name, one in found.items() if name != "unused<…>")
    assert found["unused<…>"]["command"] is found["unused<…>"]["registers"] is None
    assert found["unused<…>"]["reason"].startswith("a template: no launch")
    assert [one["launch"] for one in found.values()].count("program.cu:28") == 1
    text = run("list", "program.cu", cwd=folder).stdout
    assert text.startswith("program.cu: 4 kernels for a100 (sm_80)\n\nkernel ")
    assert "placeholders: grid\n" in text


@pytest.mark.parametrize("name", first(["add<7>", "scale", "rows"]))
def test_the_commands_run(name: str, folder: Path) -> None:
    command = shlex.split(listed("program.cu", folder, "--entry", name)[name]["command"])
    assert command[:2] == ["drywarp", "analyze"]
    found = analysed(folder, *command[2:])
    assert found["kernel"] == name
    assert not found["notes"]


def test_compiler_options_are_those_of_the_commands(folder: Path) -> None:
    """Registers are of the build that the options ask for, and the commands repeat them."""
    plain = listed("program.cu", folder)["scale"]
    capped = listed("program.cu", folder, "--use_fast_math", "--compiler-option=--fmad=false", "--max-registers", "16")
    words = shlex.split(capped["scale"]["command"])
    assert {"--compiler-option=--fmad=false", "--compiler-option=--use_fast_math", "--max-registers"} <= {*words}
    assert "--compiler-option" not in plain["command"]
    assert run(*words[1:], cwd=folder).returncode == 0
    assert "unknown (did you mean" in complaint(
        run("list", "program.cu", "--compiler-option=-use_fast_mth", cwd=folder)
    )


def test_instances_that_a_source_names_itself_have_names_that_entry_takes(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(
        "template <typename T, int N, bool B> __global__ void put(T* p, T x) { p[threadIdx.x] = B ? x : (T)N; }\n"
        "template __global__ void put<float, 4, true>(float*, float);\n"
        "template __global__ void put<short, 2, false>(short*, short);\n"
    )
    (tmp_path / "one.cu").write_text(
        "template <typename T> __global__ void one(T* p) { *p = 1; }\ntemplate __global__ void one<int>(int*);\n"
    )
    (single,) = listed("one.cu", tmp_path).values()
    assert single["name"] == "one<int>"
    assert run(*shlex.split(single["command"])[1:], cwd=tmp_path).returncode == 0
    kernels = listed("k.cu", tmp_path)
    assert {*kernels} == {"put<float, 4, true>", "put<short, 2, false>"}
    for kernel in kernels.values():
        assert run(*shlex.split(kernel["command"])[1:], cwd=tmp_path).returncode == 0


def test_placeholders_of_the_grid_fit_a_block_that_is_known(tmp_path: Path) -> None:
    """As many threads as the buffers that stand for others have elements, so that no command runs out of bounds."""
    (tmp_path / "k.cu").write_text(
        "__global__ void whole(float* a) { a[blockIdx.x * blockDim.x + threadIdx.x] += 1; }\n"
        "void go(float* a, int blocks) { whole<<<blocks, 1024>>>(a); }\n"
    )
    kernel = listed("k.cu", tmp_path)["whole"]
    text = (tmp_path / "k.cu").read_text().replace("int blocks) {", "int blocks) { cudaMalloc(&a, 40000);")
    (tmp_path / "known.cu").write_text(text)
    known = listed("known.cu", tmp_path)["whole"]["command"]
    assert "--grid 9 --block 1024 --arg 'a=f32[10000]:random'" in known
    assert run(*shlex.split(known)[1:], cwd=tmp_path).returncode == 0
    assert "--grid 1024 --block 1024 --arg 'a=f32[1048576]:random'" in kernel["command"]
    assert run(*shlex.split(kernel["command"])[1:], cwd=tmp_path).returncode == 0


def test_many_kernels_take_one_short_line_each(tmp_path: Path) -> None:
    source = "template <int N, typename T> __global__ void shift(T* a) { a[threadIdx.x] += N; }\n"
    source += "".join(f"template __global__ void shift<{n}, float>(float*);\n" for n in range(20))
    source += f"__global__ void {'long_' * 20}name(float* a) {{ *a = 1; }}\n"
    (tmp_path / "k.cubin").write_bytes(compile_program(source, "k.cu", ["--gpu-architecture=sm_80"]).cubin)
    lines = run("list", "k.cubin", cwd=tmp_path).stdout.splitlines()
    rows = [line for line in lines if line.startswith(("shift<", "long_"))]
    assert len(rows) == 21
    assert max(map(len, rows)) < 120
    assert "_Z5shift" not in "\n".join(lines)
    found = listed("k.cubin", tmp_path, "--entry", "shift<3,float>")
    assert list(found) == ["shift<3, float>"]
    assert analysed(tmp_path, *shlex.split(found["shift<3, float>"]["command"])[2:])["kernel"] == "shift<3, float>"


def test_python_files_without_running_them(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(
        "import triton\nimport triton.language as tl\nfrom numba import cuda\nraise RuntimeError\n"
        "@triton.jit\ndef add(x, y, n, stride, BLOCK: tl.constexpr, EVEN: tl.constexpr = True):\n"
        "    at = x + tl.program_id(0) * stride + tl.arange(0, BLOCK)\n    value = tl.load(at, mask=at < n)\n"
        "    tl.store(y + n, value)\n"
        "@cuda.jit\ndef scale(a, by):\n    a[cuda.grid(1)] *= by\n"
        "raw = cupy.RawKernel('extern \"C\" __global__ void one(int* a) { *a = 1; }', 'one')\n"
    )
    found = listed("k.py", tmp_path)
    arguments = {name: shlex.split(one["command"])[7:] for name, one in found.items()}
    buffer, pairs = "f32[1048576]:random", ("x={}", "y={}", "n=1024", "stride=1024", "BLOCK=1024")
    assert arguments["add"] == [word for pair in pairs for word in ("--arg", pair.format(buffer))]
    assert arguments["scale"] == ["--block", "256", "--arg", f"a={buffer}", "--arg", "by=1024"]
    assert found["add"]["registers"] is None
    assert found["one"]["registers"] > 4


def test_commands_for_tuned_kernels_take_a_configuration_and_turn_conditions_on(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(
        "import triton\nimport triton.language as tl\n"
        "@triton.autotune([triton.Config({'BLOCK': b}) for b in (64, 128)], key=['n'])\n@triton.jit\n"
        "def norm(x, n, eps, N: tl.constexpr, HAS_BIAS: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr):\n"
        "    if HAS_BIAS and not CAUSAL:\n        tl.store(x + tl.arange(0, N), eps)\n"
    )
    words = shlex.split(listed("k.py", tmp_path)["norm"]["command"])[5:]
    values = ("x=f32[1048576]:random", "n=1024", "eps=1e-6", "N=1024", "HAS_BIAS=1", "CAUSAL=1")
    assert words == ["--grid", "1024", "--config", "0", *(word for one in values for word in ("--arg", one))]


def test_commands_for_triton_kernels_give_whole_numbers_for_what_addresses_are_made_of(tmp_path: Path) -> None:
    """And what a heuristic reads of its own name has to be given."""
    (tmp_path / "k.py").write_text(
        "import triton\nimport triton.language as tl\n"
        "@triton.heuristics({'BACK': lambda a: bool(a['BACK']), 'AUTO': lambda a: True})\n@triton.jit\n"
        "def gather(x, rows, o, BACK: tl.constexpr, AUTO: tl.constexpr, BLOCK: tl.constexpr):\n"
        "    at = tl.arange(0, BLOCK)\n    row = tl.load(rows + at)\n"
        "    value = tl.load(x + row * 16 + at)\n    tl.store(o + at, value)\n"
    )
    words = shlex.split(listed("k.py", tmp_path)["gather"]["command"])[7:]
    buffer = "f32[1048576]:random"
    values = (f"x={buffer}", "rows=i64[1048576]:random(0,64)", f"o={buffer}", "BACK=64", "BLOCK=64")
    assert words == [word for one in values for word in ("--arg", one)]


def test_instances_in_macros_of_several_lines(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(
        "template <class T, int N> __global__ void put(T* a) { a[threadIdx.x] = N; }\n"
        "#define GO(a) put<int, \\\n    4> \\\n  <<<1, 32>>>(a)\nvoid go(int* a) { GO(a); }\n"
    )
    assert {name.replace(" ", "") for name in listed("k.cu", tmp_path)} == {"put<int,4>"}


def test_commands_size_shared_memory_that_only_the_launch_could(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(
        "__global__ void turn(float* a) {\n  extern __shared__ float held[];\n  int i = threadIdx.x;\n"
        "  held[i] = a[i];\n  __syncthreads();\n  a[i] = held[blockDim.x - 1 - i];\n}\n"
    )
    words = shlex.split(listed("k.cu", tmp_path)["turn"]["command"])
    assert words[words.index("--shared") + 1] == "16384"
    assert run(*words[1:], cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("program.cu --entry none", "program.cu: no kernel named 'none' for a100"),
        ("program.cu --gpu papers/example", "only takes abstract workloads"),
        ("empty.cu", "empty.cu: no kernel found for a100"),
        ("empty.py", "empty.py: no kernel found for a100"),
        ("bad.py", "bad.py:1: not Python"),
        ("bad.cu", "bad.cu(1): error"),
        ("noise.bin", "noise.bin: neither text nor CUDA machine code"),
    ],
)
def test_bad_input(arguments: str, expected: str, folder: Path) -> None:
    (folder / "empty.cu").write_text("int x;\n")
    (folder / "empty.py").write_text("x = 1\n")
    (folder / "bad.py").write_text("def f(:\n")
    (folder / "bad.cu").write_text("__global__ void k() { undefined(); }\n")
    (folder / "noise.bin").write_bytes(b"\x00\x01\xff" * 40)
    assert expected in complaint(run("list", *arguments.split(), cwd=folder))


# ---- Launches from host code


def test_analyze_takes_the_files_own_launch_and_says_so(folder: Path) -> None:
    found = analysed(folder, "program.cu", "--entry", "scale")
    assert (found["launch"]["grid"], found["launch"]["block"]) == ([8, 1, 1], [256, 1, 1])
    assert found["launch"]["arguments"] == {"a": "f32[2048]:random", "f": "2.0", "n": "2048"}
    assert found["notes"] == [
        "grid 8, block 256, f=2.0, n=2048 from program.cu:25",
        "a=f32[2048]:random from program.cu:22",
        "the contents of these buffers are assumed to be random: the file's host code is not run",
        "2 launches in the file differ: using the first whose values are all known, program.cu:25",
    ]


def test_what_the_user_states_wins(folder: Path) -> None:
    found = analysed(folder, *"program.cu --entry scale --block 64 --arg n=1000 --arg f=1".split())
    assert (found["launch"]["grid"], found["launch"]["block"]) == ([4, 1, 1], [64, 1, 1])
    assert found["launch"]["arguments"] == {"a": "f32[1000]:random", "f": "1", "n": "1000"}
    assert found["notes"][:2] == ["grid 4 from program.cu:25", "a=f32[1000]:random from program.cu:22"]
    whole = "--entry scale --grid 2 --block 64 --arg n=5 --arg f=1 --arg a=f32[5]"
    assert analysed(folder, "program.cu", *whole.split())["notes"] == []


def test_the_launch_comment_goes_before_host_code(folder: Path) -> None:
    comment = "// drywarp: --entry scale --grid 3 --block 32 --arg n=96 --arg f=1\n"
    (folder / "program.cu").write_text(comment + PROGRAM)
    found = analysed(folder, "program.cu")
    assert found["launch"]["grid"] == [3, 1, 1]
    assert found["notes"][0] == "a=f32[96]:random from program.cu:23"
    # A comment about another kernel says nothing of this one.
    assert analysed(folder, "program.cu", "--entry", "add<7>")["launch"]["grid"] == [64, 1, 1]


def test_the_static_mode_takes_it_too(folder: Path) -> None:
    found = analysed(folder, "program.cu", "--entry", "scale", "--static")
    assert found["launch"]["grid"] == [8, 1, 1]
    assert found["notes"][0] == "grid 8, block 256, f=2.0, n=2048 from program.cu:25"
    assert not any("grid" in one["what"] for one in found["static"]["assumptions"])


def test_what_host_code_leaves_open_is_named_with_all_else(folder: Path) -> None:
    line = complaint(run("analyze", "program.cu", "--entry", "rows", "-D", "X=1", "--arg", "width=8", cwd=folder))
    assert line == (
        "drywarp: program.cu: rows: no grid given, and the launch at program.cu:28 does not determine grid; "
        "for example: drywarp analyze program.cu --entry rows -D X=1 --grid 128,1024 --block 8 "
        "--arg 'a=f32[2048]:random' --arg width=8 --arg height=4 (values to replace), or --static, "
        "which assumes what is missing"
    )


# ---- AMD GPUs


ASSEMBLY = Path(__file__).parents[1] / "amd" / "assembly" / "collatz-gfx90a.s"


def test_assembly_for_amd_gpus_is_listed_and_its_command_states_all(tmp_path: Path) -> None:
    (one,) = listed(str(ASSEMBLY), tmp_path, "--gpu", "mi210").values()
    assert one["registers"] > 4
    assert one["placeholders"] == ["grid", "block", "arg0", "arg1"]
    command = shlex.split(one["command"])[2:]
    assert analysed(tmp_path, *command)["notes"] == analysed(tmp_path, *command, "--static")["notes"] == []
    (note,) = analysed(tmp_path, str(ASSEMBLY), "--gpu", "mi210", "--grid", "10")["notes"]
    assert note == f"block, arg0, arg1: assumed; to specify all of it: {one['command'].replace('4096', '10')}"


REACHING = """
__global__ void rows(const float* from, float* to, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 4; k++) to[i * 8 + k] = from[i * stride + k];
}
__global__ void gather(const int* index, const float* from, float* to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[index[i]];
}
"""
TOGETHER = """#include <cooperative_groups.h>
__global__ void together(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
  cooperative_groups::this_grid().sync();
  if (i < n) x[n - 1 - i] *= 2;
}
"""


def test_placeholders_fit_what_the_kernel_reaches(tmp_path: Path) -> None:
    found = {}
    for name, text in (("reaching.cu", REACHING), ("together.cu", TOGETHER)):
        (tmp_path / name).write_text(text)
        found.update(listed(name, tmp_path))
    rows, gather, together = (shlex.split(found[name]["command"]) for name in ("rows", "gather", "together"))
    threads = 4096 * 256
    assert f"to=f32[{(threads - 1) * 8 + 4}]:random" in rows
    # The stride is such that a buffer stays at hundreds of megabytes.
    stride = next(int(word.partition("=")[2]) for word in rows if word.startswith("stride="))
    assert stride < 1 << 20
    assert f"from=f32[{(threads - 1) * stride + 4}]:random" in rows
    # Small whole numbers serve as indices.
    assert {f"index=i32[{threads}]:random", f"from=f32[{threads}]:random"} <= {*gather}
    assert together[together.index("--grid") + 1 :][:3] == ["32", "--block", "256"]
    for words in (rows, gather, together):
        assert analysed(tmp_path, *words[2:])["prediction"]["time_s"] > 0


FAULTY = """struct Node { int start, count; };
__global__ void neighbours(const Node* nodes, const int* edges, float* to, int no_of_nodes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < no_of_nodes) for (int k = nodes[i].start; k < nodes[i].start + nodes[i].count; k++) to[i] += edges[k];
}
__global__ void address(float* const* rows) { rows[0][threadIdx.x] = 1; }
template <int N> __global__ void held(const float* from, float* to, const int G) {
  __shared__ float part[N];
  for (int i = threadIdx.x; i < G * 64; i += blockDim.x) part[i] = from[i];
  __syncthreads();
  for (int i = threadIdx.x; i < G * 64; i += blockDim.x) to[i] = part[i ^ 1];
}
template __global__ void held<256>(const float*, float*, const int);
__global__ void four(const char* from, float4* to, int hidden_unit) {
  to[threadIdx.x].x = *(const float*)(from + blockIdx.x * 2 * hidden_unit);
}
__global__ void far(float* dst, int pitch) {
  dst += (blockIdx.y * 64) * pitch + blockIdx.x * 16 + threadIdx.x;
  for (int i = 0; i < 600; i++) dst[(i % 8) * 8 * pitch] = i;
}
struct P { float* from; char* to; int width; };
__device__ int table[1 << 16];
__global__ void small(int* to) { int i = blockIdx.x * blockDim.x + threadIdx.x; to[i] = table[i * 4]++; }
__global__ void tile(const float* from, float* to) {
  __shared__ float part[64];
  int i = threadIdx.y * blockDim.x + threadIdx.x;
  part[i] = from[i + blockIdx.y];
  __syncthreads();
  to[i + blockIdx.x] = part[i ^ 1];
}
__global__ void dynamic(float* to) {
  extern __shared__ float rows[];
  rows[threadIdx.x * 40] = to[threadIdx.x];
  __syncthreads();
  to[threadIdx.x] = rows[(threadIdx.x ^ 1) * 40];
}
__global__ void inside(P p) { p.to[(threadIdx.x + blockIdx.x * 1024) * p.width] = p.from[threadIdx.x]; }
"""


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        # Elements of unknown type hold whole numbers where they serve as indices.
        ("neighbours", ["nodes=i32[2097152]:random", "no_of_nodes=1048576"]),
        ("held<256>", ["G=1"]),
        ("four", ["hidden_unit=1024"]),
        ("inside", ["p={from=f32[1048576]:random, to=i8["]),
        ("far", ["pitch=1024"]),
        ("small", ["--grid 32 --block 256"]),
        ("tile", ["--grid 128,128 --block 8,8"]),
        ("dynamic", ["--block 256 --shared 49152"]),
    ],
)
def test_commands_run_whose_first_placeholders_do_not(name: str, parts: list[str], tmp_path: Path) -> None:
    """Blocks at the grid's corners run for the list: a fault in one leads to other placeholders."""
    (tmp_path / "faulty.cu").write_text(FAULTY)
    command = listed("faulty.cu", tmp_path, "--entry", name)[name]["command"]
    assert not [part for part in parts if part not in command], command
    # Eight blocks show as well as 4,096 that the indices lie within the buffers.
    command = command.replace("--grid 4096 ", "--grid 8 ")
    assert analysed(tmp_path, *shlex.split(command)[2:])["prediction"]["time_s"] > 0


def test_parameters_that_name_a_type_get_one(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\n"
        "def cast(x, y, n, kind: tl.constexpr, other: tl.constexpr, B: tl.constexpr):\n"
        "    i = tl.arange(0, B)\n    a = tl.load(x + i).to(kind) + tl.zeros((B,), dtype=other)\n"
        "    tl.store(y + i, a)\n"
    )
    command = listed("k.py", tmp_path)["cast"]["command"]
    assert "--arg kind=tl.float32 --arg other=tl.float32 --arg B=1024" in command


def test_amd_gpus_have_the_classes_of_numbers_in_std(tmp_path: Path) -> None:
    (tmp_path / "classes.cu").write_text(
        "#include <cmath>\n__global__ void f(const float* x, const double* d, int* y) {\n"
        "  y[threadIdx.x] = std::isinf(x[threadIdx.x]) + std::isnan(d[0]) + std::isfinite(x[threadIdx.x]);\n}\n"
    )
    for gpu in ("mi300x", "a100") if find_clang() else ("a100",):
        assert listed("classes.cu", tmp_path, "--gpu", gpu)["f"]["reason"] is None


def test_a_fault_names_the_arguments_that_hold_random_numbers(tmp_path: Path) -> None:
    (tmp_path / "lengths.cu").write_text(
        "extern __shared__ char held[];\n"
        "__global__ void sums(const int* length, const int* values, int* to) {\n"
        "  __shared__ int part[32];\n"
        "  int own = length[blockIdx.x];\n"
        "  for (int i = threadIdx.x; i < own * 300; i += blockDim.x) held[i] = values[i];\n"
        "  __syncthreads();\n"
        "  part[threadIdx.x % 32] = held[threadIdx.x]; to[blockIdx.x] = part[0];\n}\n"
    )
    # Dynamic shared memory beside static is for the launch to size.
    command = listed("lengths.cu", tmp_path)["sums"]["command"]
    assert "--shared 49024" in command
    stated = command.replace("--shared 49024", "--shared 400")
    message = complaint(run(*shlex.split(stated)[1:], cwd=tmp_path))
    assert "shared store of 1 bytes out of bounds" in message
    assert "lengths.cu:5" in message
    assert "length, values, to hold random numbers" in message
    assert "such as length=TYPE[n]:@file.npy, :iota or :random(1,100), or --static, which needs none" in message
    counts = stated.replace("length=i32[1048576]:random", "length=i32[1048576]:1")
    assert analysed(tmp_path, *shlex.split(counts)[2:])["prediction"]["time_s"] > 0


BLOCK = """struct Coord { int idx[2]; };
struct Params {
  Coord problem_size, tiles; const float* from; float* to; long stride; float alpha;
  int a, b, c, d, e, f, g, h, i, last;
};
template <int N> __global__ void tiled(Params params) {
  if (blockIdx.x >= params.tiles.idx[0]) return;
  int i = blockIdx.x * N + threadIdx.x;
  if (i < params.problem_size.idx[0]) params.to[i * params.stride] = params.alpha * params.from[i];
}
int main() {
  Params params = made();
  tiled<64><<<8, 64>>>(params);
}
"""


def test_parameter_blocks_get_fields_that_do_some_work_and_a_way_to_the_programs_own(tmp_path: Path) -> None:
    (tmp_path / "block.cu").write_text(BLOCK)
    first_fields = listed("block.cu", tmp_path, "-D", "X=1")["tiled<64>"]
    assert first_fields["signature"].endswith("int f, and 4 more}")
    run_it = "drywarp run --keep DIR -D X=1 block.cu runs the program with its own, and keeps each launch for analyze"
    assert first_fields["reason"] == f"params has 16 fields, which host code computes: {run_it}"
    named = listed("block.cu", tmp_path, "--entry", "tiled<64>")["tiled<64>"]
    assert named["signature"].endswith("int i, int last}")
    # Blocks that leave at once would show nothing.
    assert "problem_size.idx=[1024, 1024], tiles.idx=[1024, 1024]" in named["command"]
    words = shlex.split(named["command"])
    assert "last=1024}" in words[-1]
    assert analysed(tmp_path, *words[2:])["memory"]["dram_write_bytes"] > 0


def test_a_file_beside_is_named_where_a_source_has_no_kernels(tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text("int main() { return 0; }\n")
    (tmp_path / "kernels.cu").write_text("__global__ void one(float* a) { *a = 1; }\n")
    for verb in ("list", "analyze"):
        assert complaint(run(verb, "main.cu", cwd=tmp_path)).endswith("; kernels.cu has some)")
