"""What the ELF file says about a kernel: resources, parameters, variables; and files that are damaged."""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drywarp.errors import InputFileError
from drywarp.frontends.binary.cubin import kernels_of
from drywarp.frontends.binary.elf import parse_elf
from drywarp.frontends.binary.signatures import declared_types, plain_name
from drywarp.frontends.cuda.nvrtc import compile_program
from drywarp.kernel.instruction import RZ, Register
from drywarp.kernel.kernel import Kernel, Parameter, Symbol
from tests.effort import examples
from tests.frontends.conftest import VARIABLES
from tests.listing import listing


def test_parameters_are_laid_out_like_a_struct(variables: Kernel) -> None:
    assert [(p.name, p.offset, p.size, p.pointer) for p in variables.parameters] == [
        ("letter", 0, 1, False),
        ("point", 8, 16, False),
        ("x", 24, 8, True),
        ("s", 32, 2, False),
        ("n", 36, 4, False),
    ]
    assert variables.parameter_base == {"sm_80": 0x160, "sm_90": 0x210}[variables.arch]
    # The template of bank 0 ends with the parameters.
    assert len(variables.constant_banks[0]) == variables.parameter_base + 40


def test_constant_and_device_variables(variables: Kernel) -> None:
    assert variables.symbols["coefficient"] == Symbol("constant", 0, 36, "float[]")
    assert len(variables.constant_banks[3]) == 36
    table, counter = variables.symbols["table"], variables.symbols["counter"]
    assert (table.space, table.size, counter.space, counter.size) == ("global", 16, "global", 4)
    image = variables.global_image
    assert struct.unpack_from("<4f", image, table.offset) == (1, 2, 3, 4)
    assert struct.unpack_from("<i", image, counter.offset) == (0,)
    # Bank 4 holds the addresses of both.
    assert {(r.bank, r.image_offset) for r in variables.relocations} == {(4, table.offset), (4, counter.offset)}
    assert len(variables.constant_banks[4]) == 16


def test_resources(resources: Kernel) -> None:
    found = resources.resources
    assert found.shared_bytes == 400
    assert found.shared_reserved == {"sm_80": 0, "sm_90": 1024}[resources.arch]
    assert found.max_threads == 192
    assert found.barriers == 4  # named barriers 0 to 3
    assert (found.local_bytes, found.spill_bytes) == (0, 0)
    used = [o.index for i in resources.instructions for o in i.operands if isinstance(o, Register)]
    assert max(n for n in used if n != RZ) < found.registers <= 32


def test_a_kernel_without_shared_memory_has_no_reserve(variables: Kernel) -> None:
    assert (variables.resources.shared_bytes, variables.resources.shared_reserved) == (0, 0)


def test_spills_are_reported(spilling: Kernel) -> None:
    found = spilling.resources
    assert found.registers == 24
    assert found.spill_bytes is not None
    assert found.spill_bytes >= 8
    stores = sum(i.memory.width for i in spilling.instructions if i.class_ == "local_store" and i.memory)
    loads = sum(i.memory.width for i in spilling.instructions if i.class_ == "local_load" and i.memory)
    assert found.spill_bytes == stores + loads  # straight code: what the compiler counts is what it wrote
    assert 0 < found.local_bytes <= stores  # a place in the frame may be used twice


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z5saxpyPKfPfi", "saxpy"),
        ("_ZN1a2bb6kernelEPf", "a::bb::kernel"),
        ("_Z5sgemmILi128EEvPf", "sgemm"),
        ("_Z5takes5PointPKi", "takes"),  # a parameter's type is no part of the name
        ("extern_c", "extern_c"),
    ],
)
def test_plain_names(symbol: str, name: str) -> None:
    assert plain_name(symbol) == name


@pytest.mark.parametrize(
    ("symbol", "types"),
    [
        ("_Z5saxpyPKfPfi", ["float*", "float*", "int"]),
        ("_ZN1a2bb6kernelERK6float4Py", ["float4*", "unsigned long long*"]),
        ("_Z3fooILi128EdEvPT0_S0_", ["double*", "double"]),
        ("_Z4rowsPA32_fPFviE", ["float*", "void*"]),
        ("_Z4nonev", []),
        ("extern_c", []),
        ("_Z9cut", []),
    ],
)
def test_types_by_the_symbol(symbol: str, types: list[str]) -> None:
    assert [one.type + "*" * one.pointer for one in declared_types(symbol)] == types


# Damaged files --------------------------------------------------------------------------------------------------


@cache
def cubin() -> bytes:
    return compile_program(VARIABLES, "k.cu", ["--gpu-architecture=sm_80"], ["variables"]).cubin


def read(data: bytes) -> dict[str, Kernel]:
    (name,) = [s.name for s in parse_elf(data, "f").symbols if "variables" in s.name and s.info & 15 == 2]
    return kernels_of(data, listing("EXIT", name=name), "sm_80", "f")


def test_the_undamaged_file_is_read() -> None:
    (kernel,) = read(cubin()).values()
    assert kernel.name == "variables"
    # A bare file knows no names, types by the mangled symbol, and spills only by the compiler's log.
    assert kernel.parameters[2] == Parameter(2, 24, 8, "", "float", pointer=True)
    assert kernel.resources.spill_bytes is None


@given(cut=st.floats(0, 1, exclude_max=True))
@example(cut=0.0)
def test_a_truncated_file_is_one_line(cut: float) -> None:
    with pytest.raises(InputFileError, match=r"^f: (truncated or damaged ELF file|not an ELF file.*)$"):
        parse_elf(cubin()[: int(cut * len(cubin()))], "f")


@settings(max_examples=examples(400, 4))
@given(where=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255))
def test_a_damaged_byte_never_escapes_as_another_error(where: float, value: int) -> None:
    damaged = bytearray(cubin())
    damaged[int(where * len(damaged))] = value
    name = "_Z9variablesc5PointPfsi"
    with suppress(InputFileError):
        kernels_of(bytes(damaged), listing("EXIT", name=name), "sm_80", "f")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"^f: not an ELF file \(expected a CUBIN\)$"),
        (b"#include <stdio.h>", r"^f: not an ELF file \(expected a CUBIN\)$"),
        (b"\x7fELF\x01\x01" + bytes(60), r"^f: expected a 64-bit little-endian ELF file$"),
        (b"\x7fELF\x02\x02" + bytes(60), r"^f: expected a 64-bit little-endian ELF file$"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\x3e\x00" + bytes(60), r"^f: ELF file for machine 62, expected CUDA .*$"),
    ],
)
def test_foreign_files(data: bytes, message: str) -> None:
    with pytest.raises(InputFileError, match=message):
        parse_elf(data, "f")


def test_kernels_compare_by_value(variables: Kernel) -> None:
    assert replace(variables) == variables
