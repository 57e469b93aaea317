"""Conversions between integers and floating-point types, 8-bit ones among them, and packing of halves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import Instruction, Operand, Register
from .decode import Decoder, Step, opcode
from .floating import rounding_of
from .frame import Frame
from .half import bf16_to_double, double_to_bf16, f16_to_double, half_source
from .operands import Fetch, Put, Value, double_bits, flush_denormals, single_bits
from .rounding import narrow, narrow_half

_INTEGERS = {"S8": 8, "U8": 8, "S16": 16, "U16": 16, "S32": 32, "U32": 32, "S64": 64, "U64": 64}
_FLOATS = ("F16", "BF16", "F32", "F64", "TF32")
_TYPES = " ".join((*_INTEGERS, *_FLOATS))
_ROUND_TO_INTEGER: dict[str, Callable[[Value], Value]] = {
    "TRUNC": np.trunc,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
}


def _selected(d: Decoder, operand: Operand, bits: int, signed: bool) -> Fetch:
    """Integers of a byte, half or word of a register, extended to int64, with the sign applied."""
    raw = d.raw(operand)
    select = operand.select if isinstance(operand, Register) else ""
    position = int(select[1]) if select[:1] in ("B", "H") else 0
    shift = np.uint32(position * (8 if select.startswith("B") else 16))
    narrow_type = {8: np.int8, 16: np.int16, 32: np.int32}[bits] if signed else np.uint32
    mask = np.uint32((1 << bits) - 1)
    negate = isinstance(operand, Register) and operand.negate
    absolute = isinstance(operand, Register) and operand.absolute

    def fetch(f: Frame) -> Value:
        value = ((raw(f) >> shift) & mask).astype(narrow_type).astype(np.int64)
        if absolute:
            value = np.abs(value)
        return -value if negate else value

    return fetch


def _nearest_double(value: Value, unsigned: bool) -> tuple[Value, Value, Value]:
    """64-bit integers as the nearest doubles, and whether each is above or below its integer."""
    integer: Value = value.view(np.uint64) if unsigned else value
    nearest = np.asarray(integer).astype(np.float64)
    # The end of the range itself does not convert back; every large double is an integer.
    end = 2.0**64 if unsigned else 2.0**63
    beyond = nearest >= end
    back = np.where(beyond, 0.0, nearest).astype(integer.dtype)
    return nearest, beyond | (back > integer), ~beyond & (back < integer)


def integer_to_double(value: Value, unsigned: bool, rounding: str = "RN") -> Value:
    """64-bit integers to doubles in a rounding mode, or to odd (`ODD`) for a later rounding."""
    nearest, above, below = _nearest_double(value, unsigned)
    if rounding == "RN":
        return nearest
    lower = np.where(above, np.nextafter(nearest, -np.inf), nearest)
    upper = np.where(below, np.nextafter(nearest, np.inf), nearest)
    if rounding == "RM":
        return lower
    if rounding == "RP":
        return upper
    toward_zero = np.where(nearest > 0, lower, upper)
    if rounding == "RZ":
        return toward_zero
    return (toward_zero.view(np.uint64) | (above | below).astype(np.uint64)).view(np.float64)


def put_float(d: Decoder, destination: Operand, kind: str, rounding: str = "RN") -> Put:
    """Writer of doubles (rounded to odd where inexact) as f16 in a rounding mode, bf16 or f64."""
    if kind == "F64":
        pair = d.put_pair(destination)
        return lambda f, value: pair(f, double_bits(value))
    put = d.put(destination)
    if kind == "F16":
        return lambda f, value: put(f, narrow_half(value, rounding).view(np.uint16).astype(np.uint32))
    if kind == "BF16" and rounding == "RN":
        return lambda f, value: put(f, double_to_bf16(value).astype(np.uint32))
    raise UnsupportedInstructionError(f"conversion to {kind}")


@opcode("I2F I2FP UI2F UI2FP", _TYPES + " RN RM RP RZ")
def _integer_to_float(d: Decoder, i: Instruction) -> Step:
    kinds = [n for n in i.modifiers if n in _INTEGERS]
    kind = kinds[0] if kinds else "S32"
    to = next((n for n in i.modifiers if n in _FLOATS), "F32")
    signed, bits, rounding = kind[0] == "S", _INTEGERS[kind], rounding_of(i.modifiers)
    operand = i.operands[1]
    source = d.pair(operand) if bits == 64 else _selected(d, operand, bits, signed)

    def load(f: Frame) -> Value:
        return np.asarray(source(f)).view(np.int64)

    if to == "F32":
        put = d.put(i.operands[0])
        if bits < 64:
            return lambda f: put(f, narrow(load(f).astype(np.float64), rounding).view(np.uint32))
        return lambda f: put(f, narrow(integer_to_double(load(f), not signed, "ODD"), rounding).view(np.uint32))
    store = put_float(d, i.operands[0], to, rounding)
    if bits < 64:
        return lambda f: store(f, load(f).astype(np.float64))
    how = rounding if to == "F64" else "ODD"
    return lambda f: store(f, integer_to_double(load(f), not signed, how))


def float_source(d: Decoder, operand: Operand, kind: str, flush: bool) -> Fetch:
    """Doubles of an operand of a floating-point type."""
    if kind == "F64":
        return d.f64(operand)
    if kind in ("F16", "BF16"):
        both = half_source(d, operand, kind == "BF16")
        return lambda f: both(f)[..., 0]
    single = d.f32(operand, flush)
    return lambda f: single(f).astype(np.float64)


@opcode("F2I UF2I", _TYPES + " TRUNC FLOOR CEIL FTZ NTZ")
def _float_to_integer(d: Decoder, i: Instruction) -> Step:
    names = i.modifiers
    kind = next((n for n in names if n in _INTEGERS), "S32")
    source_kind = next((n for n in names if n in _FLOATS), "F32")
    source = float_source(d, i.operands[1], source_kind, "FTZ" in names)
    to_integer = next((_ROUND_TO_INTEGER[n] for n in names if n in _ROUND_TO_INTEGER), np.rint)
    bits, signed = _INTEGERS[kind], kind[0] == "S"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if bits == 64:
        put_pair = d.put_pair(i.operands[0])
        return lambda f: put_pair(f, _saturate64(to_integer(source(f)), signed))
    put = d.put(i.operands[0])
    invalid = np.int64(2**31 if source_kind == "F64" else 0)

    def convert(f: Frame) -> None:
        value = to_integer(source(f))
        result = np.clip(np.where(np.isnan(value), 0.0, value), low, high).astype(np.int64)
        put(f, np.where(np.isnan(value), invalid, result).astype(np.uint32))

    return convert


def _saturate64(value: Value, signed: bool) -> Value:
    """Doubles that are integers, clamped to 64-bit integers; NaN becomes the top bit alone."""
    value = np.asarray(value)
    nan = np.isnan(value)
    if signed:
        high, low = value >= 2.0**63, value < -(2.0**63)
        result = np.where(high | low | nan, 0.0, value).astype(np.int64).view(np.uint64)
        result = np.where(high, np.uint64(2**63 - 1), np.where(low, np.uint64(2**63), result))
    else:
        high, low = value >= 2.0**64, value < 0
        result = np.where(high | low | nan, 0.0, value).astype(np.uint64)
        result = np.where(high, np.uint64(2**64 - 1), result)
    return np.where(nan, np.uint64(2**63), result)


@opcode("FRND UFRND", "TRUNC FLOOR CEIL F64 F32 F16 FTZ")
def _round(d: Decoder, i: Instruction) -> Step:
    to_integer = next((_ROUND_TO_INTEGER[n] for n in i.modifiers if n in _ROUND_TO_INTEGER), np.rint)
    kind = next((n for n in i.modifiers if n in _FLOATS), "F32")
    source = float_source(d, i.operands[1], kind, "FTZ" in i.modifiers)
    if kind != "F32":
        store = put_float(d, i.operands[0], kind)
        return lambda f: store(f, to_integer(source(f)))
    put = d.put(i.operands[0])
    return lambda f: put(f, single_bits(to_integer(source(f)).astype(np.float32)))


@opcode("F2F UF2F", _TYPES + " RN RM RP RZ FTZ TRUNC FLOOR CEIL SAT")
def _float_to_float(d: Decoder, i: Instruction) -> Step:
    to, source_kind = [n for n in i.modifiers if n in _FLOATS][:2]
    source = float_source(d, i.operands[1], source_kind, "FTZ" in i.modifiers)
    rounding, flush = rounding_of(i.modifiers), "FTZ" in i.modifiers
    if "SAT" in i.modifiers:
        raise UnsupportedInstructionError("modifier .SAT")
    if to == "F32":
        put = d.put(i.operands[0])

        def to_single(f: Frame) -> None:
            value = narrow(source(f), rounding)
            put(f, single_bits(flush_denormals(value) if flush else value))

        return to_single
    if to == "TF32":
        raise UnsupportedInstructionError("conversion to TF32")
    store = put_float(d, i.operands[0], to, rounding)
    return lambda f: store(f, source(f))


@opcode(
    "F2FP",
    "F16 BF16 F32 PACK_AB RZ RN RELU PACK_B TF32 MERGE_C SATFINITE E4M3 E5M2 UNPACK_B PACK_AB_MERGE_C UNPACK_B_MERGE_C",
)
def _pack(d: Decoder, i: Instruction) -> Step:
    """Two float32 to halves: the first source goes to the upper half."""
    if i.modifiers[-1].endswith("_MERGE_C"):
        return _pack_bytes(d, i)
    if "UNPACK_B" in i.modifiers:
        return _unpack(d, i)
    for name in ("PACK_B", "TF32", "SATFINITE", "E4M3", "E5M2"):
        if name in i.modifiers:
            raise UnsupportedInstructionError(f"modifier .{name}")
    bf16, toward_zero, relu = "BF16" in i.modifiers, "RZ" in i.modifiers, "RELU" in i.modifiers
    high, low = d.f32(i.operands[1]), d.f32(i.operands[2])
    put = d.put(i.operands[0])
    round_half = _half_toward_zero if toward_zero else _half_nearest

    def pack(f: Frame) -> None:
        words = []
        for source in (low, high):
            value = np.asarray(source(f))
            if relu:
                value = np.fmax(value, np.float32(0))
            words.append(round_half(value, bf16).astype(np.uint32))
        put(f, words[0] | words[1] << np.uint32(16))

    return pack


def _unpack(d: Decoder, i: Instruction) -> Step:
    """Two 8-bit floats of a register's half to halves: the lower byte goes to the lower one."""
    source, kind = i.operands[-1], next((n for n in i.modifiers if n in ("E4M3", "E5M2")), "")
    if i.modifiers[0] != "F16" or not kind or not isinstance(source, Register) or source.select not in ("", "H1"):
        raise UnsupportedInstructionError(f"operands {i.text}")
    word, put = d.raw(replace(source, select=""), 0), d.put(i.operands[0])
    shift = np.uint32(16 if source.select else 0)

    def unpack(f: Frame) -> None:
        bits = np.ascontiguousarray(np.asarray(word(f)) >> shift)[..., None].view(np.uint8)[..., :2]
        put(f, np.ascontiguousarray(float8_to_single(bits, kind).astype(np.float16)).view(np.uint32)[..., 0])

    return unpack


