"""Shifts, bits, compares and logic: every form of their operands on boundary values, in both loops.

What each should give is written here in Python's integers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from .exact import M32, clamped, joined, parts, signed
from .one_by_one import Row, Table, assert_none
from .test_integer_values import words


def lop3(table: int) -> Callable[[int, int, int], int]:
    """Bits of a truth table whose input is a, b, c from its highest bit on."""

    def answer(a: int, b: int, c: int) -> int:
        result = 0
        for index in range(8):
            if table >> index & 1:
                result |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
        return result & M32

    return answer


def truth(table: int, *inputs: bool) -> bool:
    return bool(table >> sum(bit << 2 - k for k, bit in enumerate(inputs)) & 1)


def shf(name: str) -> Callable[[int, int, int], int]:
    """A word of the pair (high, low), shifted as a whole."""
    names = name.split(".")[1:]
    bits = 64 if "U64" in names or "S64" in names else 32
    is_signed = names[-1 if names[-1] != "HI" else -2][0] == "S"

    def answer(low: int, amount: int, high: int) -> int:
        n = amount % bits if "W" in names else min(amount, bits)
        both = high << 32 | low
        if "L" in names:
            return both << n >> (32 if "HI" in names else 0)
        return (signed(both, 64) if is_signed else both) >> n >> (32 if "HI" in names else 0)

    return answer


def prmt(mode: str) -> Callable[[int, int, int], int]:
    """Bytes of c:a: by the selector's nibbles, or in one of the patterns that the PTX manual prints as tables."""
    patterns = {
        "F4E": ("3210", "4321", "5432", "6543"),
        "B4E": ("5670", "6701", "7012", "0123"),
        "RC8": ("0000", "1111", "2222", "3333"),
        "ECL": ("3210", "3211", "3222", "3333"),
        "ECR": ("0000", "1110", "2210", "3210"),
        "RC16": ("1010", "3232", "1010", "3232"),
    }

    def answer(a: int, selector: int, c: int) -> int:
        source = parts(a, 8, False) + parts(c, 8, False)
        if mode:
            picks = [int(digit) for digit in reversed(patterns[mode][selector & 3])]
        else:
            picks = [selector >> 4 * k & 15 for k in range(4)]
        return joined([-(source[p & 7] >> 7) if p & 8 else source[p] for p in picks], 8)

    return answer


def bmsk(wraps: bool) -> Callable[[int, int], int]:
    def answer(start: int, width: int) -> int:
        start, width = (start & 31, width & 31) if wraps else (min(start, 32), min(width, 32))
        return sum(1 << k for k in range(start, min(start + width, 32)))

    return answer


def sgxt(is_signed: bool, wraps: bool) -> Callable[[int, int], int]:
    def answer(value: int, width: int) -> int:
        n = width & 31 if wraps else min(width, 32)
        return (signed(value, n) if is_signed else value & (1 << n) - 1) if n else 0

    return answer


def flo(is_signed: bool, from_top: bool) -> Callable[[int], int]:
    def answer(x: int) -> int:
        x = x ^ M32 if is_signed and x >> 31 else x
        return M32 if x == 0 else 32 - x.bit_length() if from_top else x.bit_length() - 1

    return answer


COMPARES: dict[str, Callable[[int, int], bool]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}
COMBINED: dict[str, Callable[[bool, bool], bool]] = {
    "AND": lambda a, b: a and b,
    "OR": lambda a, b: a or b,
    "XOR": lambda a, b: a != b,
}


def isetp(how: str, combined: str, bits: int, is_signed: bool) -> Callable[..., tuple[bool, bool]]:
    def answer(a: int, b: int, given: bool) -> tuple[bool, bool]:
        if is_signed:
            a, b = signed(a, bits), signed(b, bits)
        holds = COMPARES[how](a, b)
        return COMBINED[combined](holds, given), COMBINED[combined](not holds, given)

    return answer


