"""Single and double precision: arithmetic with its rounding modes, compares and selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import PT, RZ, Constant, Immediate, Instruction, Operand, Predicate, Register
from .compare import boolean_op
from .decode import Decoder, Step, opcode
from .frame import Frame
from .operands import ZERO, Fetch, Value, double_bits, flush_denormals, single_bits
from .rounding import ROUNDINGS, fused_double, narrow, sum_directed, sum_double, sum_to_float32

_ONE = np.float32(1)
_ARITHMETIC = "RN RM RP RZ FTZ SAT"


def rounding_of(names: Sequence[str]) -> str:
    """The rounding mode among the modifiers; nearest even by default."""
    return next((n for n in names if n in ROUNDINGS), "RN")


def _finish(d: Decoder, i: Instruction) -> Callable[[Frame, Value], None]:
    """A writer of float32 results that flushes and saturates as the modifiers specify."""
    put = d.put(i.operands[0])
    flush, saturate = "FTZ" in i.modifiers, "SAT" in i.modifiers
    if not (flush or saturate):
        return lambda f, value: put(f, single_bits(value))

    def store(f: Frame, value: Value) -> None:
        if flush:
            value = flush_denormals(value)
        if saturate:
            # fmax turns NaN into zero, as saturation does.
            value = np.fmin(np.fmax(value, np.float32(0)), _ONE)
        put(f, single_bits(value))

    return store


@opcode("FADD UFADD FADD32I", _ARITHMETIC)
def _add(d: Decoder, i: Instruction) -> Step:
    flush = "FTZ" in i.modifiers
    a, b = d.f32(i.operands[1], flush), d.f32(i.operands[2], flush)
    store, rounding = _finish(d, i), rounding_of(i.modifiers)
    if rounding == "RN":
        return lambda f: store(f, a(f) + b(f))
    return lambda f: store(f, sum_directed(a(f).astype(np.float64), b(f).astype(np.float64), rounding))


_SCALES = {"D2": 0.5, "D4": 0.25, "D8": 0.125, "M2": 2.0, "M4": 4.0, "M8": 8.0}


@opcode("FMUL UFMUL FMUL32I", _ARITHMETIC + " D2 D4 D8 M2 M4 M8")
def _multiply(d: Decoder, i: Instruction) -> Step:
    flush = "FTZ" in i.modifiers
    a, b = d.f32(i.operands[1], flush), d.f32(i.operands[2], flush)
    store, rounding = _finish(d, i), rounding_of(i.modifiers)
    scale = next((_SCALES[n] for n in i.modifiers if n in _SCALES), 1.0)
    if rounding == "RN" and scale == 1.0:
        return lambda f: store(f, a(f) * b(f))
    return lambda f: store(f, narrow(a(f).astype(np.float64) * b(f) * scale, rounding))


@opcode("FFMA UFFMA FFMA32I", _ARITHMETIC)
def _fused(d: Decoder, i: Instruction) -> Step:
    flush = "FTZ" in i.modifiers
    a, b, c = (d.f32(o, flush) for o in i.operands[1:4])
    store, rounding = _finish(d, i), rounding_of(i.modifiers)

    def fused(f: Frame) -> None:
        product = a(f).astype(np.float64)
        # In place if the first factor is a row of full shape; the product of two float32 is exact.
        product = product * b(f)
        store(f, sum_to_float32(product, c(f)))

    def fused_directed(f: Frame) -> None:
        product = a(f).astype(np.float64) * b(f)
        store(f, sum_directed(product, c(f).astype(np.float64), rounding))

    return fused if rounding == "RN" else fused_directed


def minimum(a: Value, b: Value, quiet: bool) -> Value:
    """Smaller of two floats, -0 below +0; a single NaN is ignored if `quiet`, else it wins."""
    result = np.fmin(a, b) if quiet else np.minimum(a, b)
    return np.where(a == b, np.where(np.signbit(a), a, b), result)


def maximum(a: Value, b: Value, quiet: bool) -> Value:
    """Larger of two floats, +0 above -0; a single NaN is ignored if `quiet`, else it wins."""
    result = np.fmax(a, b) if quiet else np.maximum(a, b)
    return np.where(a == b, np.where(np.signbit(a), b, a), result)


def choice(d: Decoder, operand: Predicate, quiet: bool) -> Callable[[Frame, Value, Value], Value]:
    """Minimum where the predicate is true, maximum where it is false."""
    if operand.index == PT:
        pick = maximum if operand.negate else minimum
        return lambda f, a, b: pick(a, b, quiet)
    test = d.predicate(operand)
    return lambda f, a, b: np.where(test(f), minimum(a, b, quiet), maximum(a, b, quiet))


def without_magnitude(operand: Operand | tuple[Immediate, Immediate]) -> Any:
    """The operand whose absolute value is taken, itself."""
    return replace(operand, absolute=False) if isinstance(operand, Register | Constant) else operand


def with_sign(value: Value, a: Value, b: Value) -> Value:
    """A magnitude with the sign of the product of two numbers."""
    return np.where(np.signbit(a) ^ np.signbit(b), -value, value)


@opcode("FMNMX UFMNMX FMNMX3", "FTZ NAN XORSIGN")
def _minimum(d: Decoder, i: Instruction) -> Step:
    flush, quiet = "FTZ" in i.modifiers, "NAN" not in i.modifiers
    tests = [o for o in i.operands[1:] if isinstance(o, Predicate)]
    sources = [d.f32(o, flush) for o in i.operands[1:] if not isinstance(o, Predicate)]
    store, choose = _finish(d, i), choice(d, tests[-1], quiet)
    signed = [d.f32(without_magnitude(o)) for o in i.operands[1:3]] if "XORSIGN" in i.modifiers else []

    def run(f: Frame) -> None:
        result = sources[0](f)
        for source in sources[1:]:
            result = choose(f, result, source(f))
        if signed:
            result = with_sign(result, signed[0](f), signed[1](f))
        store(f, np.asarray(result))

    return run


FLOAT_COMPARE: dict[str, Callable[[Value, Value], Value]] = {
    "LT": np.less,
    "EQ": np.equal,
    "LE": np.less_equal,
    "GT": np.greater,
    "NE": lambda a, b: (a < b) | (a > b),
    "GE": np.greater_equal,
    "NUM": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "NAN": lambda a, b: np.isnan(a) | np.isnan(b),
    "LTU": lambda a, b: ~(a >= b),
    "EQU": lambda a, b: ~((a < b) | (a > b)),
    "LEU": lambda a, b: ~(a > b),
    "GTU": lambda a, b: ~(a <= b),
    "NEU": np.not_equal,
    "GEU": lambda a, b: ~(a < b),
}
"""Ordered compares are false for NaN, those ending in U true."""
COMPARE_MODIFIERS = "AND OR XOR FTZ " + " ".join(FLOAT_COMPARE)


def compare_step(d: Decoder, i: Instruction, a: Fetch, b: Fetch) -> Step:
    """A compare that sets two predicates: the result and its complement, each combined with a third."""
    compare = FLOAT_COMPARE[next(n for n in i.modifiers if n in FLOAT_COMPARE)]
    combine = boolean_op(next(n for n in i.modifiers if n in ("AND", "OR", "XOR")))
    first, second, with_op = i.operands[0], i.operands[1], i.operands[4]
    put, put_other, given = d.put_predicate(first), d.put_predicate(second), d.predicate(with_op)

    def run(f: Frame) -> None:
        result, other = compare(a(f), b(f)), given(f)
        complement = combine(~result, other)
        put(f, combine(result, other))
        put_other(f, complement)

    return run


@opcode("FSETP UFSETP", COMPARE_MODIFIERS)
def _compare(d: Decoder, i: Instruction) -> Step:
    flush = "FTZ" in i.modifiers
    return compare_step(d, i, d.f32(i.operands[2], flush), d.f32(i.operands[3], flush))


@opcode("FSET", COMPARE_MODIFIERS + " BF")
def _compare_to_register(d: Decoder, i: Instruction) -> Step:
    flush = "FTZ" in i.modifiers
    a, b, given = d.f32(i.operands[1], flush), d.f32(i.operands[2], flush), d.predicate(i.operands[3])
    compare = FLOAT_COMPARE[next(n for n in i.modifiers if n in FLOAT_COMPARE)]
    combine = boolean_op(next(n for n in i.modifiers if n in ("AND", "OR", "XOR")))
    true = np.float32(1).view(np.uint32) if "BF" in i.modifiers else ~ZERO
    put = d.put(i.operands[0])
    return lambda f: put(f, np.where(combine(compare(a(f), b(f)), given(f)), true, ZERO))


@opcode("FSEL UFSEL", "FTZ")
def _select(d: Decoder, i: Instruction) -> Step:
    # Halves of doubles pass through here too: bits must not be normalised, and only signs change.
    _, a_op, b_op, p_op = i.operands
    flush = "FTZ" in i.modifiers
    put, test = d.put(i.operands[0]), d.predicate(p_op)

    def bits(operand: Operand) -> Fetch:
        fetch = d.f32(operand, flush)
        return lambda f: fetch(f).view(np.uint32)

    a, b = bits(a_op), bits(b_op)
    return lambda f: put(f, np.where(test(f), a(f), b(f)))


@opcode("FCHK", "DIVIDE")
def _division_check(d: Decoder, i: Instruction) -> Step:
    """True if a quotient needs the slow path: exponents at the ends of the range, or too far apart."""
    put = d.put_predicate(i.operands[0])
    a, b = d.raw(i.operands[1]), d.raw(i.operands[2])

    def run(f: Frame) -> None:
        x, y = a(f), b(f)
        ex = ((x >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int32)
        ey = ((y >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int32)
        ends = (ex == 255) | (ey == 255) | (ey == 0) | (ey >= 253)
        # Zeros among them: the short way would lose a zero's sign.
        small = ex < 24
        apart = (ex - ey >= 126) | (ex - ey <= -125)
        put(f, ends | small | apart)

    return run


# Single precision two at a time (sm_100 and later).

_PAIRS = {"F32x2.HI_LO": (0, 1), "F32x2.LO_HI": (1, 0)}
"""The register of a pair that each half uses; `.F32` is one number for both."""


def _halves(d: Decoder, operand: Operand, flush: bool) -> tuple[Fetch, Fetch]:
    """The lower and the upper number of a source."""
    select = operand.select if isinstance(operand, Register) else ""
    if not isinstance(operand, Register) or select == "F32" or operand.index == RZ:
        plain = replace(operand, select="") if isinstance(operand, Register) else operand
        both = d.f32(plain, flush)
        return both, both
    if select not in _PAIRS:
        raise UnsupportedInstructionError(f"selector .{select} on a pair of floats")
    low, high = (d.f32(replace(operand, index=operand.index + part, select=""), flush) for part in _PAIRS[select])
    return low, high


def _double(value: Value) -> Value:
    return np.asarray(value).astype(np.float64)


@opcode("FADD2 FMUL2 FFMA2", "RN RM RP RZ FTZ")
def _packed(d: Decoder, i: Instruction) -> Step:
    """The operation on each half of pairs of registers."""
    flush, rounding = "FTZ" in i.modifiers, rounding_of(i.modifiers)
    sources = [_halves(d, operand, flush) for operand in i.operands[1:]]
    puts = [d.put(i.operands[0], part) for part in range(2)]

    def result(numbers: list[Value]) -> Value:
        if i.opcode == "FMUL2":
            value = narrow(_double(numbers[0]) * _double(numbers[1]), rounding)
        else:
            first = _double(numbers[0]) if i.opcode == "FADD2" else _double(numbers[0]) * _double(numbers[1])
            last = _double(numbers[-1])
            value = sum_directed(first, last, rounding)
        return flush_denormals(value) if flush else value

    def run(f: Frame) -> None:
        values = [result([source[part](f) for source in sources]) for part in range(2)]
        for put, value in zip(puts, values, strict=True):
            put(f, single_bits(value))

    return run


# Double precision: arithmetic with one rounding, compares.


@opcode("DADD", "RN RM RP RZ")
def _double_add(d: Decoder, i: Instruction) -> Step:
    # The second addend is printed last, whatever comes in between.
    a, b = d.f64(i.operands[1]), d.f64(i.operands[-1])
    put, rounding = d.put_pair(i.operands[0]), rounding_of(i.modifiers)
    if rounding == "RN":
        return lambda f: put(f, double_bits(a(f) + b(f)))
    return lambda f: put(f, double_bits(sum_double(a(f), b(f), rounding)))


@opcode("DMUL", "RN RM RP RZ")
def _double_multiply(d: Decoder, i: Instruction) -> Step:
    a, b = d.f64(i.operands[1]), d.f64(i.operands[2])
    put, rounding = d.put_pair(i.operands[0]), rounding_of(i.modifiers)
    if rounding == "RN":
        return lambda f: put(f, double_bits(a(f) * b(f)))
    return lambda f: put(f, double_bits(_product(a(f), b(f), rounding)))


def _product(a: Value, b: Value, rounding: str) -> Value:
    """A product with directed rounding; the sign of a zero product is that of its factors, whatever the mode."""
    product = fused_double(a, b, np.float64(-0.0), rounding)
    return np.asarray(np.where((a == 0) | (b == 0), a * b, product))


@opcode("DFMA", "RN RM RP RZ")
def _double_fused(d: Decoder, i: Instruction) -> Step:
    a, b, c = (d.f64(o) for o in i.operands[1:4])
    put, rounding = d.put_pair(i.operands[0]), rounding_of(i.modifiers)
    return lambda f: put(f, double_bits(fused_double(a(f), b(f), c(f), rounding)))


@opcode("DSETP", COMPARE_MODIFIERS + " MIN MAX")
def _double_compare(d: Decoder, i: Instruction) -> Step:
    a, b = d.f64(i.operands[2]), d.f64(i.operands[3])
    if "MIN" not in i.modifiers and "MAX" not in i.modifiers:
        return compare_step(d, i, a, b)
    put, put_nan = d.put_predicate(i.operands[0]), d.put_predicate(i.operands[1])
    smaller = "MIN" in i.modifiers

    def choose(f: Frame) -> None:
        x, y = a(f), b(f)
        nan_x, nan_y = np.isnan(x), np.isnan(y)
        first = (x < y) if smaller else (x > y)
        # The second predicate selects a quieted NaN; it is not the complement of the first.
        put(f, first | (nan_y & ~nan_x))
        put_nan(f, nan_x & nan_y)

    return choose
