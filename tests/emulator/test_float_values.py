"""Floating-point instructions and conversions: every form of their operands on boundary values, in both loops.

What each should give comes from exact arithmetic that is rounded once (see `exact`); of approximations, the PTX
manual says how far they may be off.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from . import exact
from .exact import BRAIN, DOUBLE, HALF, SINGLE, Format, flushed, saturated, signed
from .one_by_one import THREADS, Case, Row, Table, Words, assert_none, outcome, settled
from .test_bit_values import COMBINED
from .test_integer_values import words as any_words

SINGLES = [
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x00000001, 0x807FFFFF, 0x00800000, 0x00800001, 0x7F7FFFFF,
    0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0x3F000000, 0x3FC00000, 0xC0200000, 0x4B800001, 0x4EFFFFFF,
    0x4F000000, 0xCF000001, 0x4F800000, 0x3F800001, 0x1A000001, 0x34000000,
]  # fmt: skip
"""Zeros, ones, denormal numbers, ends of the range, NaN, ties, and ends of integers' ranges."""
DOUBLES = [
    0, 1 << 63, 0x3FF0000000000000, 0xBFF0000000000001, 1, 0x800FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF,
    0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000001, 0x3FE0000000000000,
    0x3FF8000000000000, 0x41DFFFFFFFC00000, 0xC1E0000000100000, 0x41EFFFFFFFF00000, 0x43E0000000000000,
    0xC3E0000000000001, 0x43F0000000000000, 0x36A0000000000000, 0x47EFFFFFF0000000, 0x3800000010000000,
    0x1E60000000000001,
]  # fmt: skip
"""The same of doubles; the last ones are ends of single precision's range, and one whose square is denormal."""
HALVES = [
    0x0000, 0x8000, 0x3C00, 0xBC00, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E01, 0x3800, 0x3E00,
    0xC100, 0x3C01, 0x6801, 0x1401,
]  # fmt: skip
BRAINS = [
    0x0000, 0x8000, 0x3F80, 0xBF80, 0x0001, 0x807F, 0x0080, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC1, 0x3F00, 0x3FC0,
    0xC020, 0x3F81, 0x4381, 0x2001,
]  # fmt: skip


