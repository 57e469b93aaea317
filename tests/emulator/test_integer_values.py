"""Instructions on integers, bits and predicates: every form of their operands on boundary values, in both loops.

What each should give is written here in Python's integers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from .exact import M32, M64, clamped, joined, parts, signed
from .one_by_one import THREADS, Row, Table, Words, assert_none

BOUNDARIES = [
    0, 1, 2, 3, 7, 15, 16, 23, 31, 32, 33, 63, 64, 65, 255, 0x7FFF, 0x8000, 0xFFFF, 0x80FF7F01, 0x7FFFFFFF,
    0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF,
]  # fmt: skip


def words(seed: int = 1) -> Words:
    """Every pair of boundary values in R8 and R10, and random words, small and large, elsewhere and after them."""
    rng = np.random.default_rng(seed)
    any_words = rng.integers(0, 1 << 32, (8, THREADS), dtype=np.uint64) >> rng.integers(0, 32, (8, THREADS)).astype(
        np.uint64
    )
    values = np.where(
        rng.random((8, THREADS)) < 0.6, rng.choice(np.array(BOUNDARIES, np.uint64), (8, THREADS)), any_words
    )
    pairs = rng.permutation(np.array(list(itertools.product(BOUNDARIES, repeat=2)), np.uint64))
    values[[0, 2], : len(pairs)] = pairs.T
    # Words that are equal, and pairs of words that differ in one half only, for compares.
    values[2, 600:], values[3, ::3] = values[0, 600:], values[1, ::3]
    return values.astype(np.uint32)


def carries(*terms: int) -> tuple[int, bool, bool]:
    total = sum(terms)
    return total, total >> 32 >= 1, total >> 32 >= 2


def multiply(is_signed: bool) -> Callable[[int, int], int]:
    return lambda a, b: (signed(a) * signed(b) if is_signed else a * b) & M64


def wide(is_signed: bool) -> Callable[..., int]:
    return lambda a, b, c, carry=0: multiply(is_signed)(a, b) + c + carry


def wide_with_carry(is_signed: bool) -> Callable[..., tuple[int, bool]]:
    def answer(a: int, b: int, c: int, carry: int = 0) -> tuple[int, bool]:
        total = multiply(is_signed)(a, b) + c + carry
        return total & M64, total > M64

    return answer


def dot(first: tuple[int, bool], second: tuple[int, bool], skip: int) -> Callable[[int, int, int], int]:
    """Products of parts (bits, signed), summed up; `skip` leaves out the second word's lower bytes."""

    def answer(a: int, b: int, c: int) -> int:
        return c + sum(x * y for x, y in zip(parts(a, *first), parts(b, *second)[skip:], strict=False))

    return answer


def choose(is_signed: bool) -> Callable[..., int]:
    """The smallest of some words where the last is true, else the largest."""
    read = signed if is_signed else int

    def answer(*given: int) -> int:
        *numbers, smallest = given
        return (min if smallest else max)(numbers, key=read)

    return answer


def relu_of(answer: Callable[..., int]) -> Callable[..., int]:
    return lambda *given: max(signed(answer(*given)), 0)


def choose_parts(bits: int, is_signed: bool, relu: bool, adds: bool = False) -> Callable[..., int]:
    """The same of the parts of words; with `adds` the first two are added up before."""

    def answer(*given: int) -> int:
        *numbers, smallest = given
        columns = [parts(x, bits, is_signed) for x in numbers]
        if adds:
            sums = joined([x + y for x, y in zip(columns[0], columns[1], strict=True)], bits)
            columns = [parts(sums, bits, is_signed), *columns[2:]]
        chosen = [(min if smallest else max)(fields) for fields in zip(*columns, strict=True)]
        return joined([max(x, 0) for x in chosen] if relu else chosen, bits)

    return answer


def told_parts(a: int, b: int, smallest: bool) -> tuple[int, bool, bool]:
    """The larger or smaller halves, and whether each is the first word's."""
    chosen = choose_parts(16, True, False)(a, b, smallest)
    taken = [x == y for x, y in zip(parts(chosen, 16, True), parts(a, 16, True), strict=True)]
    return chosen, taken[0], taken[1]


def add_parts(bits: int) -> Callable[[int, int], int]:
    return lambda a, b: joined([x + y for x, y in zip(parts(a, bits, False), parts(b, bits, False), strict=True)], bits)


def apart_bytes(is_signed: bool) -> Callable[[int, int], list[int]]:
    return lambda a, b: [abs(x - y) for x, y in zip(parts(a, 8, is_signed), parts(b, 8, is_signed), strict=True)]


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


