"""Options in nvcc's spelling: which reach the compiler, which are ignored, and which are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from drywarp import analyze
from drywarp.errors import UsageError
from drywarp.execution.emulator import emulate
from drywarp.frontends.binary.elf import parse_elf
from drywarp.frontends.cuda import RELOCATABLE, CudaOptions, build, known_options, nvcc
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.cuda.nvcc import NO_LINKER, NOT_LINKED, OPEN_CALLS, find_nvlink
from drywarp.frontends.cuda.nvrtc import compile_program
from drywarp.frontends.load import load
from drywarp.kernel.launch.arguments import make_launch

DIVIDE = """
extern "C" __global__ void divide(float* out, const float* a, float b) {
    out[threadIdx.x] = a[threadIdx.x] / b + __expf(b) * a[threadIdx.x];
}
"""


def _opcodes(options: CudaOptions) -> list[str]:
    return [i.opcode for i in compile_cuda(DIVIDE, arch="sm_80", options=options).instructions]


def _given(*words: str) -> CudaOptions:
    return CudaOptions(compiler_options=words)


def test_fast_math_shortens_a_division() -> None:
    assert len(_opcodes(_given("-use_fast_math"))) < len(_opcodes(CudaOptions()))


def test_without_fmad_nothing_is_fused() -> None:
    text = 'extern "C" __global__ void k(float* o, float a, float b) { o[0] = a * b + o[0]; }'

    def fused(options: CudaOptions) -> bool:
        made = compile_cuda(text, arch="sm_80", options=options)
        return any(i.opcode.startswith("FFMA") for i in made.instructions)

    assert fused(CudaOptions())
    assert not fused(_given("--fmad=false"))
    assert not fused(_given("-fmad", "false"))


def test_options_of_the_assembler_change_the_loads() -> None:
    plain, cached = (
        [i.text for i in compile_cuda(DIVIDE, arch="sm_80", options=options).instructions if i.opcode == "LDG"]
        for options in (CudaOptions(), _given("-Xptxas -dlcm=cg"))
    )
    assert plain
    assert plain != cached


SUMS = """
extern "C" __global__ void sums(float* out, const float* a) {
    __shared__ float tile[256];
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += tile[threadIdx.x % 64 * 4 + i] * (i + 1);
    out[threadIdx.x] = sum;
}
"""


def test_separate_compilation_leaves_loads_from_shared_memory_apart() -> None:
    # ptxas raises the alignment of a shared array and joins loads from it, unless other code may be linked to it.
    def loads(options: CudaOptions) -> list[str]:
        found = compile_cuda(SUMS, arch="sm_80", options=options).instructions
        return [i.text.split()[0] for i in found if i.opcode == "LDS"]

    assert loads(CudaOptions()) == ["LDS.128"]
    if find_nvlink() is None:
        pytest.skip("nvlink is not installed: pip install 'drywarp[ptx]'")
    assert loads(_given("-rdc=true")) == ["LDS"] * 4
    values = np.random.default_rng(1).random(256).astype(np.float32)
    linked = compile_cuda(SUMS, arch="sm_80", options=_given("-dc"))
    launch = make_launch(linked, (1, 1, 1), (256, 1, 1), {"out": np.zeros_like(values), "a": values})
    expected = values.reshape(64, 4) @ np.array([1, 2, 3, 4], np.float32)
    np.testing.assert_allclose(emulate(linked, launch, blocks="all").buffer("out"), np.tile(expected, 4), rtol=1e-6)


def test_without_a_linker_a_whole_program_is_compiled_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "find_nvlink", lambda: None)
    monkeypatch.setattr(nvcc, "find_nvlink", lambda: None)
    found = compile_cuda(SUMS.replace("sums", "alone"), arch="sm_80", options=_given("-rdc=true"))
    assert NOT_LINKED + NO_LINKER in found.notes
    assert [i.text.split()[0] for i in found.instructions if i.opcode == "LDS"] == ["LDS.128"]


def test_variables_take_no_room_in_a_file_that_is_not_linked() -> None:
    made = compile_program(SUMS, "sums.cu", ["--gpu-architecture=sm_80", RELOCATABLE])
    shared = parse_elf(made.cubin, "sums.cu").section(".nv.shared.sums")
    assert shared is not None
    assert (shared.size, shared.data) == (1024, b"")
    text = "__device__ int zeros[1 << 20];" + SUMS.replace("sum += ", "zeros[threadIdx.x] = 1, sum += ")
    made = compile_program(text, "zeros.cu", ["--gpu-architecture=sm_80", RELOCATABLE])
    zeros = parse_elf(made.cubin, "zeros.cu").section(".nv.global")
    assert zeros is not None
    assert (zeros.size, zeros.data) == (4 << 20, b"")


def test_calls_of_other_files_stay_open() -> None:
    text = """
    extern __device__ float other(float);
    extern "C" __global__ void open(float* out) { out[threadIdx.x] = other(out[threadIdx.x]); }
    """
    for options in (CudaOptions(), _given("-rdc=true")):
        assert OPEN_CALLS in compile_cuda(text, arch="sm_80", options=options).notes


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("-DN=4", "-D", "M"), CudaOptions({"N": "4", "M": ""})),
        (("-I/a", "-I", "/b"), CudaOptions(includes=("/a", "/b"))),
        (("-std=c++20",), CudaOptions(std="c++20")),
        (("--std", "c++20"), CudaOptions(std="c++20")),
        (("-maxrregcount=32",), CudaOptions(max_registers=32)),
        (("-O3 -lineinfo -Xcompiler -fPIC,-O2 -lcublas -L/lib --expt-relaxed-constexpr",), CudaOptions()),
        (("-isystem /c", "-isystem=/d"), CudaOptions(includes=("/c", "/d"))),
        (("-rdc=true", "-dc"), _given("--relocatable-device-code=true")),
        (("--device-c",), _given("-rdc=true")),
        (("-rdc=true -dc -rdc=false", "-c"), _given("--relocatable-device-code=false")),
        (("-G",), _given("--device-debug")),
        (("-use_fast_math", "-O3"), _given("--use_fast_math")),
        (("-Xptxas", "-v,-O1"), _given("--ptxas-options=-v,-O1")),
    ],
)
def test_every_spelling_means_the_same(words: tuple[str, ...], same: CudaOptions) -> None:
    assert _given(*words).flags() == same.flags()


def test_a_field_that_is_set_wins() -> None:
    chosen = CudaOptions(
        {"N": "1"}, std="c++17", max_registers=64, compiler_options=("-DN=2 -std=c++20 -maxrregcount=32",)
    )
    assert (chosen.defines, chosen.std, chosen.max_registers) == ({"N": "1"}, "c++17", 64)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-use_fast_maths",), "did you mean -use_fast_math?"),
        (("-zzz",), "expected an option of nvcc"),
        (("fast",), "expected an option of nvcc"),
        (("-arch=sm_90",), "--gpu chooses the architecture"),
        (("-gencode", "arch=compute_80,code=sm_80"), "--gpu chooses the architecture"),
        # The cache would not notice a change of such a file.
        (("-include", "x.h"), "unknown"),
        (("-Xptxas",), "expected a value"),
        (("-maxrregcount=many",), "expected a whole number"),
        (("-rdc=yes",), "expected true or false"),
        (("-DN='4",), "unclosed quotation mark"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match="--compiler-option") as raised:
        _given(*words)
    assert message in str(raised.value)


def test_programs_that_compile_at_run_time_may_use_options_of_their_own() -> None:
    found = known_options(["-DN=4", "--unknown", "stray", "-use_fast_math -O3", "--fmad=false"])
    assert found == CudaOptions({"N": "4"}, compiler_options=("--use_fast_math", "--fmad=false"))


PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { ret; }
"""


