"""Conversions between integers and floating-point types, and the functions that hardware approximates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import Instruction, Operand, Register
from .decode import Decoder, Step, opcode
from .floating import rounding_of
from .frame import Frame
from .half import flushed, half_bits, half_source
from .operands import Fetch, Put, Value, double_bits, flush_denormals, single_bits
from .packing import joined
from .rounding import TO_INTEGER, narrow

_INTEGERS = {"S8": 8, "U8": 8, "S16": 16, "U16": 16, "S32": 32, "U32": 32, "S64": 64, "U64": 64}
_FLOATS = ("F16", "BF16", "F32", "F64", "TF32")
_TYPES = " ".join((*_INTEGERS, *_FLOATS))


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
    """Writer of doubles (rounded to odd where inexact) as f16 or bf16 in a rounding mode, or as f64."""
    if kind == "F64":
        pair = d.put_pair(destination)
        return lambda f, value: pair(f, double_bits(value))
    put = d.put(destination)
    if kind in ("F16", "BF16"):
        return lambda f, value: put(f, half_bits(value, kind == "BF16", rounding).astype(np.uint32))
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
    to_integer = next((TO_INTEGER[n] for n in names if n in TO_INTEGER), np.rint)
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


@opcode("FRND UFRND", "TRUNC FLOOR CEIL F64 F32 F16 BF16 FTZ")
def _round(d: Decoder, i: Instruction) -> Step:
    to_integer = next((TO_INTEGER[n] for n in i.modifiers if n in TO_INTEGER), np.rint)
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


_NARROW = {"S2": 2, "U2": 2, "S4": 4, "U4": 4, "S8": 8, "U8": 8, "S16": 16, "U16": 16}


def _integers(d: Decoder, i: Instruction, sources: Sequence[Fetch]) -> Step:
    """Integers clamped to the range of the narrow type, the last source's low bits above them."""
    kind = i.modifiers[0]
    bits, signed = _NARROW[kind], kind[0] == "S"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    last = i.operands[3]
    # A width after the register's name says how many of its bits are left.
    above = d.word(replace(last, select="") if isinstance(last, Register) else last)
    put, mask = d.put(i.operands[0]), np.int64((1 << bits) - 1)

    def pack(f: Frame) -> None:
        parts = [np.clip(np.asarray(source(f)), low, high).astype(np.int64) & mask for source in sources]
        put(f, joined(parts, bits, above(f)))

    return pack


@opcode("I2IP", f"{' '.join(_NARROW)} S32 SAT")
def _pack_integers(d: Decoder, i: Instruction) -> Step:
    if i.modifiers[1:] != ("S32", "SAT"):
        raise UnsupportedInstructionError(f"modifiers {'.'.join(i.modifiers)}")

    def signed(word: Fetch) -> Fetch:
        return lambda f: np.asarray(word(f)).view(np.int32).astype(np.int64)

    return _integers(d, i, [signed(d.word(operand)) for operand in (i.operands[2], i.operands[1])])


@opcode("F2IP", "S8 U8 F32 TRUNC FLOOR CEIL FTZ NTZ")
def _pack_rounded(d: Decoder, i: Instruction) -> Step:
    to_integer = next((TO_INTEGER[n] for n in i.modifiers if n in TO_INTEGER), np.rint)
    singles = [d.f32(operand, "FTZ" in i.modifiers) for operand in (i.operands[2], i.operands[1])]

    def whole(single: Fetch) -> Fetch:
        # NaN becomes zero; what is out of range is clamped.
        return lambda f: np.clip(np.nan_to_num(to_integer(np.asarray(single(f)).astype(np.float64)), nan=0), -256, 256)

    return _integers(d, i, [whole(single) for single in singles])


# Approximations of functions.

_SPECIAL: dict[str, Callable[[Value], Value]] = {
    "RCP": lambda x: 1.0 / x,
    "RSQ": lambda x: 1.0 / np.sqrt(x),
    "SQRT": np.sqrt,
    "LG2": np.log2,
    "EX2": np.exp2,
    "SIN": lambda x: np.where(x == 0, x, np.sin(2.0 * np.pi * (x - np.rint(x)))),
    "COS": lambda x: np.cos(2.0 * np.pi * (x - np.rint(x))),
    "TANH": np.tanh,
}
_UPPER: dict[str, Callable[[Value], Value]] = {"RCP64H": lambda x: 1.0 / x, "RSQ64H": lambda x: 1.0 / np.sqrt(x)}


@opcode("MUFU", "RCP RSQ SQRT LG2 EX2 SIN COS TANH RCP64H RSQ64H FTZ F16 BF16")
def _special_function(d: Decoder, i: Instruction) -> Step:
    name = i.modifiers[0]
    put = d.put(i.operands[0])
    if name in _UPPER:
        # Operates on the upper word of a double; the lower word is below the table's precision.
        upper, raw = _UPPER[name], d.raw(i.operands[1])
        negate = getattr(i.operands[1], "negate", False)

        def of_upper(f: Frame) -> None:
            x = (raw(f).astype(np.uint64) << np.uint64(32)).view(np.float64)
            y = double_bits(upper(-x if negate else x))
            put(f, (y >> np.uint64(32)).astype(np.uint32))

        return of_upper
    if name not in _SPECIAL:
        raise UnsupportedInstructionError(f"function {name}")
    if "F16" in i.modifiers or "BF16" in i.modifiers:
        return _half_function(d, i, _SPECIAL[name])
    # Denormals are zero on input and output; library code scales its arguments to avoid them.
    function, a = _SPECIAL[name], d.f32(i.operands[1], True)
    return lambda f: put(f, single_bits(flush_denormals(function(a(f).astype(np.float64)).astype(np.float32))))


def _half_function(d: Decoder, i: Instruction, function: Callable[[Value], Value]) -> Step:
    """The function of a half, rounded once; the upper half of the result is zero."""
    bf16 = "BF16" in i.modifiers
    # PTX has powers of two of bf16 with denormal numbers flushed only.
    flush = bf16 and i.modifiers[0] == "EX2"
    source, put = half_source(d, i.operands[1], bf16, flush), d.put(i.operands[0])

    def run(f: Frame) -> None:
        value = function(source(f)[..., 0])
        put(f, half_bits(flushed(value, bf16) if flush else value, bf16).astype(np.uint32))

    return run