def _pack_bytes(d: Decoder, i: Instruction) -> Step:
    """Two numbers to 8-bit floats, above them the low half of the last source: the second of two goes to the low byte.

    The numbers are those of two registers, or the halves of one.
    """
    kind, wide = i.modifiers[1], i.modifiers[-1] == "PACK_AB_MERGE_C"
    if i.modifiers[0] != "SATFINITE" or kind not in _FLOATS_8 or i.modifiers[2] not in ("F32", "F16", "BF16"):
        raise UnsupportedInstructionError(f"modifiers {'.'.join(i.modifiers)}")
    singles = [d.f32(o) for o in (i.operands[2], i.operands[1])] if wide else []
    halves, widen = d.word(i.operands[1]), bf16_to_double if i.modifiers[2] == "BF16" else f16_to_double
    above, put = d.word(i.operands[-1]), d.put(i.operands[0])

    def pack(f: Frame) -> None:
        if wide:
            pair = np.stack([f.spread(np.asarray(single(f))) for single in singles], axis=-1).astype(np.float64)
        else:
            pair = widen(np.ascontiguousarray(f.spread(halves(f))))
        low, high = (double_to_float8(pair[..., n], kind).astype(np.uint32) for n in range(2))
        put(f, low | high << np.uint32(8) | f.spread(above(f)) << np.uint32(16))

    return pack