def test_ptx_takes_options_of_the_assembler_only() -> None:
    with pytest.raises(UsageError, match="PTX is assembled"):
        load(PTX, arch="sm_80", options=_given("-use_fast_math"))
    assert _given("-Xptxas", "-O1,-v").assembler_flags("k.ptx") == ["-O1", "-v"]


def test_what_is_not_compiled_takes_none() -> None:
    with pytest.raises(UsageError, match="does not apply to machine code"):
        _given("-G").refuse("a.cubin", "machine code, which is not compiled")


def test_clang_has_its_own_names() -> None:
    assert _given("-use_fast_math", "-fmad=false").clang_flags("k.hip") == ["-ffast-math", "-ffp-contract=off"]
    with pytest.raises(UsageError, match="no counterpart for AMD GPUs"):
        _given("-G").clang_flags("k.hip")


def test_the_answer_says_how_it_was_compiled() -> None:
    args = {"out": "f32[128]", "a": "f32[128]", "b": 2}
    plain = analyze(DIVIDE, gpu="a100", grid=64, block=128, args=args)
    fast = analyze(DIVIDE, gpu="a100", grid=64, block=128, args=args, compiler_options=["-use_fast_math"])
    assert fast.to_dict()["versions"]["compiler_options"] == "--use_fast_math"
    assert "compiled with --use_fast_math" in fast.notes
    assert "compiler_options" not in json.dumps(plain.to_dict())
    assert fast.warp_instructions < plain.warp_instructions
