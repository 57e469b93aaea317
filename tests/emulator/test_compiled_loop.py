"""The core does what the handlers in NumPy do, bit by bit, with the code for each level of processors.

Every listed instruction runs on the same registers; none changes a register or a predicate that it is not known to
write.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np
import pytest

from drywarp.core.library import MODE_VARIABLE, level
from drywarp.execution.emulator import Limits, session
from drywarp.execution.emulator.machine import Machine
from drywarp.execution.emulator.session import Session
from drywarp.frontends.binary.sass import parse_listing
from drywarp.kernel.cfg import ends_block
from drywarp.kernel.instruction import Instruction
from drywarp.kernel.isa.nvidia.registers import written
from drywarp.kernel.kernel import Kernel, Resources
from drywarp.kernel.launch.launch import Launch
from tests.effort import some

from ..listing import listing
from .test_every_opcode import RUN

SPECIAL = np.array(
    "0 80000000 3f800000 bf800000 7f800000 ff800000 7fc00000 1 ffffffff 00400000 80400000 3f000000 40490fdb 47800000"
    " 3c003c00 7c00fc00 00010001 1f 20 5 3ff00000 7ff00000 40080000 00000200".split()
)
SPECIAL_WORDS = np.array([int(word, 16) for word in SPECIAL], np.uint32)
MODES = {1: ("",), 3: ("", "baseline"), 4: ("", "avx2", "baseline")}[level()]
"""What else this processor can run: the code for its own level, and that for any."""
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


class Filled(Machine):
    """A machine whose registers are filled before it runs, and looked at afterwards."""

    made: ClassVar[list[Filled]] = []

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        _fill(self)
        self.before = self.words.copy(), self.flags.copy()
        self.made.append(self)

    def changed(self) -> set[tuple[str, int]]:
        """Registers and predicates, uniform ones too, that are not what they were."""
        words, flags = self.words != self.before[0], self.flags != self.before[1]
        parts = {
            "R": words[: self.uniform_base].reshape(len(self.registers), -1),
            "UR": words[self.uniform_base : self.special_base].reshape(len(self.uniform), -1),
            "P": flags[: self.uniform_flags].reshape(len(self.predicates), -1),
            "UP": flags[self.uniform_flags :].reshape(len(self.uniform_predicates), -1),
        }
        return {(kind, int(n)) for kind, rows in parts.items() for n in np.flatnonzero(rows.any(axis=1))}


def _after(text: str, mode: str) -> Filled:
    """The machine of two warps after one instruction, in a mode of the core."""
    os.environ[MODE_VARIABLE] = mode
    code = parse_listing(listing(text, ".L_x_0:", "EXIT", "EXIT"))["k"].instructions
    kernel = Kernel("k", "k", "sm_80", code, (), 0x160, Resources(64, 4096), constant_banks={0: BANK})
    Session(kernel, Launch((1, 1, 1), (64, 1, 1), ()), Limits()).run([0])
    return Filled.made.pop()


def _parsed(text: str) -> Instruction:
    return parse_listing(listing(text, ".L_x_0:", "EXIT"))["k"].instructions[0]


def _computes(text: str) -> bool:
    """Whether registers and predicates are all that an instruction works on."""
    instruction = _parsed(text)
    return instruction.memory is None and instruction.class_ not in ELSEWHERE and not ends_block(instruction)


COMPUTING = {opcode: texts for opcode, texts in RUN.items() if any(map(_computes, texts))}


@pytest.mark.parametrize("opcode", some(COMPUTING, 2))
def test_all_give_the_same_bits(opcode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "Machine", Filled)
    monkeypatch.setenv(MODE_VARIABLE, "")
    for text in COMPUTING[opcode]:
        if not _computes(text):
            continue
        for guard in ("", "@!P2 "):
            numpys = _after(guard + text, "reference")
            for mode in MODES:
                mine = _after(guard + text, mode)
                for part in ("words", "flags", "guarded"):
                    np.testing.assert_array_equal(getattr(mine, part), getattr(numpys, part), err_msg=guard + text)
                assert mine.changed() <= written(_parsed(text)), guard + text
