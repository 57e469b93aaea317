"""Options in nvcc's spelling: which reach the compiler, which are ignored, and which are refused."""

from __future__ import annotations

import json

import pytest

from drywarp import analyze
from drywarp.errors import UsageError
from drywarp.frontends.cuda import CudaOptions, known_options
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.load import load

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
        (("-rdc=true", "-dc"), CudaOptions()),
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
