"""Assembly as LLVM prints it, read into kernels."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.errors import DrywarpError, InputFileError
from drywarp.frontends.amd.code import kernels_of, parse_operand, split_operands
from drywarp.kernel.instruction import Immediate, Label, Operand, RegisterRange, Special

from .kernels import FOLDER, all_committed, committed, kernel_of, wrapped

SAXPY = (FOLDER / "saxpy-gfx90a.s").read_text()


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("v7", RegisterRange("v", 7)),
        ("s[4:5]", RegisterRange("s", 4, 2)),
        ("a[0:15]", RegisterRange("a", 0, 16)),
        ("v[3]", RegisterRange("v", 3)),
        ("-v3", RegisterRange("v", 3, negate=True)),
        ("-|v3|", RegisterRange("v", 3, negate=True, absolute=True)),
        ("abs(v3)", RegisterRange("v", 3, absolute=True)),
        ("vcc", RegisterRange("vcc", 0, 2)),
        ("exec_hi", RegisterRange("exec", 1)),
        ("m0", RegisterRange("m0", 0)),
        ("0x24", Immediate(0x24, "0x24")),
        ("-16", Immediate(-16, "-16")),
        ("-0.5", Immediate(-0.5, "-0.5")),
        ("1.0", Immediate(1.0, "1.0")),
        (".LBB0_2", Label(".LBB0_2", 48)),
        ("off", Special("off")),
        ("src_shared_base", Special("src_shared_base")),
    ],
)
def test_operands(text: str, operand: Operand) -> None:
    assert parse_operand(text, {".LBB0_2": 48}) == operand


@pytest.mark.parametrize(
    ("text", "operands", "modifiers"),
    [
        ("v[0:1], off offset:16 glc", ["v[0:1]", "off"], ["offset:16", "glc"]),
        ("v1, v2, s[0:1]", ["v1", "v2", "s[0:1]"], []),
        ("v0, |v1|, -|v2| clamp mul:2", ["v0", "|v1|", "-|v2|"], ["clamp", "mul:2"]),
        ("v0, v1 quad_perm:[1,0,3,2] row_mask:0xf", ["v0", "v1"], ["quad_perm:[1,0,3,2]", "row_mask:0xf"]),
        ("v[0:1], v[2:3], v[4:5] op_sel:[0,1] op_sel_hi:[1,0]", ["v[0:1]", "v[2:3]", "v[4:5]"],
         ["op_sel:[0,1]", "op_sel_hi:[1,0]"]),
        ("", [], []),
    ],
)  # fmt: skip
def test_operands_and_what_follows_them(text: str, operands: list[str], modifiers: list[str]) -> None:
    assert split_operands(text) == (operands, modifiers)


def test_resources_arguments_and_first_registers() -> None:
    kernel = committed("saxpy-gfx90a")
    assert (kernel.name, kernel.arch, kernel.warp_size) == ("saxpy", "gfx90a", 64)
    assert (kernel.resources.registers, kernel.resources.scalar_registers) == (6, 16)
    assert (kernel.resources.shared_bytes, kernel.resources.local_bytes) == (0, 0)
    assert [(p.name, p.type, p.offset, p.size, p.pointer) for p in kernel.parameters] == [
        ("n", "int", 0, 4, False),
        ("a", "float", 4, 4, False),
        ("x", "float", 8, 8, True),
        ("y", "float", 16, 8, True),
    ]
    # Four registers of the stack's descriptor, two of the arguments' address, then the group's number.
    assert kernel.abi["kernarg_segment_ptr"] == 4
    assert kernel.abi["workgroup_id_x"] == 6
    assert kernel.abi["hidden_group_size_x"] == 36


def test_data_shared_by_a_group_and_both_kinds_of_vector_registers() -> None:
    assert committed("tiled_matmul-gfx942").resources.shared_bytes == 2048
    text = wrapped("s_nop 0").replace(".vgpr_count:     8", ".vgpr_count:     40\n    .agpr_count:     16")
    # `vgpr_count` holds both on machines with one file.
    assert kernels_of(text, "k.s")["k"].resources.registers == 40


def test_names_that_yaml_would_take_for_booleans() -> None:
    text = SAXPY.replace(".name:           n\n", ".name:           !str n\n")
    assert [p.name for p in kernels_of(text, "k.s")["saxpy"].parameters] == ["n", "a", "x", "y"]


def test_instructions_labels_and_source_lines() -> None:
    kernel = committed("saxpy-gfx90a")
    loads = [i for i in kernel.instructions if i.opcode == "global_load_dword"]
    assert [(i.source.file, i.source.line) for i in loads if i.source] == [("examples/amd/saxpy.cl", 7)] * 2
    (jump,) = [i for i in kernel.instructions if i.opcode == "s_cbranch_execz"]
    (label,) = jump.operands
    assert isinstance(label, Label)
    assert kernel.instructions[label.target // 16].opcode == "s_endpgm"
    fused = next(i for i in kernel.instructions if i.opcode == "v_fmac_f32")
    assert fused.modifiers == ("e32",)
    assert fused.operands == (RegisterRange("v", 5), RegisterRange("s", 1), RegisterRange("v", 4))


@pytest.mark.parametrize("name", all_committed())
def test_every_line_of_code_becomes_an_instruction(name: str) -> None:
    text = (FOLDER / f"{name}.s").read_text()
    code = text[: text.index(".amdhsa_kernel")]
    lines = [line for line in code.splitlines() if re.match(r"\t[a-z]", line)]
    kernel = committed(name)
    assert len(kernel.instructions) == len(lines)
    assert not [i.text for i in kernel.instructions if i.class_ == "unknown"]
    assert not [o for i in kernel.instructions for o in i.operands if isinstance(o, Label) and o.target < 0]


@pytest.mark.parametrize("name", all_committed())
def test_registers_stay_within_what_the_compiler_states(name: str) -> None:
    kernel = committed(name)
    ranges = [o for i in kernel.instructions for o in i.operands if isinstance(o, RegisterRange)]
    most = max(o.index + o.count for o in ranges if o.file == "v")
    assert most <= kernel.resources.registers
    assert max(o.index + o.count for o in ranges if o.file == "s") <= kernel.resources.scalar_registers


def test_stack_through_the_descriptor_is_local_memory() -> None:
    kernel = kernels_of(
        wrapped("buffer_store_dword v0, off, s[0:3], 0 offset:4\nbuffer_load_dword v1, v2, s[4:7], 0 offen").replace(
            "\t\t.amdhsa_user_sgpr_count 2",
            "\t\t.amdhsa_user_sgpr_count 6\n\t\t.amdhsa_user_sgpr_private_segment_buffer 1",
        ),
        "k.s",
    )["k"]
    assert [i.class_ for i in kernel.instructions[:2]] == ["local_store", "global_load"]


@pytest.mark.parametrize("slots", [0, 3])
def test_slots_of_s_nop(slots: int) -> None:
    assert kernel_of(f"s_nop {slots}").instructions[0].control.stall == slots + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int main() {}", "expected assembly with an .amdhsa_kernel directive"),
        (SAXPY.replace('\t.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"\n', ""), "no .amdgcn_target directive"),
        (SAXPY.replace("\nsaxpy:\n", "\nother:\n"), "kernel saxpy has no code"),
        (SAXPY.replace(".vgpr_count:     6", ".vgpr_count:     many"), "vgpr_count"),
    ],
)
def test_what_is_no_assembly_of_a_kernel(text: str, message: str) -> None:
    with pytest.raises(InputFileError, match=re.escape(message)) as raised:
        kernels_of(text, "k.s")
    assert "\n" not in str(raised.value)


LINES = SAXPY.splitlines()


@given(st.integers(0, len(LINES) - 1), st.text("abvs[]:,0x|-.\t {}\"'", max_size=20), st.booleans())
def test_a_spoilt_line_is_read_or_refused(number: int, instead: str, cut: bool) -> None:
    lines = [*LINES[:number], instead, *([] if cut else LINES[number + 1 :])]
    try:
        found = kernels_of("\n".join(lines), "k.s")
    except DrywarpError as error:
        assert "k.s" in str(error)  # noqa: PT017
    else:
        assert all(kernel.instructions for kernel in found.values())
