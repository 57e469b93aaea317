"""A listing of nvdisasm becomes instructions: guards, labels, control bits, source lines, padding."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.errors import InputFileError
from drywarp.frontends.binary.sass import parse_listing, split_operands
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.instruction import ControlBits, Immediate, Label, Predicate, Register, SourceLine, Special
from tests.effort import first
from tests.listing import code, control, listing


def test_an_instruction_in_full() -> None:
    (instruction,) = code(("@!P0 LDG.E.64.CONSTANT R4, [R2.64+0x10]", control(stall=4, write=2, waits=[0, 5]) | 0x981))
    assert instruction.pc == 0
    assert instruction.full_opcode == "LDG.E.64.CONSTANT"
    assert instruction.guard == Predicate(0, negate=True)
    assert instruction.operands[0] == Register(4)
    assert instruction.class_ == "global_load"
    assert instruction.memory is not None
    assert instruction.memory.width == 8
    assert instruction.control == ControlBits(4, False, 2, None, 0b100001, 0)
    assert instruction.encoding & 0xFFF == 0x981
    assert str(instruction) == "0x0000 @!P0 LDG.E.64.CONSTANT R4, [R2.64+0x10]"


@pytest.mark.parametrize(
    ("text", "guard"),
    [
        ("@P6 EXIT", Predicate(6)),
        ("@!UP1 BRA `(.L)", Predicate(1, uniform=True, negate=True)),
        ("@!PT EXIT", Predicate(7, negate=True)),
        ("EXIT", None),
    ],
)
def test_guards(text: str, guard: Predicate | None) -> None:
    assert code(text)[0].guard == guard


@given(
    stall=st.integers(0, 15),
    hint=st.booleans(),
    write=st.integers(0, 7).filter(lambda b: b != 6),
    read=st.integers(0, 7).filter(lambda b: b != 6),
    mask=st.integers(0, 63),
    reuse=st.integers(0, 15),
    rest=st.integers(0, (1 << 105) - 1),
)
def test_control_bits_are_decoded_bit_by_bit(
    stall: int, hint: bool, write: int, read: int, mask: int, reuse: int, rest: int
) -> None:
    word = rest | stall << 105 | hint << 109 | write << 110 | read << 113 | mask << 116 | reuse << 122
    expected = ControlBits(stall, hint, None if write == 7 else write, None if read == 7 else read, mask, reuse)
    assert ControlBits.decode(word) == expected


def test_control_bits_of_real_encodings() -> None:
    # LDG sets scoreboard 2 and has a stall of 4; FFMA waits for it.
    load, use = code(
        ("LDG.E R6, [R2.64]", 0x004EA8000C1E1900 << 64 | 0x0000000402067981),
        ("FFMA R9, R6, R6, 3", 0x004FC80000000006 << 64 | 0x4040000006097423),
    )
    assert (load.control.write_barrier, load.control.stall) == (2, 4)
    assert use.control.wait_mask == 1 << 2


def test_labels_stand_before_their_instruction() -> None:
    found = parse_listing(listing("MOV R0, RZ", ".L_x_1:", '//## File "a.cu", line 3', "BRA `(.L_x_1)", "EXIT"))
    assert found["k"].labels == {"k": 0, ".L_x_1": 16}
    assert found["k"].instructions[1].operands == (Label(".L_x_1", 16),)


def test_several_sections_and_what_is_not_code() -> None:
    data = '\t.section\t.nv.constant3,"a",@progbits\ncoefficient:\n'
    found = parse_listing(listing("EXIT", name="a") + "\n" + data + listing("NOP", "EXIT", name="b"))
    assert {name: len(f.instructions) for name, f in found.items()} == {"a": 1, "b": 2}
    assert found["a"].labels == {"a": 0}


def test_padding_is_left_out() -> None:
    body = ["MOV R0, RZ", "EXIT"]
    assert len(code(*body, ".L_x_1:", "BRA `(.L_x_1)", "NOP", "NOP")) == 2
    assert len(code(*body, ".L_x_1:", "BRA `(.L_x_1)")) == 2  # the code fills its section up


def test_a_jump_back_before_the_padding_is_code() -> None:
    # Only a jump to itself is padding.
    assert len(code(".L_x_1:", "MOV R0, RZ", "BRA `(.L_x_1)", "NOP")) == 2


def test_nops_inside_the_code_stay() -> None:
    assert len(code("NOP", "EXIT")) == 2


def test_operands_are_split_outside_brackets_only() -> None:
    assert list(split_operands("SB0, 0x0, {4,3,2}")) == ["SB0", "0x0", "{4,3,2}"]
    assert list(split_operands("R2, c[0x0][0x4], `((a, b))")) == ["R2", "c[0x0][0x4]", "`((a, b))"]
    assert list(split_operands("")) == []


def test_instructions_without_a_comma_behind_their_register() -> None:
    call, ret, jump = code(
        "CALL.REL.NOINC R8 `(k)", "RET.REL.NODEC R20 `(k)", 'BRX R4 -0x30   (*"BRANCH_TARGETS .L_a,.L_b"*)'
    )
    assert call.operands == (Register(8), Label("k", 0))
    assert ret.operands == (Register(20), Label("k", 0))
    assert jump.operands == (Register(4), Immediate(-0x30, "-0x30"), Label(".L_a", -1), Label(".L_b", -1))


def test_notes_of_the_disassembler_are_no_operands() -> None:
    assert code('STL [R1+0xe8], R3   (*"SpillRefill"*)')[0].operands == code("STL [R1+0xe8], R3")[0].operands
    (instruction,) = code("DEPBAR.LE SB0, 0x0, {4,3} &req={1} ?WAIT4_END_GROUP")
    assert instruction.operands == (Special("SB0"), Immediate(0, "0x0"), Special("{4,3}"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (listing("FOO what?"), r"^f: instruction at 0x0000 cannot be parsed: FOO what\? \(.*\)$"),
        ("        /*0000*/   EXIT ;   /* 0x0000000000000000 */", r"^f:1: machine code outside a \.text section$"),
        ("/* 0x0000000000000000 */", r"^f:1: upper half of an encoding without its instruction$"),
    ],
)
def test_bad_listings_are_one_line_with_the_place(text: str, message: str) -> None:
    with pytest.raises(InputFileError, match=message):
        parse_listing(text, "f")


WITHOUT_ENCODINGS = """
\t.section\t.text.k,"ax",@progbits
k:
        /*0000*/                   MOV R1, 0x5 ;
        /*0010*/              @!P0 EXIT;
        /*0020*/                   BRX R4 -0x30   (*"BRANCH_TARGETS .L_x_1,.L_x_2"*) ;
