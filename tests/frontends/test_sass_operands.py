"""Every shape of operand that nvdisasm prints becomes the right plain data."""

from __future__ import annotations

import math

import pytest

from drywarp.frontends.binary.sass_operands import parse_operand
from drywarp.kernel.instruction import (
    PT,
    RZ,
    URZ,
    Address,
    Constant,
    Immediate,
    Label,
    Operand,
    Predicate,
    Register,
    Special,
)

LABELS = {".L_x_0": 0x40, "$f": 0x80}

R2, UR4 = Register(2), Register(4, uniform=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R254", Register(254)),
        ("RZ", Register(RZ)),
        ("-RZ", Register(RZ, negate=True)),
        ("UR62", Register(62, uniform=True)),
        ("URZ", Register(URZ, uniform=True)),
        ("R4.reuse", Register(4)),
        ("-R7.reuse", Register(7, negate=True)),
        ("|R7|", Register(7, absolute=True)),
        ("-|R7|", Register(7, negate=True, absolute=True)),
        ("~R7", Register(7, invert=True)),
        ("~URZ", Register(URZ, uniform=True, invert=True)),
        ("R7.H1_H1", Register(7, select="H1_H1")),
        ("-|R3|.H0_H0", Register(3, negate=True, absolute=True, select="H0_H0")),
        ("|R3.H0_H0|", Register(3, absolute=True, select="H0_H0")),
        ("R3.reuse.H0_H0", Register(3, select="H0_H0")),
        ("R7.B3", Register(7, select="B3")),
        ("R7.SIGN", Register(7, select="SIGN")),
        ("R2.F32", Register(2, select="F32")),
        ("P0", Predicate(0)),
        ("PT", Predicate(PT)),
        ("!PT", Predicate(PT, negate=True)),
        ("!UP6", Predicate(6, uniform=True, negate=True)),
        ("UPT", Predicate(PT, uniform=True)),
        ("PR", Predicate(-1)),
    ],
)
def test_registers_and_predicates(text: str, expected: Operand) -> None:
    assert parse_operand(text, {}) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x10", 16),
        ("-0x10", -16),
        ("0xffffffff", 0xFFFFFFFF),
        ("1", 1.0),
        ("0.63661974668502807617", 0.63661974668502807617),
        ("-7.5497894158615963534e-08", -7.5497894158615963534e-08),
        ("1.4012984643248170709e-45", 1.4012984643248170709e-45),
        ("+INF", math.inf),
        ("-INF", -math.inf),
    ],
)
def test_immediates(text: str, value: float) -> None:
    operand = parse_operand(text, {})
    assert operand == Immediate(value, text)
    assert isinstance(operand, Immediate)
    # Hexadecimal text is an integer, everything else a float: the opcode decides on the bits by that.
    assert isinstance(operand.value, int) == ("0x" in text)


@pytest.mark.parametrize("text", ["+QNAN", "-QNAN"])
def test_nan_keeps_its_spelling(text: str) -> None:
    operand = parse_operand(text, {})
    assert isinstance(operand, Immediate)
    assert math.isnan(operand.value)
    assert operand.text == text


def test_negative_zero_keeps_its_sign() -> None:
    operand = parse_operand("-0", {})
    assert isinstance(operand, Immediate)
    assert math.copysign(1, operand.value) == -1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c[0x0][0x160]", Constant(0, 0x160)),
        ("-c[0x0][0x160]", Constant(0, 0x160, negate=True)),
        ("|c[0x0][0x160]|", Constant(0, 0x160, absolute=True)),
        ("-|c[0x0][0x160]|", Constant(0, 0x160, negate=True, absolute=True)),
        ("~c[0x0][0x160]", Constant(0, 0x160, invert=True)),
        ("c[0x0][0x160].H0_H0", Constant(0, 0x160, select="H0_H0")),
        ("c[0x0][R11+0x2ac]", Constant(0, 0x2AC, Register(11))),
        ("c[0x2][R0+-0xc]", Constant(2, -0xC, Register(0))),
        ("c[0x3][UR6]", Constant(3, 0, Register(6, uniform=True))),
        ("c[0x3][UR6+0x8]", Constant(3, 8, Register(6, uniform=True))),
        ("c[0x4][RZ]", Constant(4, 0)),
        ("cx[UR4][0x10]", Constant(0, 0x10, bank_register=UR4)),
    ],
)
def test_constants(text: str, expected: Operand) -> None:
    assert parse_operand(text, {}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[R2]", Address(R2)),
        ("[R2.64]", Address(R2, base_wide=True)),
        ("[R2.64+0x10]", Address(R2, base_wide=True, offset=0x10)),
        ("[R1+-0x8]", Address(Register(1), offset=-8)),
        ("[RZ]", Address(Register(RZ))),
        ("[0x40]", Address(offset=0x40)),
        ("[UR4]", Address(uniform=UR4)),
        ("[UR4+0x8]", Address(uniform=UR4, offset=8)),
        ("[R0.X4+0x100]", Address(Register(0), scale=4, offset=0x100)),
        ("[R0.X16]", Address(Register(0), scale=16)),
        ("[R0+UR5+0x10]", Address(Register(0), uniform=Register(5, uniform=True), offset=0x10)),
        ("[R0.X4+UR5]", Address(Register(0), scale=4, uniform=Register(5, uniform=True))),
        ("[R2.U32+UR4+0x8]", Address(R2, base_unsigned32=True, uniform=UR4, offset=8)),
        ("[R2+UR4.64]", Address(R2, uniform=UR4, uniform_wide=True)),
        ("desc[UR4][R2.64+0x10]", Address(R2, base_wide=True, offset=0x10, descriptor=UR4)),
        (
            "desc[UR4][R2.U32+UR6+-0x4]",
            Address(R2, base_unsigned32=True, uniform=Register(6, uniform=True), offset=-4, descriptor=UR4),
        ),
        ("tmem[0x100]", Address(Register(RZ), offset=0x100, descriptor=Register(RZ, uniform=True))),
        ("gdesc[UR8]", Address(Register(RZ), descriptor=Register(8, uniform=True))),
        ("[R4.X4+`((sym + 0x200))]", Address(Register(4), scale=4, offset=0x200, symbol="sym")),
        ("[R4+`(sym)]", Address(Register(4), symbol="sym")),
    ],
)
def test_addresses(text: str, expected: Operand) -> None:
    assert parse_operand(text, {}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`(.L_x_0)", Label(".L_x_0", 0x40)),
        ("`($f)", Label("$f", 0x80)),
        ("`(elsewhere)", Label("elsewhere", -1)),
        ("32@lo((.L_x_0 + .L_x_9@srel))", Label(".L_x_0 + .L_x_9@srel", -1)),
        ("32@lo($f)", Label("$f", 0x80)),
        ("SR_TID.X", Special("SR_TID.X")),
        ("SRZ", Special("SRZ")),
        ("B15", Special("B15")),
        ("SB0", Special("SB0")),
        ("{4,3,2}", Special("{4,3,2}")),
        ("2D", Special("2D")),
        ("ARRAY_2D", Special("ARRAY_2D")),
    ],
)
def test_labels_and_names(text: str, expected: Operand) -> None:
    assert parse_operand(text, LABELS) == expected


@pytest.mark.parametrize("text", ["", "R4 R5", "[R2*4]", "c[0x0][R2*4]", "?", "desc[R4][R2]", "[R2"])
def test_what_is_no_operand_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"operand|address|constant"):
        parse_operand(text, {})