def extended(how: str, is_signed: bool) -> Callable[..., tuple[bool, bool]]:
    """The compare of longer numbers: `low` is what the compare of their lower halves gave."""

    def answer(a: int, b: int, given: bool, low: bool) -> tuple[bool, bool]:
        if is_signed:
            a, b = signed(a), signed(b)
        holds = low if a == b else COMPARES[how](a, b)
        return holds and given, not holds and given

    return answer


def bitwise() -> Iterator[Row]:
    yield Row("MOV", "R20, {n}", "R20", int, uniform=True)
    yield Row("MOV.SPILL", "R20, {n}", "R20", int)
    yield Row("MOV.64", "R20, {l}", "L20", int)
    yield Row("SEL", "R20, {n}, {n}, {p}", "R20", lambda a, b, p: a if p else b, uniform=True)
    yield Row("SEL.64", "R20, {l}, {l}, {p}", "L20", lambda a, b, p: a if p else b)
    for n, table in enumerate(
        (
            0xC0,
            0x96,
            0xFC,
            0x3C,
            0x30,
            0xF8,
            0xFE,
            0x80,
            0xEA,
            0xE2,
            0x00,
            0xFF,
            0xB8,
            0x1B,
            0x6A,
            0x35,
            0xD4,
            0x0F,
            0xF0,
            0xCC,
            0xAA,
            0x7F,
            0x01,
        )
    ):
        yield Row(
            "LOP3.LUT", f"R20, {{v}}, {{v}}, {{v}}, {table:#x}, !PT", "R20", lop3(table), brief=n > 3, uniform=n < 3
        )
    for table in (0xC0, 0x96, 0x1B):
        f = lop3(table)
        yield Row(
            "LOP3.LUT",
            f"P0, R20, {{v}}, {{v}}, {{n}}, {table:#x}, {{p}}",
            "P0 R20",
            lambda a, b, c, p, f=f: (f(a, b, c) != 0 or p, f(a, b, c)),
            uniform=True,
        )
        yield Row(
            "LOP3.PAND",
            f"P3, RZ, {{n}}, {{n}}, {{n}}, {table:#x}, {{p}}",
            "P3",
            lambda a, b, c, p, f=f: f(a, b, c) != 0 and p,
        )
    for first, second in ((0x80, 0x8), (0x96, 0x69), (0xE4, 0x1B), (0x2A, 0xD5), (0xF8, 0x40)):
        answer = lambda a, b, c, t=first, o=second: (truth(t, a, b, c), truth(o, a, b, c))  # noqa: E731
        yield Row("PLOP3.LUT", f"P0, P3, {{p}}, {{p}}, {{p}}, {first:#x}, {second:#x}", "P0 P3", answer, uniform=True)
    # A predicate that is source and destination at once: the old one counts for both results.
    yield Row(
        "PLOP3.LUT",
        "P4, P1, {p}, {p}, {p}, 0x96, 0x2a",
        "P4 P1",
        lambda a, b, c: (truth(0x96, a, b, c), truth(0x2A, a, b, c)),
        brief=True,
    )
    for inner, outer in itertools.product(COMBINED, repeat=2):
        answer = lambda a, b, c, f=COMBINED[inner], g=COMBINED[outer]: (g(f(a, b), c), g(not f(a, b), c))  # noqa: E731
        yield Row(f"PSETP.{inner}.{outer}", "P0, P3, {p}, {p}, {p}", "P0 P3", answer)
    for name in (
        "L.U32 L.U32.HI L.W.U32 L.W.U32.HI L.U64.HI L.W.U64.HI R.U32.HI R.S32.HI R.U32 R.S32 R.W.U32 R.W.U32.HI"
        " R.W.S32.HI R.U64 R.S64 R.W.U64 R.W.S64 R.U64.HI R.S64.HI"
    ).split():
        brief = "W" in name and "HI" not in name
        yield Row(f"SHF.{name}", "R20, {n}, {n}, {n}", "R20", shf(f"SHF.{name}"), uniform=not brief, brief=brief)
    yield Row("PRMT", "R20, {n}, {n}, {n}", "R20", prmt(""), uniform=True)
    for selector in (0x7632, 0x5410, 0x9180, 0xFEDC, 0x4444, 0x3210, 0xBA98, 0x12345):
        yield Row(
            "PRMT",
            f"R20, {{n}}, {selector:#x}, {{n}}",
            "R20",
            lambda a, c, s=selector: prmt("")(a, s, c),
            brief=selector != 0x9180,
        )
    for mode in ("F4E", "B4E", "RC8", "ECL", "ECR", "RC16"):
        special = prmt(mode)
        yield Row(f"PRMT.{mode}", "R20, {n}, {n}, {n}", "R20", special, brief=True)
        for selector in range(4):
            yield Row(
                f"PRMT.{mode}",
                f"R20, {{n}}, {selector:#x}, {{n}}",
                "R20",
                lambda a, c, s=selector, f=special: f(a, s, c),
                brief=True,
            )
    yield Row("BMSK", "R20, {n}, {n}", "R20", bmsk(False), uniform=True)
    yield Row("BMSK.W", "R20, {n}, {n}", "R20", bmsk(True))
    for name, is_signed, wraps in (
        ("SGXT", True, False),
        ("SGXT.U32", False, False),
        ("SGXT.W", True, True),
        ("SGXT.W.U32", False, True),
    ):
        yield Row(name, "R20, {n}, {n}", "R20", sgxt(is_signed, wraps), uniform=True)
    yield Row("BREV", "R20, {v}", "R20", lambda a: int(f"{a:032b}"[::-1], 2), uniform=True)
    yield Row("POPC", "R20, {v}", "R20", lambda a: f"{a:b}".count("1"), uniform=True)
    for name, is_signed, from_top in (
        ("FLO", True, False),
        ("FLO.U32", False, False),
        ("FLO.SH", True, True),
        ("FLO.U32.SH", False, True),
    ):
        yield Row(name, "R20, {v}", "R20", flo(is_signed, from_top), uniform=True)
    for name, low, high in (("S8", -128, 127), ("U8", 0, 255), ("S16", -32768, 32767), ("U16", 0, 65535)):
        yield Row(f"I2I.{name}.SAT", "R20, {n}", "R20", lambda a, x=low, y=high: clamped(signed(a), x, y))


