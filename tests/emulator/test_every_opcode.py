"""No instruction that compilers make is refused: each of a list is parsed, classed, decoded and run once."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from drywarp import surface, texture
from drywarp.emulator import emulate
from drywarp.errors import EmulationError, UnsupportedInstructionError
from drywarp.frontends.sass import parse_listing
from drywarp.kernel.kernel import Kernel, Parameter, Resources
from drywarp.kernel.launch import Launch, array_buffer

from ..listing import listing

LIST = Path(__file__).with_name("opcodes.txt")
COUNTED = Path(__file__).parents[3] / "shared" / "sass_opcodes.csv"
PRELUDE = ("MOV R2, c[0x0][0x160]", "MOV R3, c[0x0][0x164]", "MOV R22, 0x60", "MOV R24, 0x1", "UMOV UR24, 0x1")
assert len(PRELUDE) + 1 == 0x60 // 16, "R22 holds the address of what follows the instruction"


def expanded(text: str) -> Iterator[str]:
    """`A{,.B} x` as `A x` and `A.B x`, for every group of braces; commas within brackets do not part."""
    match = re.search(r"\{([^{}]*)\}", text)
    if match is None:
        yield text
        return
    for choice in match[1].split(","):
        yield from expanded(text[: match.start()] + choice + text[match.end() :])


def instructions() -> list[str]:
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return [text for line in lines for text in expanded(line)]


ALL = instructions()


def kernel(text: str) -> Kernel:
    code = parse_listing(listing(*PRELUDE, text, ".L_x_0:", "EXIT", "EXIT"))["k"]
    parameters = tuple(Parameter(n, 8 * n, 8) for n in range(3))
    return Kernel("k", "k", "sm_80", code.instructions, parameters, 0x160, Resources(32, 4096))


def run(text: str) -> None:
    data = array_buffer(np.zeros(64, np.uint32))
    arguments = (data, texture(np.zeros((4, 4), np.float32)), surface(np.zeros((4, 4), np.float32)))
    emulate(kernel(text), Launch((1, 1, 1), (32, 1, 1), arguments))


@pytest.mark.parametrize("text", [text for text in ALL if text[0] not in "!~"])
def test_it_runs(text: str) -> None:
    run(text)


@pytest.mark.parametrize("text", [text[1:] for text in ALL if text[0] == "!"])
def test_it_ends_the_run(text: str) -> None:
    with pytest.raises(EmulationError, match="trap by block"):
        run(text)


@pytest.mark.parametrize("text", [text for text in ALL if "LDTM" not in text])
def test_it_has_a_class(text: str) -> None:
    assert kernel(text.lstrip("!~")).instructions[len(PRELUDE)].class_ != "unknown"


_WITHOUT_EFFECT = frozenset("CCTL CGAERRBAR DEPBAR ERRBAR FENCE LDGDEPBAR MEMBAR NOP UVIRTCOUNT".split())
"""Opcodes that do nothing here, whatever their modifiers say."""


@pytest.mark.parametrize("opcode", sorted({text.split()[0].split(".")[0] for text in ALL if text[0] not in "!~@"}))
def test_a_modifier_that_is_not_known_is_refused(opcode: str) -> None:
    if opcode in _WITHOUT_EFFECT:
        pytest.skip("has no effect")
    text = next(text for text in ALL if text.split()[0].split(".")[0] == opcode)
    name, _, operands = text.partition(" ")
    with pytest.raises(UnsupportedInstructionError, match=r"modifier \.UNHEARD"):
        run(f"{name}.UNHEARD {operands}")


def test_the_list_is_complete() -> None:
    if not COUNTED.is_file():
        pytest.skip("the count of opcodes in compiled programs is not here")
    listed = {kernel(text.lstrip("!~")).instructions[len(PRELUDE)].full_opcode for text in ALL}
    with COUNTED.open() as file:
        counted = {row["opcode"] for row in csv.DictReader(file)}
    # The count cut names at their first small letter.
    cut = {"DMMA.8": "DMMA.8x8x4", "VIMNMX.U16": "VIMNMX.U16x2", "VIMNMX.S16": "VIMNMX.S16x2"}
    cut["ATOM.E.ADD.F16"] = "ATOM.E.ADD.F16x2.RN.STRONG.GPU"
    assert {cut.get(name, name) for name in counted} - listed == set()