def arithmetic() -> Iterator[Row]:
    yield Row("IADD3", "R20, {i}, {i}, {i}", "R20", lambda a, b, c: a + b + c, uniform=True)
    yield Row("VIADD IADD", "R20, {i}, {i}", "R20", lambda a, b: a + b)
    yield Row("IADD3", "R20, P0, P3, {+}, {+}, {+}", "R20 P0 P3", carries, uniform=True)
    yield Row("IADD3", "R20, P3, {+}, {+}, {+}", "R20 P3", lambda *t: carries(*t)[:2], brief=True)
    yield Row("IADD3", "R20, PT, PT, {i}, {i}, {i}", "R20", lambda a, b, c: a + b + c, brief=True)
    yield Row("IADD3.X", "R20, {x}, {x}, {x}, {p}, {p}", "R20", lambda *terms: sum(terms), uniform=True)
    yield Row("IADD3.X", "R20, P0, P3, {x}, {x}, {x}, {p}, {p}", "R20 P0 P3", carries, uniform=True)
    yield Row("IADD.64", "R20, {l}, {q}", "L20", lambda a, b: a + b)
    yield Row("IABS", "R20, {n}", "R20", lambda a: abs(signed(a)))
    yield Row(
        "IMAD IMAD.U32 IMAD.MOV.U32 IMAD.SHL.U32 IMAD.IADD",
        "R20, {i}, {i}, {i}",
        "R20",
        lambda a, b, c: a * b + c,
        uniform=True,
    )
    yield Row("IMAD.X", "R20, {i}, {n}, {x}, {p}", "R20", lambda a, b, c, p: a * b + c + p)
    for name, is_signed in (("", True), (".U32", False)):
        yield Row(f"IMAD.WIDE{name}", "R20, {n}, {n}, {l}", "L20", wide(is_signed), uniform=True)
        yield Row(f"IMAD.WIDE{name}", "R20, P0, {n}, {n}, {l}", "L20 P0", wide_with_carry(is_signed), uniform=True)
        yield Row(f"IMAD.WIDE{name}.X", "R20, P3, {n}, {n}, {l}, {p}", "L20 P3", wide_with_carry(is_signed))
        full = wide(is_signed)
        yield Row(f"IMAD.HI{name}", "R20, {n}, {n}, {l}", "R20", lambda *given, f=full: f(*given) >> 32)
    yield Row("IMAD.WIDE.U32.X", "R20, {n}, {n}, {l}, {p}", "L20", wide(False), uniform=True)
    for first, second in itertools.product("SU", repeat=2):
        kinds = (first == "S", second == "S")
        yield Row(f"IDP.4A.{first}8.{second}8", "R20, {n}, {n}, {n}", "R20", dot((8, kinds[0]), (8, kinds[1]), 0))
        for half, skip in (("LO", 0), ("HI", 2)):
            answer = dot((16, kinds[0]), (8, kinds[1]), skip)
            yield Row(f"IDP.2A.{half}.{first}16.{second}8", "R20, {n}, {n}, {n}", "R20", answer, brief=True)
    yield Row("VABSDIFF", "R20, {n}, {n}, {n}", "R20", lambda a, b, c: abs(signed(a) - signed(b)) + c)
    yield Row("VABSDIFF.U32", "R20, {n}, {n}, {n}", "R20", lambda a, b, c: abs(a - b) + c)
    for name, is_signed in (("U8", False), ("S8", True)):
        apart = apart_bytes(is_signed)
        yield Row(f"VABSDIFF4.{name}", "R20, {n}, {n}, RZ", "R20", lambda a, b, f=apart: joined(f(a, b), 8))
        yield Row(f"VABSDIFF4.{name}.ACC", "R20, {n}, {n}, {n}", "R20", lambda a, b, c, f=apart: sum(f(a, b)) + c)