def compares() -> Iterator[Row]:
    for n, (how, combined) in enumerate(itertools.product(COMPARES, COMBINED)):
        brief = combined != "AND" or how not in ("LT", "GE", "EQ")
        for name, is_signed in (("", True), (".U32", False)):
            yield Row(
                f"ISETP.{how}{name}.{combined}",
                "P0, P3, {n}, {n}, {p}",
                "P0 P3",
                isetp(how, combined, 32, is_signed),
                brief=brief,
                uniform=True,
            )
        name, is_signed = (("S64", True), ("U64", False))[n % 2]
        yield Row(
            f"ISETP.{how}.{name}.{combined}",
            "P0, P3, {l}, {l}, {p}",
            "P0 P3",
            isetp(how, combined, 64, is_signed),
            brief=True,
        )
    for how in COMPARES:
        plain = isetp(how, "AND", 32, True)
        yield Row(
            f"ISETP.{how}.AND",
            "P3, PT, {n}, {n}, PT",
            "P3",
            lambda a, b, f=plain: f(a, b, True)[0],
        )
        for name, is_signed in (("", True), (".U32", False)):
            yield Row(
                f"ISETP.{how}{name}.AND.EX",
                "P0, P3, {n}, {n}, {p}, {p}",
                "P0 P3",
                extended(how, is_signed),
                uniform=True,
            )


BITS = Table((*bitwise(), *compares()), words(2))


@pytest.mark.parametrize("opcode", BITS.opcodes())
def test_bits_and_predicates(opcode: str) -> None:
    assert_none(BITS.failures(opcode))
