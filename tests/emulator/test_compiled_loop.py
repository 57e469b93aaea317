"""The compiled loop does what the handlers in NumPy do, bit by bit: every listed instruction on the same registers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from drywarp.emulator import Limits, session
from drywarp.emulator.machine import Machine
from drywarp.emulator.session import Session
from drywarp.frontends.sass import parse_listing
from drywarp.kernel.cfg import ends_block
from drywarp.kernel.kernel import Kernel, Resources
from drywarp.kernel.launch import Launch

from ..listing import listing
from .test_every_opcode import ALL

SPECIAL = np.array(
    "0 80000000 3f800000 bf800000 7f800000 ff800000 7fc00000 1 ffffffff 00400000 80400000 3f000000 40490fdb 47800000"
    " 3c003c00 7c00fc00 00010001 1f 20 5 3ff00000 7ff00000 40080000 00000200".split()
)
SPECIAL_WORDS = np.array([int(word, 16) for word in SPECIAL], np.uint32)
ELSEWHERE = {"texture", "constant_load", "bulk_copy", "wgmma", "mbarrier"}
BANK = np.random.default_rng(5).integers(0, 256, 4096).astype(np.uint8).tobytes()


def _fill(machine: Machine) -> None:
    """Registers of all kinds: any bits, numbers of moderate size, small integers, and special values."""
    rng = np.random.default_rng(7)
    count = machine.special_base
    words = rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    floats = (rng.random(count, np.float32) * np.float32(8) - np.float32(4)).view(np.uint32)
    small = rng.integers(0, 40, count).astype(np.uint32)
    special = SPECIAL_WORDS[rng.integers(0, len(SPECIAL_WORDS), count)]
    machine.words[:count] = np.choose(rng.integers(0, 4, count), [words, floats, small, special])
    machine.flags[:] = rng.integers(0, 2, len(machine.flags))


def _after(text: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[npt.NDArray[np.uint32], ...]:
    """All registers and predicates of two warps after one instruction."""
    made: list[Machine] = []

    class Filled(Machine):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            _fill(self)
            made.append(self)

    monkeypatch.setattr(session, "Machine", Filled)
    code = parse_listing(listing(text, ".L_x_0:", "EXIT", "EXIT"))["k"].instructions
    kernel = Kernel("k", "k", "sm_80", code, (), 0x160, Resources(64, 4096), constant_banks={0: BANK})
    Session(kernel, Launch((1, 1, 1), (64, 1, 1), ()), Limits(), compiled).run([0])
    return made[0].words, made[0].flags, made[0].guarded


def _computes(text: str) -> bool:
    """Whether registers and predicates are all that an instruction works on."""
    instruction = parse_listing(listing(text, ".L_x_0:", "EXIT"))["k"].instructions[0]
    return instruction.memory is None and instruction.class_ not in ELSEWHERE and not ends_block(instruction)


@pytest.mark.parametrize("text", [text for text in ALL if text[0] not in "!~" and _computes(text)])
def test_both_give_the_same_bits(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for guard in ("", "@!P2 "):
        expected = _after(guard + text, False, monkeypatch)
        for mine, numpys in zip(_after(guard + text, True, monkeypatch), expected, strict=True):
            np.testing.assert_array_equal(mine, numpys)
