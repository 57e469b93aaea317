"""The 32 lanes of a warp as one value in compiled code.

Numba supports scalars and arrays. This module adds two types, `Words` (32 words of 32 bits) and `Wide` (32 words of 64
bits), each an LLVM vector, and operations on them. An operation is then one or two machine instructions, and a function
with many of them compiles quickly. A set of lanes is a number with a bit per lane; all numbers are int64, which avoids
casts. Floating-point operations take and return bit patterns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from .pointers import bytes_at, longs_at, words_at

LANES = 32
_BIT, _BYTE, _WORD, _LONG = (ir.IntType(width) for width in (1, 8, 32, 64))
BITS, BYTES, WORDS, LONGS = (ir.VectorType(kind, LANES) for kind in (_BIT, _BYTE, _WORD, _LONG))
FLOATS, DOUBLES = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.DoubleType(), LANES)
_NAMES = {WORDS: "v32i32", LONGS: "v32i64", FLOATS: "v32f32", DOUBLES: "v32f64"}


class _LaneType(types.Type):  # type: ignore[misc]
    """A vector type; each is used once, as `words` and `wide` below."""


class _WordsType(_LaneType):
    pass


class _WideType(_LaneType):
    pass


words, wide = _WordsType("Words"), _WideType("Wide")
mask = number = types.int64


@register_model(_WordsType)
class _WordsModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, WORDS)


@register_model(_WideType)
class _WideModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, LONGS)


Body = Callable[..., Any]
"""Builds the instructions: a builder and LLVM values in, an LLVM value out."""


def operation(result: Any, *arguments: Any) -> Callable[[Body], Any]:
    """Turn a function that builds its instructions into one that compiled code can call."""

    def wrap(body: Body) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return body(builder, *args)

        signature = result(*arguments)
        if len(arguments) == 1:
            return intrinsic(lambda context, a: (signature, generate))
        if len(arguments) == 2:
            return intrinsic(lambda context, a, b: (signature, generate))
        if len(arguments) == 3:
            return intrinsic(lambda context, a, b, c: (signature, generate))
        return intrinsic(lambda context, a, b, c, d: (signature, generate))

    return wrap


def call(builder: Any, name: str, *args: Any) -> Any:
    """Call an LLVM intrinsic that is overloaded on the type of its first argument, which it also returns."""
    kind = args[0].type
    function = ir.FunctionType(kind, [a.type for a in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, f"{name}.{_NAMES[kind]}"), args)


def spread(builder: Any, value: Any, kind: Any) -> Any:
    """A scalar in every lane."""
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(_WORD, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(WORDS, [0] * LANES))


def filled(kind: Any, value: Any) -> Any:
    """A constant in every lane."""
    return ir.Constant(kind, [value] * LANES)


def to_bits(builder: Any, lanes: Any) -> Any:
    """The lanes of a mask as a vector of bits."""
    return builder.bitcast(builder.trunc(lanes, _WORD), BITS)


def to_mask(builder: Any, bits: Any) -> Any:
    """A vector of bits as the lanes of a mask."""
    return builder.zext(builder.bitcast(bits, _WORD), _LONG)


def _place(builder: Any, pointer: Any, index: Any, vector: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [index]), vector.as_pointer())


# Memory -------------------------------------------------------------------------------------------

_NOTHING = ir.Constant(ir.IntType(8).as_pointer(), None)


@operation(words, words_at, types.int64)
def load(builder: Any, pointer: Any, index: Any) -> Any:
    """32 consecutive words of 32 bits."""
    return builder.load(_place(builder, pointer, index, WORDS), align=4)


@operation(wide, longs_at, types.int64)
def load_wide(builder: Any, pointer: Any, index: Any) -> Any:
    """32 consecutive words of 64 bits."""
    return builder.load(_place(builder, pointer, index, LONGS), align=8)


@operation(mask, bytes_at, types.int64)
def load_mask(builder: Any, pointer: Any, index: Any) -> Any:
    """The lanes whose byte, of 32 consecutive ones, is not zero."""
    value = builder.load(_place(builder, pointer, index, BYTES), align=1)
    return to_mask(builder, builder.icmp_unsigned("!=", value, filled(BYTES, 0)))


@operation(types.none, words_at, types.int64, words, mask)
def store(builder: Any, pointer: Any, index: Any, value: Any, lanes: Any) -> Any:
    """Put words of the given lanes into 32 consecutive places."""
    place = _place(builder, pointer, index, WORDS)
    builder.store(builder.select(to_bits(builder, lanes), value, builder.load(place, align=4)), place, align=4)
    return _NOTHING


@operation(types.none, longs_at, types.int64, wide)
def store_wide(builder: Any, pointer: Any, index: Any, value: Any) -> Any:
    """Put 64-bit words into 32 consecutive places."""
    builder.store(value, _place(builder, pointer, index, LONGS), align=8)
    return _NOTHING


@operation(types.none, bytes_at, types.int64, mask)
def store_mask(builder: Any, pointer: Any, index: Any, value: Any) -> Any:
    """Put a byte 1 for each lane of `value` and 0 for the others."""
    builder.store(builder.zext(to_bits(builder, value), BYTES), _place(builder, pointer, index, BYTES), align=1)
    return _NOTHING


# Between numbers, masks and lanes -----------------------------------------------------------------


@operation(words, number)
def splat(builder: Any, value: Any) -> Any:
    """A word, the lower half of a number, in every lane."""
    return spread(builder, builder.trunc(value, _WORD), WORDS)


@operation(wide, number)
def splat_wide(builder: Any, value: Any) -> Any:
    """A 64-bit word in every lane."""
    return spread(builder, value, LONGS)


@operation(number, words)
def first(builder: Any, value: Any) -> Any:
    """The word of lane 0."""
    return builder.zext(builder.extract_element(value, ir.Constant(_WORD, 0)), _LONG)


@operation(number, words, number)
def at_lane(builder: Any, value: Any, lane: Any) -> Any:
    """The word of a lane."""
    return builder.zext(builder.extract_element(value, lane), _LONG)


@operation(words, mask, words, words)
def select(builder: Any, lanes: Any, a: Any, b: Any) -> Any:
    """Words of `a` in the given lanes, of `b` in the others."""
    return builder.select(to_bits(builder, lanes), a, b)


@operation(wide, mask, wide, wide)
def select_wide(builder: Any, lanes: Any, a: Any, b: Any) -> Any:
    """64-bit words of `a` in the given lanes, of `b` in the others."""
    return builder.select(to_bits(builder, lanes), a, b)


@operation(words, mask)
def ones(builder: Any, lanes: Any) -> Any:
    """1 in the given lanes, 0 in the others."""
    return builder.zext(to_bits(builder, lanes), WORDS)


@operation(wide, number)
def lane_numbers(builder: Any, factor: Any) -> Any:
    """The numbers of the lanes, times a factor, as 64-bit words."""
    return builder.mul(ir.Constant(LONGS, list(range(LANES))), spread(builder, factor, LONGS))


@operation(number, mask)
def count(builder: Any, lanes: Any) -> Any:
    """The number of lanes."""
    return builder.ctpop(lanes)


@operation(number, mask)
def lowest(builder: Any, lanes: Any) -> Any:
    """The lowest lane; 64 if there is none."""
    return builder.cttz(lanes, ir.Constant(_BIT, 0))


# 64-bit words of two halves -----------------------------------------------------------------------


@operation(wide, words)
def widen(builder: Any, value: Any) -> Any:
    """Zero-extended."""
    return builder.zext(value, LONGS)


@operation(wide, words)
def widen_signed(builder: Any, value: Any) -> Any:
    """Sign-extended."""
    return builder.sext(value, LONGS)


@operation(wide, words, words)
def join(builder: Any, low: Any, high: Any) -> Any:
    """64-bit words of their halves."""
    upper = builder.shl(builder.zext(high, LONGS), filled(LONGS, 32))
    return builder.or_(builder.zext(low, LONGS), upper)


@operation(words, wide)
def lower(builder: Any, value: Any) -> Any:
    """The lower halves."""
    return builder.trunc(value, WORDS)


@operation(words, wide)
def upper(builder: Any, value: Any) -> Any:
    """The upper halves."""
    return builder.trunc(builder.lshr(value, filled(LONGS, 32)), WORDS)


def _reduction(name: str) -> Any:
    def build(builder: Any, lanes: Any, value: Any) -> Any:
        chosen = builder.select(to_bits(builder, lanes), value, filled(LONGS, 0))
        kind = ir.FunctionType(_LONG, [LONGS])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.{name}.v32i64")
        return builder.call(function, [chosen])

    return operation(number, mask, wide)(build)


# Over the 64-bit words of the given lanes: the unsigned maximum; their OR; their sum. Zero if there are no lanes.
highest_of, union_of, sum_of = _reduction("umax"), _reduction("or"), _reduction("add")
