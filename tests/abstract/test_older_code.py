"""The few opcodes of Maxwell and Pascal code that `benchmarks/older_code.py` runs, on listings written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.older_code import LANES, Line, Memory, Warp, Words, lines_of
from benchmarks.rodinia_older import counts, graph
from hypothesis import given
from hypothesis import strategies as st

WORD = st.integers(0, 2**32 - 1)


def listing(text: str) -> list[Line]:
    """A kernel with these lines; one that starts with a dot is a label."""
    rows, at = ['\t.section\t.text.k,"ax",@progbits'], 8
    for line in text.strip().splitlines():
        rows.append(line.strip() if line.strip().startswith(".") else f"        /*{at:04x}*/   {line.strip()} ;")
        at += 8
    return lines_of("\n".join(rows), "k")


def ran(text: str, **registers: int | Words) -> Warp:
    code = listing(text)
    lanes = np.arange(LANES, dtype=np.uint32)
    memory = Memory({1 << 32: np.arange(64, dtype=np.uint32)}, np.zeros(64, np.uint32))
    warp = Warp(code, {0: np.zeros(128, np.uint32)}, {"SR_TID.X": lanes}, memory, lanes < LANES)
    for name, value in registers.items():
        warp.registers[name] = np.broadcast_to(np.asarray(value, np.uint32), LANES).copy()
    for _ in warp.run():
        pass
    return warp


def value(warp: Warp, name: str) -> int:
    return int(warp.registers[name][0])


@given(WORD, WORD)
def test_three_of_xmad_are_a_multiplication(a: int, b: int) -> None:
    code = "XMAD R2, R0, R1, RZ\nXMAD.MRG R3, R0, R1.H1, RZ\nXMAD.PSL.CBCC R4, R0.H1, R3.H1, R2\nEXIT"
    assert value(ran(code, R0=a, R1=b), "R4") == a * b % 2**32


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**40))
def test_an_address_is_a_base_and_four_times_an_index(index: int, base: int) -> None:
    code = "SHR R3, R0, 0x1e\nISCADD R4.CC, R0, R1, 0x2\nIADD.X R5, R3, R2\nEXIT"
    warp = ran(code, R0=index % 2**32, R1=base % 2**32, R2=base >> 32)
    assert value(warp, "R5") << 32 | value(warp, "R4") == (base + 4 * index) % 2**64
    code = "SHR R3, R0, 0x1f\nLEA R4.CC, R0, R1, 0x2\nLEA.HI.X R5, R0, R2, R3, 0x2\nEXIT"
    warp = ran(code, R0=index % 2**32, R1=base % 2**32, R2=base >> 32)
    assert value(warp, "R5") << 32 | value(warp, "R4") == (base + 4 * index) % 2**64


DIVERGING = """
S2R R0, SR_TID.X
SSY `(.L_x_2)
ISETP.GE.U32.AND P0, PT, R0, 0xa, PT
@P0 BRA `(.L_x_1)
IADD32I R1, R0, 0x64
SYNC (*"BRANCH_TARGETS .L_x_2"*)
.L_x_1:
MOV32I R1, 0x7
@P0 SYNC (*"BRANCH_TARGETS .L_x_2"*)
.L_x_2:
SHL R2, R0, 0x2
STS [R2], R1
EXIT
"""


def test_both_sides_of_a_branch_run_and_meet_again() -> None:
    warp = ran(DIVERGING)
    assert warp.registers["R1"].tolist() == [100 + lane if lane < 10 else 7 for lane in range(LANES)]
    assert [lanes for _, lanes, _ in warp.history] == [32, 32, 32, 22, 10, 10, 22, 22, 32, 32, 32]
    assert warp.memory.shared[:12].tolist() == [*range(100, 110), 7, 7]
    assert warp.history[-2][2] == frozenset(range(LANES))


LOOP = """
MOV R1, RZ
MOV32I R2, 0x0
MOV32I R3, 0x1
.L_x_0:
{ LDG.E R4, [R2+0x8]
IADD32I R1, R1, 0x1 }
ISETP.NE.AND P0, PT, R1, 0x5, PT
IADD R5, R5, R4
@P0 BRA `(.L_x_0)
EXIT
"""


def test_loops_stay_loops_and_wait_for_what_they_read() -> None:
    warp = ran(LOOP)
    assert value(warp, "R5") == 5 * 2
    its = graph(listing(LOOP), warp.history)
    assert counts(its) == {"alu": 3 + 5 * 4 + 1, "load": 5}
    names = {node.name: node for node in its.nodes}
    load, add = names["load1"], names["alu6"]
    assert {its.nodes[at].name for at in load.needs} == {"alu2", "alu3"}  # the address
    assert "load1" in {its.nodes[at].name for at in add.needs}
    assert "alu6" in {its.nodes[at].name for at in add.previous}
    assert {its.nodes[at].name for at in load.previous} == {"alu7"}  # the branch


def test_what_is_not_known_is_said() -> None:
    with pytest.raises(ValueError, match="VADD: an opcode that is not known"):
        ran("VADD R0, R1, R2\nEXIT")
    with pytest.raises(ValueError, match="expected one in an array"):
        ran("LDG.E R0, [R2]\nEXIT", R2=4)