def pairs_of(values: list[int], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of numbers in two columns, filled up with any of them, and a third column of any."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(np.array(list(itertools.product(values, repeat=2)), np.uint64))
    columns = rng.choice(np.array(values, np.uint64), (3, THREADS))
    columns[:2, : len(pairs)] = pairs.T
    return columns[0], columns[1], columns[2]


def singles() -> Words:
    """Boundary values; where the pairs are through, numbers of moderate size whose sums cancel or tie."""
    a, b, c = pairs_of(SINGLES, 4)
    rng = np.random.default_rng(5)
    x, y = ((rng.integers(1, 1 << 24, 160) * 2.0 ** rng.integers(-40, 10, 160)).astype(np.float32) for _ in range(2))
    product = (x.astype(np.float64) * y).astype(np.float32)
    c[::4] = (-product).view(np.uint32)
    values = np.zeros((8, THREADS), np.uint64)
    values[0], values[2], values[4] = a, b, c
    values[1::2] = rng.choice(np.array(SINGLES, np.uint64), (4, THREADS))
    values[0, 576:], values[2, 576:] = x[:64].view(np.uint32), y[:64].view(np.uint32)
    values[4, 576:] = (-product[:64]).view(np.uint32)
    return values.astype(np.uint32)


def doubles() -> Words:
    values = np.zeros((8, THREADS), np.uint32)
    for at, column in enumerate(pairs_of(DOUBLES, 6)):
        values[2 * at], values[2 * at + 1] = column & np.uint64(exact.M32), column >> np.uint64(32)
    return values


def halves(numbers: list[int]) -> Words:
    """Any two of the numbers in every word."""
    rng = np.random.default_rng(7)
    low, high = (rng.choice(np.array(numbers, np.uint32), (8, THREADS)) for _ in range(2))
    for at, column in enumerate(pairs_of(numbers, 8)):
        low[2 * at] = column
    return low | high << np.uint32(16)


def finished(names: str, exactly: Callable[..., float]) -> Callable[..., float]:
    """An operation with its modifiers: denormal numbers flushed on the way in and out, the result saturated."""

    def answer(*given: float) -> float:
        if "FTZ" in names:
            return end(flushed(exactly(*map(flushed, given))))
        return end(exactly(*given))

    end = saturated if "SAT" in names else float
    return answer


def mode_of(name: str) -> str:
    return next((part for part in name.split(".") if part in ("RN", "RM", "RP", "RZ")), "RN")


def arithmetic() -> Iterator[Row]:
    for name in ("", ".FTZ", ".SAT", ".RN", ".RZ", ".RM", ".RP", ".FTZ.RZ", ".FTZ.SAT"):
        mode, brief = mode_of(name), name not in ("", ".FTZ", ".RM")
        sum_of = finished(name, lambda a, b, m=mode: exact.added(a, b, SINGLE, m))
        yield Row(f"FADD{name}", "R20, {f}, {f}", "F20", sum_of, brief=brief, uniform=name == "")
        product = finished(name, lambda a, b, m=mode: exact.multiplied(a, b, SINGLE, m))
        yield Row(f"FMUL{name}", "R20, {f}, {f}", "F20", product, brief=brief, uniform=name == "")
        fused = finished(name, lambda a, b, c, m=mode: exact.fused(a, b, c, SINGLE, m))
        yield Row(f"FFMA{name}", "R20, {f}, {f}, {f}", "F20", fused, brief=brief, uniform=name == "")
    for name, scale in (("D2", -1), ("D4", -2), ("D8", -3), ("M2", 1), ("M4", 2), ("M8", 3)):
        for more in ("", ".FTZ"):
            product = finished(more, lambda a, b, n=scale: exact.multiplied(a, b, SINGLE, "RN", n))
            yield Row(f"FMUL.{name}{more}", "R20, {f}, {f}", "F20", product, brief=True)
    for name in ("", ".FTZ", ".NAN", ".FTZ.NAN"):
        wins = "NAN" in name

        def chosen(a: float, b: float, p: bool, n: bool = wins, flush: bool = "FTZ" in name) -> float:
            a, b = (flushed(a), flushed(b)) if flush else (a, b)
            return (exact.least if p else exact.largest)(a, b, n)

        yield Row(f"FMNMX{name}", "R20, {f}, {f}, {p}", "F20", chosen, brief=".FTZ." in name, uniform=name == "")
        three = lambda a, b, c, p, f=chosen: f(f(a, b, p), c, p)  # noqa: E731
        yield Row(f"FMNMX3{name}", "R20, {f}, {f}, {f}, {p}", "F20", three, brief=True)
    yield Row("FSEL", "R20, {g}, {g}, {p}", "R20", lambda a, b, p: a if p else b, uniform=True)


def of_pairs() -> Iterator[Row]:
    """Two numbers at a time, and sums of half and single precision."""
    for name in ("", ".FTZ", ".RM", ".RZ"):
        mode, brief = mode_of(name), name != ""
        sum_of = finished(name, lambda a, b, m=mode: exact.added(a, b, SINGLE, m))
        product = finished(name, lambda a, b, m=mode: exact.multiplied(a, b, SINGLE, m))
        fused = finished(name, lambda a, b, c, m=mode: exact.fused(a, b, c, SINGLE, m))
        yield Row(f"FADD2{name}", "R20, {2}, {2}", "F20 F21", each(sum_of), brief=brief)
        yield Row(f"FMUL2{name}", "R20, {2}, {2}", "F20 F21", each(product), brief=brief)
        yield Row(f"FFMA2{name}", "R20, {2}, {2}, {2}", "F20 F21", each(fused), brief=brief)
        yield Row(f"FHADD{name}", "R20, {e}, {f}", "F20", sum_of, brief=brief)
        yield Row(f"FHFMA{name}", "R20, {e}, {e}, {f}", "F20", fused, brief=brief)


APPROXIMATIONS: dict[str, tuple[Callable[[float], float], float, float]] = {
    "RCP": (lambda x: 1 / x, 2**-23, 0),
    "RSQ": (lambda x: 1 / math.sqrt(x), 2**-22.9, 0),
    "SQRT": (math.sqrt, 2**-23, 0),
    "LG2": (math.log2, 2**-22, 2**-22),
    "EX2": (lambda x: 2.0 ** max(-200.0, min(x, 200.0)), 2**-22, 0),
    "SIN": (lambda x: math.sin(2 * math.pi * math.fmod(x, 1)), 0, 2**-20.5),
    "COS": (lambda x: math.cos(2 * math.pi * math.fmod(x, 1)), 0, 2**-20.5),
    "TANH": (math.tanh, 2**-11, 0),
}
"""What an approximation approaches, and by which part of it or by how much at most it may be off (PTX manual).

Sines and cosines are of revolutions.
"""
AT_THE_ENDS: dict[str, tuple[float, float, float, float]] = {
    "RCP": (math.inf, -math.inf, 0.0, -0.0),
    "RSQ": (math.inf, -math.inf, 0.0, math.nan),
    "SQRT": (0.0, -0.0, math.inf, math.nan),
    "LG2": (-math.inf, -math.inf, math.inf, math.nan),
    "EX2": (1.0, 1.0, math.inf, 0.0),
    "SIN": (0.0, -0.0, math.nan, math.nan),
    "COS": (1.0, 1.0, math.nan, math.nan),
    "TANH": (0.0, -0.0, 1.0, -1.0),
}
"""Of 0, -0 and of the infinities, the positive one first."""


def approximately(name: str, x: float) -> tuple[float, float]:
    """What a function gives, and how far off it may be."""
    x, (function, relative, absolute) = flushed(x), APPROXIMATIONS[name]
    if x == 0 or abs(x) == math.inf:
        return AT_THE_ENDS[name][(2 if x else 0) + exact.sign_of(x)], 0.0
    if x != x or (x < 0 and name in ("RSQ", "SQRT", "LG2")):
        return math.nan, 0.0
    y = function(x)
    return flushed(exact.converted(y, SINGLE)), max(abs(y) * relative, absolute, 2.0**-126 if abs(y) < 2.0**-125 else 0)


COMPARES = "LT EQ LE GT NE GE NUM NAN LTU EQU LEU GTU NEU GEU".split()


def compare(how: str, combined: str, flush: bool = False) -> Callable[[float, float, bool], tuple[bool, bool]]:
    def answer(a: float, b: float, given: bool) -> tuple[bool, bool]:
        holds = exact.compares(how, *((flushed(a), flushed(b)) if flush else (a, b)))
        return COMBINED[combined](holds, given), COMBINED[combined](not holds, given)

    return answer


def compares(letter: str, kind: str) -> Iterator[Row]:
    places = f"P0, P3, {{{kind}}}, {{{kind}}}, {{p}}"
    for n, how in enumerate(COMPARES):
        for combined in COMBINED:
            brief = combined != "AND" or n % 5 > 0
            yield Row(f"{letter}SETP.{how}.{combined}", places, "P0 P3", compare(how, combined), brief=brief)
        if letter == "F":
            yield Row(f"FSETP.{how}.FTZ.AND", places, "P0 P3", compare(how, "AND", True), brief=True)
            either = compare(how, "OR")
            for name, true in ((".BF", 0x3F800000), ("", exact.M32)):
                answer = lambda a, b, p, f=either, t=true: t if f(a, b, p)[0] else 0  # noqa: E731
                yield Row(f"FSET{name}.{how}.OR", "R20, {f}, {f}, {p}", "R20", answer, brief=n > 0)


def nan_as(bits: int, source: Format) -> int:
    """What a conversion makes of NaN: zero, but of doubles, and for 64-bit integers, the top bit (PTX manual, cvt)."""
    return 1 << (bits - 1) if source == DOUBLE or bits == 64 else 0


def to_integers(source: Format, kind: str, suffix: str, forms: str) -> Iterator[Row]:
    for (name, bits, is_signed), mode in itertools.product(
        (("", 32, True), (".U32", 32, False), (".S64", 64, True), (".U64", 64, False)), ("", "TRUNC", "FLOOR", "CEIL")
    ):
        nan = nan_as(bits, source)
        answer = lambda x, m=mode, n=bits, s=is_signed, v=nan: exact.to_integer(x, m, n, s, v)  # noqa: E731
        full = f"F2I{name}{suffix}" + (f".{mode}" if mode else "") + (".NTZ" if source == SINGLE else "")
        brief = name not in ("", ".U32") or mode not in ("", "TRUNC")
        yield Row(full, f"R20, {{{forms}}}", "L20" if bits == 64 else "R20", answer, brief=brief)
        if source == SINGLE and bits == 32:
            flat = lambda x, f=answer: f(flushed(x))  # noqa: E731
            yield Row(full.replace("F2I", "F2I.FTZ"), f"R20, {{{forms}}}", "R20", flat, brief=True)


def rounds(source: Format, suffix: str, forms: str, result: str) -> Iterator[Row]:
    for mode in ("", "TRUNC", "FLOOR", "CEIL"):
        name = f"FRND{suffix}" + (f".{mode}" if mode else "")
        yield Row(name, f"R20, {{{forms}}}", result, lambda x, m=mode: exact.whole(x, m), brief=mode != "")
        if source == SINGLE:
            yield Row(
                name.replace("FRND", "FRND.FTZ"),
                f"R20, {{{forms}}}",
                result,
                lambda x, m=mode: exact.whole(flushed(x), m),
                brief=True,
            )


def from_single() -> Iterator[Row]:
    yield from to_integers(SINGLE, "f", "", "f")
    for name, bits, is_signed in (("S8", 8, True), ("U8", 8, False), ("S16", 16, True), ("U16", 16, False)):
        answer = lambda x, n=bits, s=is_signed: exact.to_integer(x, "TRUNC", n, s, 0)  # noqa: E731
        yield Row(f"F2I.{name}.TRUNC.NTZ", "R20, {f}", "R20", answer, brief=True)
    yield from rounds(SINGLE, "", "f", "F20")
    yield Row("F2F.F64.F32", "R20, {f}", "D20", float)
    for name, form, result in (("F16", HALF, "N20"), ("BF16", BRAIN, "M20")):
        yield Row(f"F2F.{name}.F32", "R20, {f}", result, lambda x, f=form: exact.converted(x, f), brief=name == "BF16")
        for mode in ("RZ", "RM", "RP") if form == HALF else ():
            yield Row(
                f"F2F.F16.F32.{mode}", "R20, {f}", "N20", lambda x, m=mode: exact.converted(x, HALF, m), brief=True
            )
        result = "H20" if form == HALF else "B20"
        for mode in ("RN", "RZ"):
            suffix = "" if mode == "RN" else ".RZ"
            pack = lambda a, b, f=form, m=mode: (exact.converted(b, f, m), exact.converted(a, f, m))  # noqa: E731
            spelled = f"F2FP.{name}.F32.PACK_AB{suffix}" if form == HALF else f"F2FP.BF16.PACK_AB{suffix}"
            yield Row(spelled, "R20, {f}, {f}", result, pack)
            yield Row(spelled, "R20, RZ, {f}", result, lambda b, f=pack: f(0.0, b), brief=True)


def from_double() -> Iterator[Row]:
    for mode in ("", ".RM", ".RP", ".RZ"):
        how, brief = mode_of(mode), mode != ""
        yield Row(f"DADD{mode}", "R20, {d}, {d}", "D20", lambda a, b, m=how: exact.added(a, b, DOUBLE, m), brief=brief)
        yield Row(
            f"DMUL{mode}", "R20, {d}, {d}", "D20", lambda a, b, m=how: exact.multiplied(a, b, DOUBLE, m), brief=brief
        )
        yield Row(
            f"DFMA{mode}",
            "R20, {d}, {d}, {d}",
            "D20",
            lambda a, b, c, m=how: exact.fused(a, b, c, DOUBLE, m),
            brief=brief,
        )
        yield Row(f"F2F.F32.F64{mode}", "R20, {d}", "F20", lambda x, m=how: exact.converted(x, SINGLE, m), brief=brief)
    yield Row("F2F.F32.F64.FTZ", "R20, {d}", "F20", lambda x: flushed(exact.converted(x, SINGLE)), brief=True)
    yield Row("F2F.F16.F64", "R20, {d}", "N20", lambda x: exact.converted(x, HALF), brief=True)
    yield from compares("D", "d")
    # The first predicate chooses the first number, as fmin does, which passes NaN over; the second tells two of them.
    for name, less in (("MIN", lambda a, b: a < b), ("MAX", lambda a, b: a > b)):
        answer = lambda a, b, f=less: (f(a, b) or (a == a and b != b), a != a and b != b)  # noqa: E731
        yield Row(f"DSETP.{name}.AND", "P0, P3, {d}, {d}, PT", "P0 P3", answer)
    yield from to_integers(DOUBLE, "d", ".F64", "d")
    yield from rounds(DOUBLE, ".F64", "d", "D20")


def from_integer() -> Iterator[Row]:
    for name, is_signed in (("", True), (".U32", False)):
        read = signed if is_signed else int
        for mode in ("", ".RP", ".RM", ".RZ"):
            how = mode_of(mode)
            answer = lambda x, f=read, m=how: exact.of_integer(f(x), SINGLE, m)  # noqa: E731
            yield Row(f"I2F{name}{mode}", "R20, {n}", "F20", answer, brief=mode in (".RM", ".RZ"))
        for mode in ("", ".RZ"):
            how = mode_of(mode)
            answer = lambda x, f=read, m=how: exact.of_integer(f(x), SINGLE, m)  # noqa: E731
            yield Row(f"I2FP.F32.{name[1:] or 'S32'}{mode}", "R20, {n}", "F20", answer)
        yield Row(f"I2F.F64{name}", "R20, {n}", "D20", lambda x, f=read: float(f(x)))
        for mode in ("", ".RZ", ".RM", ".RP"):
            how = mode_of(mode)
            answer = lambda x, f=read, m=how: exact.of_integer(f(x), HALF, m)  # noqa: E731
            yield Row(f"I2F.F16{name}{mode}", "R20, {n}", "N20", answer, brief=True)
    for name, bits, is_signed, forms in (
        ("S8", 8, True, "y"), ("U8", 8, False, "y"), ("S16", 16, True, "t"), ("U16", 16, False, "t"),
    ):  # fmt: skip
        read = (lambda x, n=bits: signed(x, n)) if is_signed else (lambda x, n=bits: x & (1 << n) - 1)
        yield Row(f"I2F.{name}", f"R20, {{{forms}}}", "F20", lambda x, f=read: float(f(x)))
        yield Row(f"I2F.F64.{name}", f"R20, {{{forms}}}", "D20", lambda x, f=read: float(f(x)))
    for name, is_signed in (("S64", True), ("U64", False)):
        read = (lambda x: signed(x, 64)) if is_signed else int
        for mode in ("", ".RP", ".RM", ".RZ"):
            for form, where, result in ((SINGLE, "", "F20"), (DOUBLE, ".F64", "D20")):
                how = mode_of(mode)
                answer = lambda x, f=read, m=how, o=form: exact.of_integer(f(x), o, m)  # noqa: E731
                yield Row(f"I2F{where}.{name}{mode}", "R20, {l}", result, answer, brief=mode != "")


def each(function: Callable[..., float]) -> Callable[..., tuple[float, ...]]:
    """An operation on both halves of its operands."""
    return lambda *given: tuple(function(*numbers) for numbers in zip(*given, strict=True))


def packed(form: Format) -> Iterator[Row]:
    kind, result, mark = ("h", "H20", "") if form == HALF else ("b", "B20", ".BF16_V2")
    operations: dict[str, tuple[int, Callable[..., float]]] = {
        "HADD2": (2, lambda a, b: exact.added(a, b, form)),
        "HMUL2": (2, lambda a, b: exact.multiplied(a, b, form)),
        "HFMA2": (3, lambda a, b, c: exact.fused(a, b, c, form)),
    }
    for name, (count, function) in operations.items():
        places = "R20, " + ", ".join([f"{{{kind}}}"] * count)
        yield Row(name + mark, places, result, each(function))
        clipped = each(lambda *given, f=function: saturated(f(*given)))
        yield Row(f"{name}.SAT{mark}", places, result, clipped, brief=True)
        if name == "HFMA2":
            yield Row(f"HFMA2.MMA{mark}", places, result, each(function), brief=True)
    for name, wins in (("", False), (".NAN", True)):
        for test, choose in (("PT", exact.least), ("!PT", exact.largest)):
            answer = each(lambda a, b, f=choose, n=wins: f(a, b, n))
            yield Row(f"HMNMX2{mark}{name}", f"R20, {{{kind}}}, {{{kind}}}, {test}", result, answer, brief=wins)
    one = 0x3C00 if form == HALF else 0x3F80
    for n, how in enumerate(COMPARES):
        both = lambda a, b, p, h=how: tuple(exact.compares(h, x, y) and p for x, y in zip(a, b, strict=True))  # noqa: E731
        yield Row(f"HSETP2{mark}.{how}.AND", f"P0, P3, {{{kind}}}, {{{kind}}}, {{p}}", "P0 P3", both, brief=n % 4 > 0)
        for name, true in ((".BF", one), ("", 0xFFFF)):
            answer = lambda a, b, p, f=both, t=true: exact.joined([t * x for x in f(a, b, p)], 16)  # noqa: E731
            yield Row(f"HSET2{name}{mark}.{how}.AND", f"R20, {{{kind}}}, {{{kind}}}, {{p}}", "R20", answer, brief=True)
    if form == HALF:
        yield Row("HADD2.F32", "R20, -RZ, {e}", "F20", lambda x: x + -0.0)
        yield Row("HFMA2.MMA", "R20, -RZ, RZ, 1.5, -0.25", "H20", lambda t: (-0.25, 1.5))
        for mode in ("", "TRUNC", "FLOOR", "CEIL"):
            answer = lambda x, m=mode: exact.to_integer(x, m, 32, True, 0)  # noqa: E731
            yield Row("F2I.F16" + (f".{mode}" if mode else "") + ".NTZ", "R20, {e}", "R20", answer)
            yield Row("FRND.F16" + (f".{mode}" if mode else ""), "R20, {e}", "N20", lambda x, m=mode: exact.whole(x, m))
        yield Row("F2F.F32.F16", "R20, {e}", "F20", float)


ARITHMETIC = Table((*arithmetic(), *of_pairs()), singles())
CONVERSIONS = Table((*from_single(), *compares("F", "f")), singles())
OF_DOUBLES = Table(tuple(from_double()), doubles())
OF_INTEGERS = Table(tuple(from_integer()), any_words(9))
OF_HALVES = Table(tuple(packed(HALF)), halves(HALVES))
OF_BRAINS = Table(tuple(packed(BRAIN)), halves(BRAINS))


@pytest.mark.parametrize("opcode", ARITHMETIC.opcodes())
def test_single_precision(opcode: str) -> None:
    assert_none(ARITHMETIC.failures(opcode))


@pytest.mark.parametrize("opcode", CONVERSIONS.opcodes())
def test_compares_and_conversions_of_single_precision(opcode: str) -> None:
    assert_none(CONVERSIONS.failures(opcode))


@pytest.mark.parametrize("opcode", OF_DOUBLES.opcodes())
def test_double_precision(opcode: str) -> None:
    assert_none(OF_DOUBLES.failures(opcode))


@pytest.mark.parametrize("opcode", OF_INTEGERS.opcodes())
def test_conversions_of_integers(opcode: str) -> None:
    assert_none(OF_INTEGERS.failures(opcode))


@pytest.mark.parametrize("opcode", OF_HALVES.opcodes())
def test_half_precision(opcode: str) -> None:
    assert_none(OF_HALVES.failures(opcode))


@pytest.mark.parametrize("opcode", OF_BRAINS.opcodes())
def test_bfloat16(opcode: str) -> None:
    assert_none(OF_BRAINS.failures(opcode))


@pytest.mark.parametrize("compiled", [True, False])
def test_approximations(compiled: bool) -> None:
    values = singles()
    names = [f"{name}{ftz}" for name in APPROXIMATIONS for ftz in ("", ".FTZ")]
    cases = [Case(f"MUFU.{name} R20, {sign}R8", ("F20",), (), float) for name in names for sign in ("", "-")]
    for case, left in zip(cases, outcome(cases, values, compiled), strict=True):
        found = settled(case, left)[0].view(np.float32).tolist()
        for word, y in zip(values[0].tolist(), found, strict=True):
            x = exact.single(word)
            want, off = approximately(case.text.split(" ")[0].split(".")[1], -x if "-" in case.text else x)
            near: bool = y != y if want != want else y == want if abs(want) == math.inf else abs(y - want) <= off
            same_zero = want != 0 or off > 0 or exact.sign_of(y) == exact.sign_of(want)
            assert near & same_zero, f"{case.text}({x!r}) gave {y!r}"


@pytest.mark.parametrize("compiled", [True, False])
def test_upper_halves_of_reciprocals_and_roots(compiled: bool) -> None:
    """As good as the upper word can say it: the 20 bits of a mantissa that stand there."""
    values = doubles()
    values[1, 600:] = np.random.default_rng(10).integers(0x3F000000, 0x41000000, THREADS - 600)
    functions: dict[str, Callable[[float], float]] = {"RCP64H": lambda x: 1 / x, "RSQ64H": lambda x: 1 / math.sqrt(x)}
    cases = [Case(f"MUFU.{name} R20, {sign}R9", ("R20",), (), int) for name in functions for sign in ("", "-")]
    for case, left in zip(cases, outcome(cases, values, compiled), strict=True):
        name = case.text.split(" ")[0].split(".")[1]
        for word, y in zip(values[1].tolist(), left[0].tolist(), strict=True):
            x = exact.double(word << 32) * (-1 if "-" in case.text else 1)
            if x == 0 or abs(x) == math.inf:
                want = math.copysign(math.inf if x == 0 else 0.0, x)
                assert exact.double(y << 32) == want or (x < 0 and name == "RSQ64H"), f"{case.text}({x!r})"
            elif x != x or (x < 0 and name == "RSQ64H"):
                assert math.isnan(exact.double(y << 32)), f"{case.text}({x!r})"
            elif 2.0**-1000 < abs(x) < 2.0**1000:
                assert abs(exact.double(y << 32) / functions[name](x) - 1) <= 2.0**-20, f"{case.text}({x!r})"


def test_a_division_takes_the_long_way_unless_both_are_normal_numbers() -> None:
    """Of numbers whose quotient is far from the ends of the range."""
    pairs = [0x3F800000, 0xC0400000, 0x49800000, 0x35800001, 0, 0x80000000, 1, 0x807FFFFF, 0x7F800000, 0x7FC00000]
    values = singles()
    chosen = list(itertools.product(pairs, repeat=2))
    values[0], values[2] = np.array(chosen).repeat(THREADS // len(chosen) + 1, axis=0)[:THREADS].T
    normal = [x for x in pairs if 2.0**-126 <= abs(exact.single(x)) < math.inf]
    answer = lambda a, b: a not in normal or b not in normal  # noqa: E731
    assert_none(
        Table((Row("FCHK", "P0, R8, R10", "P0", lambda t: answer(*map(int, values[[0, 2], t]))),), values).failures(
            "FCHK"
        )
    )
