"""Instructions on integers: every form of their operands on boundary values, in both loops.

What each should give is written here in Python's integers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from .exact import M32, M64, joined, parts, signed
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
    # A zero product and an addend of ones, which only a carry coming in makes overflow.
    values[4:6, 608:], values[[0, 2], 624:] = M32, 0
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


def arithmetic() -> Iterator[Row]:
    yield Row("IADD3", "R20, {i}, {i}, {i}", "R20", lambda a, b, c: a + b + c, uniform=True)
    yield Row("VIADD IADD", "R20, {i}, {i}", "R20", lambda a, b: a + b)
    yield Row("IADD3", "R20, P0, P3, {+}, {+}, {+}", "R20 P0 P3", carries, uniform=True)
    yield Row("IADD3", "R20, P3, {+}, {+}, {+}", "R20 P3", lambda *t: carries(*t)[:2], brief=True)
    yield Row("IADD3", "R20, PT, PT, {i}, {i}, {i}", "R20", lambda a, b, c: a + b + c, brief=True)
    yield Row("IADD3.X", "R20, {x}, {x}, {x}, {p}, {p}", "R20", lambda *terms: sum(terms), uniform=True)
    yield Row("IADD3.X", "R20, P0, P3, {x}, {x}, {x}, {p}, {p}", "R20 P0 P3", carries, uniform=True)
    yield Row("IADD.64", "R20, {l}, {q}", "L20", lambda a, b: a + b)
    yield Row("IADD3.64", "R20, PT, PT, {l}, {l}, {q}", "L20", lambda a, b, c: a + b + c, uniform=True)
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
        yield Row(f"IMAD.WIDE{name}", "R20, {n}, {n}, {q}", "L20", wide(is_signed), uniform=True)
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
            f"R20, P0, {{n}}, {{+}}, {n:#x}",
            "R20 P0",
            lambda a, b, n=n: carries(a << n & M32, b)[:2],
            brief=n == 1,
            uniform=True,
        )
        yield Row(
            "LEA",
            f"R20, P0, {{m}}, {{+}}, {n:#x}",
            "R20 P0",
            lambda a, b, n=n: carries((a << n & M32 ^ M32) + 1, b)[:2],
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


ARITHMETIC = Table((*arithmetic(), *scaled(), *minima()), words())


@pytest.mark.parametrize("opcode", ARITHMETIC.opcodes())
def test_arithmetic(opcode: str) -> None:
    assert_none(ARITHMETIC.failures(opcode))