"""


def test_encodings_come_from_the_section_where_the_listing_has_none() -> None:
    words = [control(stall=4, write=2) | 0x802, control(stall=5) | 0x94D, control(waits=[1]) | 0x949]
    held = {"k": b"".join(word.to_bytes(16, "little") for word in words)}
    found = parse_listing(WITHOUT_ENCODINGS, "f", held)["k"].instructions
    assert [i.encoding for i in found] == words
    assert [i.control.stall for i in found] == [4, 5, 1]
    assert [i.text.split()[0] for i in found] == ["MOV", "@!P0", "BRX"]
    with pytest.raises(InputFileError, match=r"^f: no encoding for the instruction at 0x0020: BRX R4"):
        parse_listing(WITHOUT_ENCODINGS, "f", {"k": held["k"][:40]})


def test_a_listing_with_and_one_without_encodings_say_the_same() -> None:
    kernel = compile_cuda(
        """
__device__ __noinline__ float f(float x, int n) { for (int i = 0; i < n; ++i) x = x * x + i; return sqrtf(x); }
extern "C" __global__ void k(const float* a, float* o, int n) { o[threadIdx.x] = f(a[threadIdx.x], n) / a[0]; }
""",
        arch="sm_80",
    )
    lines = [(i.text, i.encoding) for i in kernel.instructions]
    again = parse_listing(listing(*lines))["k"].instructions
    assert [(i.full_opcode, i.control, i.guard) for i in again] == [
        (i.full_opcode, i.control, i.guard) for i in kernel.instructions
    ]


@pytest.mark.parametrize("text", ["", "@P0", "A" * 300, "FADD R1, " + "[" * 300, "FADD R1, R256, R2", "FADD R1, R1,"])
def test_what_is_no_instruction_is_refused_in_few_words(text: str) -> None:
    with pytest.raises(InputFileError, match=r"^f: instruction at 0x0000 cannot be parsed: ") as error:
        parse_listing(listing(text), "f")
    assert len(str(error.value)) < 500


def test_the_collector_is_left_as_it_was() -> None:
    assert gc.isenabled()
    with pytest.raises(InputFileError):
        code("FOO what?")
    assert gc.isenabled()
    gc.disable()
    try:
        code("EXIT")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_empty_text_holds_no_code() -> None:
    assert parse_listing("") == {}


# Source lines ---------------------------------------------------------------------------------------------------


def test_a_source_line_holds_until_the_next() -> None:
    first, second, third = code(
        '//## File "a.cu", line 3', "MOV R0, RZ", "MOV R1, RZ", '//## File "a.cu", line 5', "EXIT"
    )
    assert first.source == second.source == SourceLine("a.cu", 3)
    assert third.source == SourceLine("a.cu", 5)
    assert str(third.source) == "a.cu:5"


def test_without_line_information_there_is_none() -> None:
    assert code("EXIT")[0].source is None


def test_an_inlined_instruction_belongs_to_the_line_where_it_is_written() -> None:
    inlined, plain = code(
        '//## File "h.cuh", line 4 inlined at "a.cu", line 7',
        '//## File "a.cu", line 7 inlined at "a.cu", line 11',
        '//## File "a.cu", line 11',
        "FFMA R0, R0, R0, R0",
        '//## File "a.cu", line 12',
        "EXIT",
    )
    assert inlined.source == SourceLine("h.cuh", 4)
    assert plain.source == SourceLine("a.cu", 12)


@pytest.mark.parametrize(
    "header",
    [
        "/home/u/.cache/drywarp/drywarp-headers/13.4/cooperative_groups.h",
        "/usr/local/cuda-12.4/targets/x86_64-linux/include/cuda_fp16.hpp",
        "/usr/local/cuda/include/cuda_fp16.hpp",
    ],
)
def test_a_header_of_the_toolkit_is_skipped_for_the_line_that_calls_it(header: str) -> None:
    (instruction,) = code(
        f'//## File "{header}", line 90 inlined at "a.cu", line 7', '//## File "a.cu", line 7', "EXIT"
    )
    assert instruction.source == SourceLine("a.cu", 7)


def test_where_all_is_the_toolkits_the_outermost_place_stands() -> None:
    inner, outer = "/usr/local/cuda/include/a.h", "/usr/local/cuda/include/b.h"
    (only,) = code(f'//## File "{inner}", line 1 inlined at "{outer}", line 2', f'//## File "{outer}", line 2', "EXIT")
    assert only.source == SourceLine(outer, 2)


def test_lines_of_a_compiled_kernel_with_inlined_functions() -> None:
    text = """#include <cooperative_groups.h>