def _half_nearest(value: Value, bf16: bool) -> Value:
    return double_to_bf16(value) if bf16 else value.astype(np.float16).view(np.uint16)


def _half_toward_zero(value: Value, bf16: bool) -> Value:
    if bf16:
        return (value.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    nearest = value.astype(np.float16)
    over = np.abs(nearest.astype(np.float32)) > np.abs(value)
    return np.where(over, nearest.view(np.uint16) - np.uint16(1), nearest.view(np.uint16))


@opcode("I2I", _TYPES + " SAT")
def _integer_to_integer(d: Decoder, i: Instruction) -> Step:
    """Saturating narrowing of a signed word."""
    kind = next(n for n in i.modifiers if n in _INTEGERS)
    bits, signed = _INTEGERS[kind], kind[0] == "S"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    put, source = d.put(i.operands[0]), d.word(i.operands[1])

    def convert(f: Frame) -> None:
        value = np.asarray(source(f)).view(np.int32).astype(np.int64)
        put(f, np.clip(value, low, high).astype(np.uint32))

    return convert


# The two 8-bit floating-point types: E4M3 (no infinity, one NaN) and E5M2 (as IEEE's).

_FORMS = {"E4M3": (4, 3, 7), "E5M2": (5, 2, 15)}
"""Exponent bits, mantissa bits, bias."""


@cache
def _table(name: str) -> npt.NDArray[np.float32]:
    """The numbers of all 256 bit patterns."""
    exponent_bits, mantissa_bits, bias = _FORMS[name]
    bits = np.arange(256)
    exponent = bits >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = (bits & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
    values = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    if name == "E4M3":
        values[bits & 0x7F == 0x7F] = np.nan
    else:
        top = exponent == 31
        values[top] = np.where(mantissa[top] == 0, np.inf, np.nan)
    return np.where(bits >= 128, -values, values).astype(np.float32)


def float8_to_single(bits: Any, name: str) -> npt.NDArray[np.float32]:
    """Numbers of bit patterns (uint8) of ``E4M3`` or ``E5M2``."""
    return np.asarray(_table(name)[bits])


_FLOATS_8 = {"E4M3": (3, -6, 127), "E5M2": (2, -14, 124)}
"""Bits of the fraction, the least exponent, and how many bit patterns are finite numbers of one sign."""


def double_to_float8(values: Any, name: str) -> npt.NDArray[np.uint8]:
    """Bit patterns of ``E4M3`` or ``E5M2``, rounded to nearest even; too large ones become the largest, NaN 0x7f."""
    fraction, least, count = _FLOATS_8[name]
    known = _table(name)[:count].astype(np.float64)
    size = np.where(np.isfinite(values), np.abs(values), known[-1])
    exponent = np.maximum(np.frexp(np.maximum(size, 2.0**least))[1] - 1, least) - fraction
    rounded = np.minimum(np.ldexp(np.rint(np.ldexp(size, -exponent)), exponent), known[-1])
    bits = np.searchsorted(known, rounded) | np.signbit(values).astype(np.int64) << 7
    return np.where(np.isnan(values), 0x7F, bits).astype(np.uint8)
