"""No instruction that compilers make is refused: each of a list is parsed, classed, decoded and run in both loops.

Opcode by opcode; what fails names the instruction. What it computes is the matter of `test_integer_values`,
`test_float_values` and `test_warp_values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from drywarp import surface, texture
from drywarp.errors import EmulationError, UnsupportedInstructionError
from drywarp.execution.emulator import Emulation, emulate
from drywarp.frontends.binary.sass import parse_listing
from drywarp.kernel.kernel import Kernel, Parameter, Resources
from drywarp.kernel.launch.launch import Argument, Launch, array_buffer

from ..listing import listing

LIST = Path(__file__).with_name("opcodes.txt")
COUNTED = Path(__file__).with_name("counted_opcodes.txt")
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


def lines_of(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


ALL = [text for line in lines_of(LIST) for text in expanded(line)]


def opcode_of(text: str) -> str:
    """The bare opcode of an instruction, its guard and the list's marks left out."""
    return re.sub(r"^[!~]?(@\S+ )?", "", text).split()[0].split(".")[0]


def by_opcode(texts: list[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(opcode_of(text), []).append(text)
    return groups


RUN = by_opcode([text for text in ALL if text[0] not in "!~"])


def kernel(text: str) -> Kernel:
    """The instruction, and after its label R8 to R11 are stored where the buffer ends."""
    code = parse_listing(listing(*PRELUDE, text, ".L_x_0:", "STG.E.128 [R2.64+0xf0], R8", "EXIT", "EXIT"))["k"]
    parameters = tuple(Parameter(n, 8 * n, 8) for n in range(3))
    return Kernel("k", "k", "sm_80", code.instructions, parameters, 0x160, Resources(32, 4096))


def arguments() -> tuple[Argument, ...]:
    data = array_buffer(np.arange(1, 65, dtype=np.uint32))
    texels = np.arange(16, dtype=np.float32).reshape(4, 4)
    return data, texture(texels), surface(texels)


def run(text: str, compiled: bool = True) -> Emulation:
    return emulate(kernel(text), Launch((1, 1, 1), (32, 1, 1), arguments()), compiled=compiled)


@pytest.mark.parametrize("opcode", RUN)
def test_it_does_the_same_in_both_loops(opcode: str) -> None:
    """What it loads, what memory holds afterwards, and the instructions that were executed."""
    for text in RUN[opcode]:
        mine, numpys = run(text), run(text, compiled=False)
        np.testing.assert_array_equal(mine.buffer(0), numpys.buffer(0), err_msg=text)
        np.testing.assert_array_equal(
            mine.profile.thread_instructions, numpys.profile.thread_instructions, err_msg=text
        )
        assert mine.profile.thread_instructions[0, : len(PRELUDE)].tolist() == [32] * len(PRELUDE), text


def test_a_trap_ends_the_run() -> None:
    for text in (text[1:] for text in ALL if text[0] == "!"):
        with pytest.raises(EmulationError, match="trap by block"):
            run(text)


def test_it_has_a_class() -> None:
    texts = [text.lstrip("!~") for text in ALL if "LDTM" not in text]
    assert [text for text in texts if kernel(text).instructions[len(PRELUDE)].class_ == "unknown"] == []


_WITHOUT_EFFECT = frozenset("CCTL CGAERRBAR DEPBAR ERRBAR FENCE LDGDEPBAR MEMBAR NOP UVIRTCOUNT".split())
"""Opcodes that do nothing here, whatever their modifiers say."""


def test_a_modifier_that_is_not_known_is_refused() -> None:
    accepted = []
    for opcode, texts in RUN.items():
        name, _, operands = texts[0].partition(" ")
        if opcode in _WITHOUT_EFFECT or name.startswith("@"):
            continue
        try:
            run(f"{name}.UNHEARD {operands}")
            accepted.append(opcode)
        except UnsupportedInstructionError as error:
            accepted += [] if "modifier .UNHEARD" in str(error) else [f"{opcode}: {error}"]
    assert accepted == []


def counted() -> set[str]:
    """Names of opcodes with their modifiers; a line that is indented goes on with the one before."""
    names: set[str] = set()
    opcode = ""
    for line in lines_of(COUNTED):
        words = line.split()
        if line[0] != " ":
            opcode = words.pop(0)
        names |= {opcode + ("" if modifiers == "-" else modifiers) for modifiers in words}
    return names


def test_the_list_is_complete() -> None:
    listed = {kernel(text.lstrip("!~")).instructions[len(PRELUDE)].full_opcode for text in ALL}
    assert len(counted()) == 640
    assert counted() - listed == set()
