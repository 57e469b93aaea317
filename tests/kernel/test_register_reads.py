"""Reads of the register file's banks: the examples of Huerta et al. 2025, Listings 1 and 4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.instruction import ControlBits, Instruction, Register
from drywarp.kernel.isa.nvidia.registers import register_reads

_PLACES = (24, 32, 64)


def instruction(opcode: str, result: int, sources: Sequence[int], reuse: int = 0, class_: str = "fp32") -> Instruction:
    encoding = sum(register << place for register, place in zip(sources, _PLACES, strict=False))
    return Instruction(
        pc=0,
        opcode=opcode,
        modifiers=(),
        operands=(Register(result), *(Register(index) for index in sources)),
        guard=None,
        class_=class_,
        memory=None,
        control=ControlBits(1, True, None, None, 0, reuse),
        source=None,
        text="",
        encoding=encoding,
    )


def test_banks_are_even_and_odd_registers() -> None:
    code = [instruction("FFMA", 1, s) for s in ((2, 4, 6), (2, 3, 4), (3, 5, 255), (8, 8, 8), (255, 255, 255))]
    assert register_reads(code) == [(3, 0), (2, 1), (0, 2), (1, 0), (0, 0)]


def test_a_value_is_kept_for_one_read_of_its_place_and_bank() -> None:
    code = [
        instruction("IADD3", 1, (2, 3, 4), reuse=0b001, class_="int"),
        instruction("FFMA", 5, (2, 7, 8)),  # R2 is found, and gone
        instruction("IADD3", 10, (2, 12, 13), class_="int"),
    ]
    assert register_reads(code) == [(2, 1), (1, 1), (2, 1)]


def test_a_value_that_is_marked_again_stays() -> None:
    code = [
        instruction("IADD3", 1, (2, 3, 4), reuse=0b001, class_="int"),
        instruction("FFMA", 5, (2, 7, 8), reuse=0b001),
        instruction("IADD3", 10, (2, 12, 13), class_="int"),
    ]
    assert register_reads(code) == [(2, 1), (1, 1), (1, 1)]


def test_another_place_does_not_find_it_and_another_bank_leaves_it() -> None:
    code = [
        instruction("IADD3", 1, (2, 3, 4), reuse=0b001, class_="int"),
        instruction("FFMA", 5, (7, 2, 8)),
        instruction("IADD3", 10, (2, 12, 13), class_="int"),
    ]
    assert register_reads(code) == [(2, 1), (2, 1), (1, 1)]


def test_another_register_of_the_bank_in_its_place_drives_it_out() -> None:
    code = [
        instruction("IADD3", 1, (2, 3, 4), reuse=0b001, class_="int"),
        instruction("FFMA", 5, (4, 7, 8)),
        instruction("IADD3", 10, (2, 12, 13), class_="int"),
    ]
    assert register_reads(code) == [(2, 1), (2, 1), (2, 1)]


def test_nothing_is_kept_beyond_a_branch() -> None:
    code = [
        instruction("FFMA", 1, (2, 3, 5), reuse=0b001),
        instruction("BRA", 255, (), class_="branch"),
        instruction("FFMA", 1, (2, 3, 5)),
    ]
    assert register_reads(code)[2] == (1, 2)


def test_compiled_code_is_read_by_its_marks(tmp_path: Path) -> None:
    """The compiler marks operands so that a product of small matrices seldom reads three registers of a bank."""
    source = tmp_path / "outer.cu"
    source.write_text(
        "__global__ void outer(float* o, const float* a, int n) { float c[8][8] = {};"
        " for (int k = 0; k < n; ++k) { float x[8], y[8]; for (int i = 0; i < 8; ++i)"
        " { x[i] = a[k * 16 + i]; y[i] = a[k * 16 + 8 + i]; }"
        " for (int i = 0; i < 8; ++i) for (int j = 0; j < 8; ++j) c[i][j] += x[i] * y[j]; }"
        " for (int i = 0; i < 64; ++i) o[i * 32 + threadIdx.x] = c[i / 8][i % 8]; }"
    )
    kernel = compile_cuda(source, arch="sm_86", options=CudaOptions())
    found = [
        (reads, i.control.reuse)
        for i, reads in zip(kernel.instructions, register_reads(kernel.instructions), strict=True)
        if i.opcode == "FFMA"
    ]
    assert len(found) >= 64
    assert any(reuse for _, reuse in found)
    assert 0.9 < sum(max(reads) for reads, _ in found) / len(found) < 1.6
