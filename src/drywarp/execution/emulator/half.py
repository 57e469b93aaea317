"""Half precision, two numbers to a register: arithmetic, compares, minima.

Values are float64 arrays of shape (rows, 32, 2), the lower half first: products of halves are exact
in them, and a result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import Constant, Immediate, Instruction, Operand, Predicate, Register
from .compare import boolean_op
from .decode import Decoder, Step, opcode
from .floating import (
    FLOAT_COMPARE,
    choice,
    rounding_of,
    with_sign,
    without_magnitude,
)
from .frame import Frame
from .operands import ZERO, Fetch, Value, constant, flush_denormals, single_bits
from .rounding import narrow, narrow_half, round_to_odd, sum_directed

_LOW = np.uint32(0xFFFF)
_SIXTEEN = np.uint32(16)
_LEAST = {False: 2.0**-14, True: 2.0**-126}
"""The least normal number of f16 and of bf16."""
_ARITHMETIC = "MMA BF16_V2 BF16 SAT RELU F32 FTZ"
_COMPARES = "AND OR XOR BF BF16_V2 FTZ H0_H0 " + " ".join(FLOAT_COMPARE)


def half_sources(operands: Sequence[Operand]) -> list[Operand | tuple[Immediate, Immediate]]:
    """Source operands with packed immediates joined: they are printed as two numbers, high half first."""
    joined: list[Operand | tuple[Immediate, Immediate]] = []
    rest = list(operands)
    while rest:
        first = rest.pop(0)
        if isinstance(first, Immediate) and rest and isinstance(rest[0], Immediate):
            second = rest.pop(0)
            assert isinstance(second, Immediate)
            joined.append((first, second))
        else:
            joined.append(first)
    return joined


def bf16_to_double(words: Value) -> Value:
    """The two bf16 numbers of each word, shape (..., 2)."""
    both = np.stack([words << _SIXTEEN, words & ~_LOW], axis=-1)
    return both.view(np.float32).astype(np.float64)


def double_to_bf16(values: Value) -> Value:
    """Doubles rounded once to bf16, as bits in uint16."""
    values = np.asarray(values, np.float64)
    nearest = values.astype(np.float32)
    back = nearest.astype(np.float64)
    bits: Value = np.ascontiguousarray(nearest).view(np.uint32)
    # Truncate, and set the last bit if anything was cut off.
    over = np.abs(back) > np.abs(values)
    sticky = np.where(back != values, np.uint32(1), ZERO)
    bits = np.where(over, bits - np.uint32(1), bits) | sticky
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> _SIXTEEN) & np.uint32(1))) >> _SIXTEEN
    return np.where(np.isnan(values), np.uint32(0x7FFF), rounded).astype(np.uint16)


def half_bits(values: Value, bf16: bool, rounding: str = "RN") -> Value:
    """Doubles (rounded to odd where inexact) as bits of halves (uint16) in a rounding mode; every NaN has the same."""
    values = np.asarray(values, np.float64)
    if bf16 and rounding == "RN":
        return double_to_bf16(values)
    if not bf16:
        bits = np.asarray(narrow_half(values, rounding)).view(np.uint16)
        return np.where(np.isnan(values), np.uint16(0x7FFF), bits)
    single = np.asarray(narrow(values, "RZ"))
    word = np.ascontiguousarray(single).view(np.uint32)
    inexact = (single != values) | ((word & _LOW) != 0)
    away = inexact & ((values > 0) if rounding == "RP" else (values < 0) & (rounding == "RM"))
    return np.where(np.isnan(values), np.uint32(0x7FFF), (word >> _SIXTEEN) + away).astype(np.uint16)


def clamped_below(values: Value) -> Value:
    """Negative numbers, -0 among them, made zero; NaN remains."""
    return np.where((values > 0) | np.isnan(values), values, 0.0)


def f16_to_double(words: Value) -> Value:
    """The two f16 numbers of each word, shape (..., 2)."""
    words = np.ascontiguousarray(words)[..., None]
    return words.view(np.float16).astype(np.float64)


def _immediate(values: tuple[Immediate, Immediate], bf16: bool) -> Value:
    numbers = np.array([float(values[1].value), float(values[0].value)])
    if bf16:
        return bf16_to_double(np.asarray(pack_halves(double_to_bf16(numbers)[None, :])))[0]
    return numbers.astype(np.float16).astype(np.float64)


def packed_immediate(values: tuple[Immediate, Immediate], bf16: bool) -> int:
    """The word of two halves that are printed as numbers."""
    numbers = _immediate(values, bf16)[None, :]
    return int(pack_halves(double_to_bf16(numbers) if bf16 else numbers.astype(np.float16))[0])


def half_source(d: Decoder, operand: Operand | tuple[Immediate, Immediate], bf16: bool, flush: bool = False) -> Fetch:
    """Fetcher of (rows, 32, 2) doubles, selector, absolute value and sign applied; `flush` makes denormals zero."""
    if isinstance(operand, tuple):
        return constant(_immediate(operand, bf16))
    if isinstance(operand, Immediate) and isinstance(operand.value, float):
        return constant(_immediate((operand, operand), bf16))
    raw = d.raw(operand)
    select = getattr(operand, "select", "")
    negate = isinstance(operand, Register | Constant) and operand.negate
    absolute = isinstance(operand, Register | Constant) and operand.absolute
    widen = bf16_to_double if bf16 else f16_to_double
    if select not in ("", "H0_H0", "H1_H1", "H1_H0", "H0", "H1", "F32"):
        raise UnsupportedInstructionError(f"selector .{select}")

    def fetch(f: Frame) -> Value:
        words = np.asarray(raw(f))
        if select == "F32":
            values = np.repeat(words.view(np.float32).astype(np.float64)[..., None], 2, axis=-1)
        else:
            values = widen(words)
            if select in ("H0_H0", "H0"):
                values = values[..., :1]
            elif select in ("H1_H1", "H1"):
                values = values[..., 1:]
        if flush:
            values = flushed(values, bf16)
        if absolute:
            values = np.abs(values)
        return -values if negate else values

    if d.known(operand) is not None:
        none: Any = None
        return constant(fetch(none))
    return fetch


def flushed(values: Value, bf16: bool) -> Value:
    """Denormal halves made zero, the sign kept."""
    return np.where(np.abs(values) < _LEAST[bf16], np.copysign(0.0, values), values)


def pack_halves(bits: Value) -> Value:
    """Words of pairs of 16-bit elements, shape (..., 2) to (...)."""
    return np.ascontiguousarray(bits).view(np.uint32)[..., 0]


def _writer(d: Decoder, i: Instruction) -> Callable[[Frame, Value], None]:
    put = d.put(i.operands[0])
    names = i.modifiers
    bf16 = "BF16_V2" in names or "BF16" in names
    saturate, relu, flush = "SAT" in names, "RELU" in names, "FTZ" in names

    def store(f: Frame, values: Value) -> None:
        if flush:
            values = flushed(values, bf16)
        if saturate:
            values = np.fmin(np.fmax(values, 0.0), 1.0)
        if relu:
            values = clamped_below(values)
        if "F32" in names:
            put(f, single_bits(values[..., 0]))
            return
        shape = np.broadcast_shapes(np.shape(values), (1, 1, 2))
        values = np.broadcast_to(values, shape)
        put(f, pack_halves(half_bits(values, bf16)))

    return store


def _is_bf16(i: Instruction) -> bool:
    return "BF16_V2" in i.modifiers or "BF16" in i.modifiers


def _sources(d: Decoder, i: Instruction, operands: Sequence[Operand | tuple[Immediate, Immediate]]) -> list[Fetch]:
    return [half_source(d, operand, _is_bf16(i), "FTZ" in i.modifiers) for operand in operands]


@opcode("HFMA2", _ARITHMETIC)
def _fused(d: Decoder, i: Instruction) -> Step:
    sources = half_sources(i.operands[1:])
    a_op, b_op, c_op = sources[:3]
    a, b, c = _sources(d, i, (a_op, b_op, c_op))
    zeros = all(not isinstance(o, tuple) and d.known(o) == 0 for o in (a_op, b_op))
    if zeros and isinstance(c_op, tuple):
        # The compiler's other idiom for loading a constant: -0 * 0 + c.
        return _move_constant(d, i, c_op)
    store = _writer(d, i)
    # For bf16, the sum of a product and a far smaller number does not fit a double.
    return lambda f: store(f, round_to_odd(a(f) * b(f), c(f)))


def _move_constant(d: Decoder, i: Instruction, value: tuple[Immediate, Immediate]) -> Step:
    numbers = np.array([float(value[1].value), float(value[0].value)])
    # -0 * 0 is -0, so a zero of either sign is preserved; the bits are those of the immediate.
    bits = double_to_bf16(numbers) if _is_bf16(i) else numbers.astype(np.float16)
    word, put = pack_halves(bits[None, :])[0], d.put(i.operands[0])
    return lambda f: put(f, word)


@opcode("HADD2", _ARITHMETIC)
def _add(d: Decoder, i: Instruction) -> Step:
    a, b = _sources(d, i, half_sources(i.operands[1:])[:2])
    store = _writer(d, i)
    return lambda f: store(f, a(f) + b(f))


@opcode("HMUL2", _ARITHMETIC)
def _multiply(d: Decoder, i: Instruction) -> Step:
    a, b = _sources(d, i, half_sources(i.operands[1:])[:2])
    store = _writer(d, i)
    return lambda f: store(f, a(f) * b(f))


@opcode("HMNMX2", "NAN BF16_V2 XORSIGN FTZ")
def _minimum(d: Decoder, i: Instruction) -> Step:
    *sources, test = half_sources(i.operands[1:])
    a, b = _sources(d, i, sources)
    if not isinstance(test, Predicate) or test.index != 7:
        raise UnsupportedInstructionError("a predicate that is not constant")
    choose, store = choice(d, test, "NAN" not in i.modifiers), _writer(d, i)
    if "XORSIGN" in i.modifiers:
        # The sign is that of the product of the numbers whose magnitudes are compared.
        signed = [half_source(d, without_magnitude(s), _is_bf16(i)) for s in sources]
        return lambda f: store(f, with_sign(choose(f, a(f), b(f)), signed[0](f), signed[1](f)))
    return lambda f: store(f, choose(f, a(f), b(f)))


def _comparison(d: Decoder, i: Instruction, sources: Sequence[Operand]) -> Fetch:
    """Results per half, shape (rows, 32, 2), combined with the last predicate."""
    a_op, b_op, given_op = half_sources(sources)[:3]
    a, b = _sources(d, i, (a_op, b_op))
    assert isinstance(given_op, Predicate)
    given = d.predicate(given_op)
    compare = FLOAT_COMPARE[next(n for n in i.modifiers if n in FLOAT_COMPARE)]
    combine = boolean_op(next((n for n in i.modifiers if n in ("AND", "OR", "XOR")), "AND"))
    return lambda f: combine(compare(a(f), b(f)), np.asarray(given(f))[..., None])


@opcode("HSETP2", _COMPARES)
def _compare(d: Decoder, i: Instruction) -> Step:
    """Writes two predicates: of the lower and of the upper half."""
    low, high = d.put_predicate(i.operands[0]), d.put_predicate(i.operands[1])
    test = _comparison(d, i, i.operands[2:])

    def run(f: Frame) -> None:
        result = test(f)
        low(f, result[..., 0])
        # If both sources select one half, the result is the same for both.
        high(f, result[..., -1])

    return run


@opcode("HSET2", _COMPARES)
def _compare_to_register(d: Decoder, i: Instruction) -> Step:
    put, test = d.put(i.operands[0]), _comparison(d, i, i.operands[1:])
    one = np.float16(1).view(np.uint16) if "BF" in i.modifiers else np.uint16(0xFFFF)
    if _is_bf16(i) and "BF" in i.modifiers:
        one = np.uint16(0x3F80)

    def run(f: Frame) -> None:
        bits = np.where(test(f), one, np.uint16(0))
        put(f, pack_halves(np.broadcast_to(bits, (*bits.shape[:-1], 2))))

    return run


@opcode("FHADD FHFMA", "RN RM RP RZ FTZ BF16_V2 BF16 SAT")
def _mixed(d: Decoder, i: Instruction) -> Step:
    """Half-precision factors, or one addend, and a float32 that is added last: exact except for one rounding."""
    flush, rounding = "FTZ" in i.modifiers, rounding_of(i.modifiers)
    *halves, last = i.operands[1:]
    bf16, saturate = "BF16_V2" in i.modifiers or "BF16" in i.modifiers, "SAT" in i.modifiers
    sources = [half_source(d, operand, bf16) for operand in halves]
    addend, put = d.f32(last, flush), d.put(i.operands[0])

    def run(f: Frame) -> None:
        # Without a selector, the lower half is used.
        first = sources[0](f)[..., 0]
        for source in sources[1:]:
            first = first * source(f)[..., 0]
        value = sum_directed(first, np.asarray(addend(f)).astype(np.float64), rounding)
        value = flush_denormals(value) if flush else value
        put(f, single_bits(np.fmin(np.fmax(value, np.float32(0)), np.float32(1)) if saturate else value))

    return run
