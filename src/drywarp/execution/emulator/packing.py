"""Conversions that pack: floats to halves, to numbers of 8, 6 and 4 bits and back.

Two results stand side by side in the low bits, the second operand's below the first one's; what a third operand holds
is shifted above them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import RZ, Immediate, Instruction, Operand, Register
from .decode import Decoder, Step, opcode
from .frame import Frame
from .half import bf16_to_double, clamped_below, f16_to_double, half_bits, pack_halves
from .operands import Fetch, Value, constant
from .rounding import SMALL, double_to_scale, double_to_small, scale_to_double, small_to_single

_SIXTEEN = np.uint32(16)


def joined(parts: Sequence[Value], bits: int, above: Value) -> Value:
    """Results from the lowest on, so many bits each, and `above` them another number's low bits."""
    word: Value = np.uint32(0)
    for place, part in enumerate(parts):
        word = word | part.astype(np.uint32) << np.uint32(place * bits)
    taken = len(parts) * bits
    return word if taken == 32 else word | np.asarray(above) << np.uint32(taken)


_KINDS = ("F16", "BF16", "TF32", "E8", *SMALL)
_FORMS = "PACK_AB MERGE_C PACK_B UNPACK_B PACK_AB_MERGE_C UNPACK_B_MERGE_C"


@opcode("F2FP UF2FP", f"F32 RN RZ RP RELU SATFINITE {' '.join(_KINDS)} {_FORMS}")
def _pack(d: Decoder, i: Instruction) -> Step:
    """What is converted to what, and how it is laid out, are the modifiers; without a type it is F16."""
    form = next(n for n in reversed(i.modifiers) if n in _FORMS.split())
    kinds = [n for n in i.modifiers if n in _KINDS] or ["F16"]
    if form == "UNPACK_B":
        return _unpack(d, i, kinds)
    if form == "PACK_B" and kinds == ["TF32"]:
        return _to_tensor_float(d, i)
    put = d.put(i.operands[0])
    if form == "MERGE_C" and not (isinstance(i.operands[2], Register) and i.operands[2].index == RZ):
        raise UnsupportedInstructionError(f"operands {i.text}")
    bits, narrow = _narrowing(i, kinds[0])
    if form == "UNPACK_B_MERGE_C":
        sources = _halves(d, i.operands[1], kinds[1] == "BF16")
    else:
        operands = i.operands[1:2] if form == "MERGE_C" else (i.operands[2], i.operands[1])
        sources = [_double(d.f32(operand)) for operand in operands]
    above = d.word(i.operands[-1]) if form.endswith("_MERGE_C") else constant(np.uint32(0))
    return lambda f: put(f, joined([narrow(source(f)) for source in sources], bits, above(f)))


def _halves(d: Decoder, operand: Operand, bf16: bool) -> list[Fetch]:
    word, widen = d.word(operand), bf16_to_double if bf16 else f16_to_double

    def half(n: int) -> Fetch:
        return lambda f: widen(np.ascontiguousarray(word(f)))[..., n]

    return [half(n) for n in range(2)]


def _double(fetch: Fetch) -> Fetch:
    return lambda f: np.asarray(fetch(f)).astype(np.float64)


def _narrowing(i: Instruction, kind: str) -> tuple[int, Callable[[Value], Value]]:
    """The bits of a result, and doubles made such: no negative ones with RELU, no larger ones with SATFINITE."""
    relu, saturate = "RELU" in i.modifiers, "SATFINITE" in i.modifiers
    before = clamped_below if relu else lambda value: value
    if kind == "E8":
        up = "RP" in i.modifiers
        return 8, lambda value: double_to_scale(value, up, saturate)
    if kind in SMALL:
        if not saturate or "RZ" in i.modifiers or "RP" in i.modifiers:
            raise UnsupportedInstructionError(f"modifiers {'.'.join(i.modifiers)}")
        return 4 if kind == "E2M1" else 8, lambda value: double_to_small(before(value), kind)
    bf16, toward_zero = kind == "BF16", "RZ" in i.modifiers
    most = 2.0**128 - 2.0**120 if bf16 else 65504.0

    def narrow(value: Value) -> Value:
        limited = np.clip(before(value), -most, most) if saturate else before(value)
        return half_bits(limited, bf16, "RZ" if toward_zero else "RN")

    return 16, narrow