def scaled() -> Iterator[Row]:
    for n in (0, 1, 5, 31):
        yield Row(
            "LEA", f"R20, {{i}}, {{i}}, {n:#x}", "R20", lambda a, b, n=n: (a << n) + b, uniform=True, brief=n == 1
        )
        yield Row(
            "LEA",
            f"R20, P0, {{i}}, {{+}}, {n:#x}",
            "R20 P0",
            lambda a, b, n=n: carries(a << n & M32, b)[:2],
            brief=n == 1,
            uniform=True,
        )
        yield Row(
            "LEA.HI",
            f"R20, {{n}}, {{i}}, {{n}}, {n:#x}",
            "R20",
            lambda a, b, c, n=n: (((c << 32 | a) << n) >> 32) + b,
            brief=n == 1,
            uniform=True,
        )
        yield Row(
            "LEA.HI",
            f"R20, P3, {{n}}, {{+}}, {{n}}, {n:#x}",
            "R20 P3",
            lambda a, b, c, n=n: carries((((c << 32 | a) << n) & M64) >> 32, b)[:2],
            brief=True,
        )
        yield Row(
            "LEA.HI.X",
            f"R20, {{n}}, {{x}}, {{n}}, {n:#x}, {{p}}",
            "R20",
            lambda a, b, c, p, n=n: (((c << 32 | a) << n) >> 32) + b + p,
            brief=n == 1,
            uniform=True,
        )
        yield Row(
            "LEA.HI.SX32",
            f"R20, {{n}}, {{i}}, {n:#x}",
            "R20",
            lambda a, b, n=n: (signed(a) << n >> 32) + b,
            brief=n == 1,
            uniform=True,
        )
        yield Row(
            "LEA.HI.X.SX32",
            f"R20, {{n}}, {{x}}, {n:#x}, {{p}}",
            "R20",
            lambda a, b, p, n=n: (signed(a) << n >> 32) + b + p,
            brief=n == 1,
            uniform=True,
        )


def minima() -> Iterator[Row]:
    for name, is_signed in (("", True), (".U32", False)):
        uniform, chosen = name == "", choose(is_signed)
        yield Row(f"IMNMX{name}", "R20, {n}, {n}, {p}", "R20", choose(is_signed), uniform=uniform)
        yield Row(f"VIMNMX{name}", "R20, {n}, {n}, {p}", "R20", choose(is_signed))
        yield Row(f"VIMNMX{name}", "R20, PT, PT, {n}, {n}, {p}", "R20", choose(is_signed), brief=True)
        yield Row(
            f"VIADDMNMX{name}",
            "R20, {i}, {i}, {n}, {p}",
            "R20",
            lambda a, b, c, p, f=chosen: f(a + b & M32, c, p),
        )
        yield Row(f"VIMNMX3{name}", "R20, {n}, {n}, {n}, {p}", "R20", choose(is_signed))
    yield Row("VIMNMX.RELU", "R20, {n}, {n}, {p}", "R20", relu_of(choose(True)))
    yield Row("VIMNMX3.RELU", "R20, {n}, {n}, {n}, {p}", "R20", relu_of(choose(True)))
    yield Row(
        "VIADDMNMX.RELU", "R20, {i}, {i}, {n}, {p}", "R20", relu_of(lambda a, b, c, p: choose(True)(a + b & M32, c, p))
    )
    for name, bits, is_signed in (("U16x2", 16, False), ("S16x2", 16, True), ("U8x4", 8, False), ("S8x4", 8, True)):
        for relu in ("", ".RELU") if is_signed else ("",):
            answer = choose_parts(bits, is_signed, relu != "")
            yield Row(f"VIMNMX.{name}{relu}", "R20, {n}, {n}, {p}", "R20", answer)
            yield Row(f"VIMNMX3.{name}{relu}", "R20, {n}, {n}, {n}, {p}", "R20", answer, brief=True)
            added = choose_parts(bits, is_signed, relu != "", adds=True)
            yield Row(f"VIADDMNMX.{name}{relu}", "R20, {n}, {n}, {n}, {p}", "R20", added, brief=True)
    yield Row("VIMNMX.S16x2", "R20, P0, P3, {n}, {n}, {p}", "R20 P0 P3", told_parts)
    for name, bits in (("16x2", 16), ("U8x4", 8)):
        yield Row(f"VIADD.{name}", "R20, {n}, {n}", "R20", add_parts(bits))
    for name, is_signed in (("S64", True), ("U64", False)):
        read = (lambda x: signed(x, 64)) if is_signed else int
        yield Row(
            f"IMNMX.{name}",
            "PT, PT, R20, {l}, {l}, {p}, !PT",
            "L20",
            lambda a, b, p, f=read: (min if p else max)(a, b, key=f),
        )


def bitwise() -> Iterator[Row]:
    yield Row("MOV", "R20, {n}", "R20", int, uniform=True)
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


ARITHMETIC = Table((*arithmetic(), *scaled(), *minima()), words())
BITS = Table((*bitwise(), *compares()), words(2))


@pytest.mark.parametrize("opcode", ARITHMETIC.opcodes())
def test_arithmetic(opcode: str) -> None:
    assert_none(ARITHMETIC.failures(opcode))


@pytest.mark.parametrize("opcode", BITS.opcodes())
def test_bits_and_predicates(opcode: str) -> None:
    assert_none(BITS.failures(opcode))