__device__ float square(float v) {
  return v * v + 3.0f;
}
__device__ float twice(float v) {
  return square(v) * 2.5f;
}
__global__ void k(float* x) {
  int i = cooperative_groups::this_thread_block().thread_rank();
  x[i] = twice(x[i]);
}
"""
    kernel = compile_cuda(text, arch="sm_80")
    lines = {i.full_opcode: i.source.line for i in kernel.instructions if i.source and i.class_ != "imad"}
    files = {i.source.file for i in kernel.instructions if i.source}
    assert lines["FFMA"] == 3
    assert lines["FMUL"] == 6
    assert lines["LDG.E"] == lines["STG.E"] == 10
    # The rank of the thread is computed in a header of the toolkit, for line 9.
    assert 9 in lines.values()
    assert {f.rpartition("/")[2] for f in files} == {"<source>"}


def test_functions_that_are_called_have_their_labels() -> None:
    text = """
__device__ __noinline__ float slow(float v) { return v * v + 1.0f; }
__global__ void k(float* x) { x[threadIdx.x] = slow(x[threadIdx.x]); }
"""
    kernel = compile_cuda(text, arch="sm_80")
    (name,) = [n for n, s in kernel.symbols.items() if s.space == "code" and "slow" in n]
    calls = [i for i in kernel.instructions if i.opcode == "CALL"]
    assert [i.operands[-1] for i in calls] == [Label(name, kernel.symbols[name].offset)]
    assert kernel.instructions[kernel.symbols[name].offset // 16].source == SourceLine("<source>", 2)


@pytest.mark.parametrize("arch", first(["sm_90", "sm_80", "sm_120"]))
def test_jump_tables_and_textures_of_real_code_are_understood(arch: str) -> None:
    cases = "".join(f"case {n}: v = v * {n}.5f + x[{n}]; x[{n + 20}] = v; break;" for n in range(9))
    text = f"""
__global__ void k(cudaTextureObject_t image, float* x, int* which) {{
  float v = tex2D<float>(image, threadIdx.x, 1.0f);
  switch (which[threadIdx.x]) {{ {cases} }}
  x[threadIdx.x] = v;
}}
"""
    kernel = compile_cuda(text, arch=arch)
    assert any(i.class_ == "texture" for i in kernel.instructions)
    jumps = [i for i in kernel.instructions if i.opcode == "BRX"]
    assert jumps
    assert all(isinstance(jumps[0].operands[n], Label) for n in range(2, len(jumps[0].operands)))
