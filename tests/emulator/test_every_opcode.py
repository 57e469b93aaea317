"""No instruction that compilers make is refused: each of a list is parsed, classed, decoded and run in both loops.

Opcode by opcode; what fails names the instruction. What it computes is the matter of `test_integer_values`,
`test_float_values` and `test_warp_values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from drywarp import surface, texture
from drywarp.errors import EmulationError, UnsupportedInstructionError
from drywarp.execution.emulator import Emulation, emulate
from drywarp.execution.emulator.decode import computed
from drywarp.frontends.binary.sass import parse_listing
from drywarp.kernel.isa.nvidia.opcodes import OPCODES
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


def for_lanes(text: str) -> str:
    """A uniform instruction as the one on lanes; empty where the table has none, or where it names no numbers."""
    opcode = opcode_of(text)
    if opcode[0] != "U" or opcode[1:] not in RUN or not re.search(r"\bU[RP]\d", text) or "[" in text:
        return ""
    return re.sub(r"\bU(?=R\d|RZ|P\d|PT)", "", text.replace(opcode, opcode[1:], 1))


WARPS = 32
NUMBERS = np.array(
    [
        0, 1, 2, 5, 31, 32, 255, 0x7FFF, 0x8000, 0xFFFF, 0x80FF7F01, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE,
        0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x40490FDB, 0x4B7FFFFF, 0xCB000001, 0x7F800000, 0xFF800000, 0x3C003C00,
    ], np.uint32,
)  # fmt: skip


FOUR = range(9, 13)
"""Numbers of the registers that hold a thread's or a warp's own numbers."""


def results(text: str, numbers: npt.NDArray[np.uint32], index: Sequence[str]) -> npt.NDArray[np.uint32]:
    """R8 to R11 and P0, or UR8 to UR11 and UP0, after the instruction, for each row of `numbers`; shape (rows, 5).

    `index` computes in R0 which row a thread takes: the first four numbers are in R9 to R12 and in UR9 to UR12. P0 and
    UP0 are true.
    """
    uniform = opcode_of(text)[0] == "U"
    code = [
        "S2R R0, SR_TID.X", *index, "MOV R2, c[0x0][0x160]", "MOV R3, c[0x0][0x164]",
        "IMAD.WIDE.U32 R2, R0, 0x20, R2", "LDG.E.128 R16, [R2.64]",
        *(f"MOV R{n}, R{n + 7}" for n in FOUR), *(f"R2UR UR{n}, R{n + 7}" for n in FOUR),
        "ISETP.EQ.U32.AND P0, PT, RZ, RZ, PT", "UISETP.EQ.U32.AND UP0, UPT, URZ, URZ, UPT", text,
        *(["USEL UR12, URZ, 0x1, UP0", *(f"MOV R{n}, UR{n}" for n in range(8, 13))] if uniform
          else ["SEL R12, RZ, 0x1, P0"]),
        "STG.E.128 [R2.64], R8", "STG.E [R2.64+0x10], R12", "EXIT",
    ]  # fmt: skip
    lines = parse_listing(listing(*code), "f")["k"]
    made = Kernel("k", "k", "sm_80", lines.instructions, (Parameter(0, 0, 8),), 0x160, Resources(32, 0))
    launch = Launch((1, 1, 1), (32 * WARPS, 1, 1), (array_buffer(numbers),))
    found = emulate(made, launch).buffer(0).reshape(-1, 8)
    return np.asarray(found[:, :5])


def computed_by_warps(text: str) -> npt.NDArray[np.uint32]:
    """`results` for numbers that all lanes of a warp share; shape (warps, 5)."""
    numbers = np.random.default_rng(7).choice(NUMBERS, (WARPS, 8))
    numbers[: len(NUMBERS), 0] = NUMBERS
    return results(text, numbers, ["SHF.R.U32.HI R0, RZ, 0x5, R0"])


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


def test_a_modifier_that_is_not_known_is_refused() -> None:
    accepted = []
    for opcode, texts in RUN.items():
        name, _, operands = texts[0].partition(" ")
        if "idle" in OPCODES[opcode].traits or name.startswith("@"):
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


ELSEWHERE = {
    **dict.fromkeys(("ARRIVES", "SYNCS"), "test_mbarrier.py"),
    **dict.fromkeys(("UBLKCP", "UBLKPF", "UBLKRED", "UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF"), "test_bulk_copy.py"),
    **dict.fromkeys(("UTCHMMA", "UTCIMMA", "UTCOMMA", "UTCQMMA", "UTCCP", "UTCSHIFT", "UTCBAR"), "test_tcgen05.py"),
    **dict.fromkeys(("LDTM", "STTM", "UTCATOMSWS"), "test_tcgen05.py"),
    **dict.fromkeys(("HGMMA", "IGMMA", "QGMMA", "BGMMA"), "test_wgmma.py"),
    **dict.fromkeys(("STAS", "REDAS", "UCGABAR_ARV"), "test_clusters.py"),
    **dict.fromkeys(("TLD4", "TXD"), "test_textures.py"),
    "UGETNEXTWORKID": "test_blackwell_memory.py",
    "BPT": "test_a_trap_ends_the_run",
}
"""Opcodes that need more than an instruction on its own, and the tests that compile programs with them."""


def test_each_opcode_that_is_computed_has_a_row_and_a_case() -> None:
    assert computed() <= OPCODES.keys()
    assert computed() - RUN.keys() == ELSEWHERE.keys()


UNIFORM = {text: text_for_lanes for texts in RUN.values() for text in texts if (text_for_lanes := for_lanes(text))}


@pytest.mark.parametrize("text", UNIFORM)
def test_a_uniform_opcode_does_what_its_lanes_would(text: str) -> None:
    """The rows U… and … of the table: a warp's number against the same number in each lane, on boundary values."""
    ours, lanes = (computed_by_warps(one) for one in (text, UNIFORM[text]))
    np.testing.assert_array_equal(ours, lanes, err_msg=f"{text} against {UNIFORM[text]}")


def works_lane_by_lane(opcode: str) -> bool:
    """Whether its row says that a lane's result depends on that lane's operands alone."""
    row = OPCODES[opcode]
    others = {"lanes", "jump", "ends", "exit"} & set(row.traits) or row.class_ in (
        "special_register",
        "tensor",
        "barrier",
    )
    return opcode[0] != "U" and row.memory is None and row.results not in ("none",) and not others


NOT_LANES = r"\bU[RP]|^@|R2\b|R22|\]\[R"
"""Operands that are a warp's, a guard's, the place of the result, or an address that has to be aligned."""
LANE_BY_LANE = {
    opcode: own
    for opcode, texts in RUN.items()
    if works_lane_by_lane(opcode) and (own := [text for text in texts if not re.search(NOT_LANES, text)])
}


@pytest.mark.parametrize("opcode", LANE_BY_LANE)
def test_a_lane_does_not_see_the_others(opcode: str) -> None:
    """Rows of the table without `lanes`: numbers that go to other lanes and warps give the same there."""
    rng = np.random.default_rng(7)
    numbers = rng.choice(NUMBERS, (32 * WARPS, 8))
    other = rng.permutation(32 * WARPS)
    for text in LANE_BY_LANE[opcode]:
        here, there = results(text, numbers, []), results(text, numbers[other], [])
        np.testing.assert_array_equal(here[other], there, err_msg=text)
