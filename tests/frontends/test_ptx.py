"""PTX as input: its outline, its lines, its machine code, and everything that may be wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from drywarp.errors import CompileError, InputFileError, ToolError, UsageError
from drywarp.execution.emulator import emulate
from drywarp.frontends.binary.cubin import kernels_of
from drywarp.frontends.binary.sass import listing_of
from drywarp.frontends.cache import release_of
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.load import load
from drywarp.frontends.ptx import PtxParameter, assembler, is_ptx, read_ptx, with_own_lines
from drywarp.frontends.ptx.assembler import load_ptx, machine_for, needed_ptxas
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.launch import Launch, Scalar, array_buffer
from tests.effort import first

ROOT = Path(__file__).parents[2]
AXPY = (ROOT / "examples" / "axpy.ptx").read_text()

TWO = """
.version 7.8
.target sm_75, debug
.address_size 64
.shared .align 4 .b8 tile[128];
.func (.param .b32 out) twice(.param .b32 in)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [in];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [out], %r2;
  ret;
}
.visible .entry _Z5scalePff(.param .u64 _Z5scalePff_param_0, .param .f32 _Z5scalePff_param_1)
{ ret; }
.visible .entry calls(
  .param .u64 .ptr.global.align 4 a, // an address
  .param .s32 n,
  .param .u8 flag, /* and , more */ .param .align 8 .b8 point[24]
)
.maxntid 128, 1, 1
{
  .reg .b32 %r<4>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [a];
  ld.param.s32 %r1, [n];
  {
  .param .b32 given;
  .param .b32 got;
  st.param.b32 [given], %r1;
  call.uni (got),
  twice,
  (
  given
  );
  ld.param.b32 %r2, [got];
  }
  bra LAST;
LAST: st.global.v2.b32 [%d1],
    {%r1, %r2};
  ret;
}
"""


def kernel(text: str, arch: str = "sm_80", entry: str | None = None) -> Kernel:
    return load_ptx(text, arch=arch, origin="k.ptx", entry=entry)


def test_ptx_is_known_by_its_first_directive() -> None:
    assert is_ptx(AXPY)
    assert is_ptx("/* about */ // more\n\n  .version 8.4\n")
    assert not is_ptx("__global__ void k() {}\n// .version 8.4\n")
    assert not is_ptx('const char* text = R"(\n.version 8.4\n)";')


def test_outline() -> None:
    module = read_ptx(TWO)
    assert module.target == "sm_75"
    assert not module.has_lines
    assert module.entries == {
        "_Z5scalePff": (
            PtxParameter("_Z5scalePff_param_0", "u64", False),
            PtxParameter("_Z5scalePff_param_1", "f32", False),
        ),
        "calls": (
            PtxParameter("a", "u64", True),
            PtxParameter("n", "s32", False),
            PtxParameter("flag", "u8", False),
            PtxParameter("point", "", False),
        ),
    }


@pytest.mark.parametrize("text", [AXPY, TWO.replace(", debug", "")])
def test_lines_are_added_and_nothing_else(text: str) -> None:
    numbered = with_own_lines(text, "/some/k.ptx")
    stripped = re.sub(r" \.loc 1 (\d+) 0 ", "", numbered).removesuffix('\n.file 1 "/some/k.ptx"\n')
    assert stripped == text
    for number, line in enumerate(numbered.split("\n"), 1):
        assert all(int(found) == number for found in re.findall(r"\.loc 1 (\d+) 0", line))
    symbol = next(iter(read_ptx(text).entries))
    plain, with_lines = (assembler.assemble(source, "sm_80", "k.ptx").cubin for source in (text, numbered))
    codes = [kernels_of(c, listing_of(c, "k.ptx"), "sm_80", "k.ptx")[symbol] for c in (plain, with_lines)]
    assert [i.encoding for i in codes[0].instructions] == [i.encoding for i in codes[1].instructions]


def test_every_instruction_has_a_line_guarded_or_not_and_no_directive_has() -> None:
    body = ["{", "  .reg .pred %p;", "  @%p ret;", "LOOP: @!%p bra LOOP;", "  ex2.approx.f32 %f, %f;", "  ret;", "}"]
    lines = with_own_lines("\n".join([".version 8.4", ".entry k()", *body]), "k.ptx").split("\n")
    assert lines[2:9] == [
        *body[:2], "   .loc 1 5 0 @%p ret;", "LOOP:  .loc 1 6 0 @!%p bra LOOP;", "   .loc 1 7 0 ex2.approx.f32 %f, %f;",
        "   .loc 1 8 0 ret;", "}",
    ]  # fmt: skip


def test_instructions_show_their_own_line_in_the_text() -> None:
    found = kernel(TWO.replace(", debug", ""), entry="calls")
    lines = TWO.split("\n")
    stores = [i for i in found.instructions if i.opcode == "STG"]
    assert {lines[i.source.line - 1] for i in stores if i.source} == {"LAST: st.global.v2.b32 [%d1],"}
    assert {i.source.file for i in stores if i.source} == {"k.ptx"}


def test_lines_that_a_compiler_wrote_are_kept() -> None:
    text = AXPY.replace("  fma.rn.f32", "  .loc 1 12 3\n  fma.rn.f32") + '\n.file 1 "/elsewhere/axpy.cu"\n'
    places = {(i.source.file, i.source.line) for i in kernel(text).instructions if i.source}
    assert places == {("/elsewhere/axpy.cu", 12)}


def test_a_line_table_with_gaps_costs_the_lines_alone() -> None:
    text = AXPY.replace("  fma.rn.f32", "  .loc 7 12 3\n  fma.rn.f32") + '\n.file 7 "/elsewhere/axpy.cu"\n'
    found = kernel(text)
    assert [i.text for i in found.instructions] == [i.text for i in kernel(AXPY).instructions]


@pytest.mark.parametrize("arch", first(["sm_80", "sm_75", "sm_90", "sm_120"]))
def test_the_example_computes_what_numpy_does(arch: str) -> None:
    x, y = (np.random.default_rng(1).standard_normal(1000).astype(np.float32) for _ in range(2))
    n, a = (Scalar(np.array(v).tobytes(), str(v)) for v in (np.int32(900), np.float32(2)))
    launch = Launch((4, 1, 1), (256, 1, 1), (array_buffer(x), array_buffer(y), a, n))
    got = emulate(kernel(AXPY, arch), launch, blocks="all").buffer("y")
    np.testing.assert_allclose(got[:900], 2 * x[:900] + y[:900], rtol=1e-6)
    np.testing.assert_array_equal(got[900:], y[900:])


def test_parameters_have_the_names_and_types_of_the_text() -> None:
    text = TWO.replace(", debug", "")
    calls = kernel(text, entry="calls")
    assert [(p.name, p.type, p.pointer, p.size) for p in calls.parameters] == [
        ("a", "", True, 8),
        ("n", "int", False, 4),
        ("flag", "", False, 1),
        ("point", "", False, 24),
    ]
    assert calls.resources.max_threads == 128
    assert calls.resources.spill_bytes == 0
    # A compiler's own numbering is no name: such parameters are called as those of a cubin.
    scale = kernel(text, entry="scale")
    assert [(p.name, p.type) for p in scale.parameters] == [("", ""), ("", "float")]


def test_a_register_cap_reaches_the_assembler() -> None:
    many = "\n".join(f"  ld.global.f32 %v{n}, [%p0+{4096 * n}];" for n in range(60))
    uses = "\n".join(f"  st.global.f32 [%p1+{4096 * n}], %v{n};" for n in range(60))
    text = AXPY.replace("  .reg .f32 %f<4>;", "  .reg .f32 %f<4>;\n  .reg .f32 %v<60>;").replace(
        "  ld.param.f32 %f0", f"{many}\n{uses}\n  ld.param.f32 %f0"
    )
    free = kernel(text)
    capped = load_ptx(text, arch="sm_80", origin="k.ptx", options=CudaOptions(max_registers=32))
    assert capped.resources.registers <= 32 < free.resources.registers


def test_the_second_time_nothing_is_assembled(monkeypatch: pytest.MonkeyPatch) -> None:
    text = AXPY.replace("axpy(", "once(")
    first = kernel(text)

    def refuse(*_: object) -> None:
        raise AssertionError("assembled again")

    monkeypatch.setattr(assembler, "assemble", refuse)
    assert [i.text for i in kernel(text).instructions] == [i.text for i in first.instructions]


def test_text_and_file_are_both_taken(tmp_path: Path) -> None:
    path = tmp_path / "axpy.txt"
    path.write_bytes(AXPY.replace("\n", "\r\n").encode())
    from_file, from_text = load(path, arch="sm_80"), load(AXPY, arch="sm_80")
    assert isinstance(from_file.kernel, Kernel)
    assert isinstance(from_text.kernel, Kernel)
    assert from_file.comment == from_text.comment
    assert from_file.comment.grid == "cdiv(n,256)"
    assert (from_file.text, from_text.text) == ("", AXPY)
    assert from_text.tools["ptxas"].count(".") == 2
    assert [i.source.line for i in from_file.kernel.instructions if i.source] == [
        i.source.line for i in from_text.kernel.instructions if i.source
    ]


@pytest.mark.parametrize(
    ("target", "arch", "machine"),
    [
        ("sm_52", "sm_80", "sm_80"),
        ("sm_80", "sm_90", "sm_90"),
        ("sm_90a", "sm_90", "sm_90a"),
        ("sm_100f", "sm_103", "sm_103f"),
        ("compute_75", "sm_75", "sm_75"),
    ],
)
def test_what_runs_where(target: str, arch: str, machine: str) -> None:
    assert machine_for(target, arch, "k.ptx") == machine


@pytest.mark.parametrize(
    ("target", "arch", "reach"),
    [
        ("sm_90", "sm_80", "sm_90 and newer"),
        ("sm_90a", "sm_100", "sm_90 only"),
        ("sm_90a", "sm_80", "sm_90 only"),
        ("sm_100f", "sm_120", "sm_100 and newer ones of its family"),
    ],
)
def test_what_runs_elsewhere_says_where(target: str, arch: str, reach: str) -> None:
    with pytest.raises(UsageError, match=rf"^k\.ptx: its \.target {target} runs on {reach}; the GPU is {arch}$"):
        kernel(AXPY.replace("sm_70", target), arch)


def test_code_for_one_architecture_alone_is_assembled_for_that() -> None:
    text = AXPY.replace("sm_70", "sm_90a").replace(".version 7.0", ".version 8.0")
    assert kernel(text, "sm_90").arch == "sm_90a"
    assert kernel(text, "sm_90").compute_capability == (9, 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fma.rn.f32", "fmma.rn.f32", r"^k\.ptx\(36\): error: Not a name of any known instruction: 'fmma'"),
        ("%p1, [y]", "%q, [y]", r"^k\.ptx\(29\): error: Arguments mismatch for instruction 'ld' \(and 1 more\)"),
        (".version 7.0", ".version 77.0", r"^k\.ptx\(4\): error: Unsupported \.version 77\.0"),
        ("  ret;\n}\n", "", r"^k\.ptx\(38\): error: Parsing error"),
        ("  .reg .f32", "  .reg .f23", r"^k\.ptx\(16\): error: Parsing error near '\.f23'"),
    ],
)
def test_the_assemblers_error_names_file_and_line(old: str, new: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        kernel(AXPY.replace(old, new))
    assert "\n" not in str(caught.value)


def test_texts_that_are_no_kernel() -> None:
    with pytest.raises(InputFileError, match=r"^k\.ptx: no \.target directive"):
        kernel(AXPY.replace(".target sm_70", ""))
    with pytest.raises(UsageError, match=r"^k\.ptx: no \.entry found"):
        kernel(".version 7.0\n.target sm_70\n.address_size 64\n")
    with pytest.raises(UsageError, match=r"^k\.ptx: several kernels; name one with --entry: calls, scale"):
        kernel(TWO.replace(", debug", ""))
    with pytest.raises(UsageError, match=r"^k\.ptx: no kernel named 'third'; it holds: calls, scale"):
        kernel(TWO.replace(", debug", ""), entry="third")


def test_without_an_assembler_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembler, "places", lambda: iter([tmp_path / "ptxas"]))
    with pytest.raises(ToolError, match=r"^k\.ptx: PTX needs an assembler: pip install 'drywarp\[ptx\]'"):
        kernel(AXPY)


def test_the_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(assembler.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(ToolError, match=rf"^{assembler.VARIABLE}=.*: no such program"):
        kernel(AXPY)
    fake = tmp_path / "ptxas"
    fake.write_text("#!/bin/sh\necho 'ptxas fatal   : no licence' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv(assembler.VARIABLE, str(fake))
    assert needed_ptxas("k.ptx") == fake
    assert release_of(fake) == ""
    with pytest.raises(CompileError, match=r"^k\.ptx: ptxas: no licence$"):
        kernel(AXPY)


def test_places_are_searched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ptxas").touch(mode=0o755)
    found = [str(place) for place in assembler.places()]
    assert found[0].endswith("nvidia/cu13/bin/ptxas")
    assert found[1:3] == [str(tmp_path / "bin" / "ptxas")] * 2