def _to_tensor_float(d: Decoder, i: Instruction) -> Step:
    """Single precision with 10 bits of its fraction left, the other 13 zero."""
    source, put = d.raw(i.operands[1]), d.put(i.operands[0])
    names, last = i.modifiers, np.uint32(1 << 13)
    negate, absolute = getattr(i.operands[1], "negate", False), getattr(i.operands[1], "absolute", False)

    def convert(f: Frame) -> None:
        bits = np.asarray(source(f))
        bits = bits & np.uint32(0x7FFFFFFF) if absolute else bits
        bits = bits ^ np.uint32(0x80000000) if negate else bits
        sign, size = bits & np.uint32(0x80000000), bits & np.uint32(0x7FFFFFFF)
        nan = size > np.uint32(0x7F800000)
        if "RZ" not in names:
            odd = size >> np.uint32(13) & np.uint32(1)
            size = np.where(size < np.uint32(0x7F800000), size + np.uint32(0xFFF) + odd, size)
        size = size & ~(last - np.uint32(1))
        if "SATFINITE" in names:
            size = np.minimum(size, np.uint32(0x7F800000) - last)
        result = np.where(sign, np.uint32(0) if "RELU" in names else size | sign, size)
        put(f, np.where(nan, np.uint32(0x7FFFE000), result))

    return convert


def _unpack(d: Decoder, i: Instruction, kinds: Sequence[str]) -> Step:
    """Two small numbers to halves, the lower one to the lower half; times their scale factors for bf16."""
    to, kind = kinds[0], kinds[1] if len(kinds) > 1 else ""
    operand = i.operands[1]
    select = operand.select if isinstance(operand, Register) else None
    if to not in ("F16", "BF16") or not kind or select not in ("", "H0", "H1", "B0", "B1", "B2", "B3"):
        raise UnsupportedInstructionError(f"operands {i.text}")
    assert isinstance(operand, Register)
    four = kind == "E2M1"
    word, put = d.raw(replace(operand, select="")), d.put(i.operands[0])
    shift = np.uint32(int(select[1]) * (8 if select[0] == "B" else 16) if select else 0)
    scales = _scales(d, i.operands[2]) if len(i.operands) > 2 else None
    relu, bf16 = "RELU" in i.modifiers, to == "BF16"
    most = 2.0**128 - 2.0**120 if bf16 else 65504.0

    def unpack(f: Frame) -> None:
        held = np.asarray(word(f)) >> shift
        parts = np.stack(
            [held >> np.uint32(n * (4 if four else 8)) & np.uint32(15 if four else 255) for n in (0, 1)], -1
        )
        values = scale_to_double(parts) if kind == "E8" else small_to_single(parts, kind).astype(np.float64)
        values = values if scales is None else values * scales(f)
        values = clamped_below(values) if relu else values
        values = np.clip(values, -most, most) if "SATFINITE" in i.modifiers else values
        put(f, pack_halves(half_bits(values, bf16)))

    return unpack


def _scales(d: Decoder, operand: Operand) -> Fetch:
    """The scale factors of the lower and the upper number: the bytes of a half of a register, or of an immediate."""
    if isinstance(operand, Immediate) and isinstance(operand.value, int):
        return constant(scale_to_double([operand.value & 0xFF, operand.value >> 8 & 0xFF]))
    if not isinstance(operand, Register) or operand.select not in ("", "H0", "H1"):
        raise UnsupportedInstructionError(f"scale factors {operand}")
    word, shift = d.raw(replace(operand, select="")), np.uint32(16 if operand.select == "H1" else 0)

    def fetch(f: Frame) -> Value:
        held = np.asarray(word(f)) >> shift
        return scale_to_double(np.stack([held & np.uint32(0xFF), held >> np.uint32(8) & np.uint32(0xFF)], -1))

    return fetch
