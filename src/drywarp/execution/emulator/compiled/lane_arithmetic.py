"""Arithmetic on `Words` and `Wide`, lane by lane: integers, single and double precision, conversions.

Shifts by more than the width give zeros or copies of the sign. Compares give the lanes for which they hold. Rounding is
to nearest even throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from .lanes import DOUBLES, FLOATS, LONGS, WORDS, call, filled, mask, number, operation, spread, to_mask, wide, words

Builder = Any
Value = Any


def _integer(kind: Any, build: Callable[[Builder, Value, Value], Value]) -> Any:
    return operation(kind, kind, kind)(build)


add = _integer(words, lambda b, x, y: b.add(x, y))
sub = _integer(words, lambda b, x, y: b.sub(x, y))
mul = _integer(words, lambda b, x, y: b.mul(x, y))
both = _integer(words, lambda b, x, y: b.and_(x, y))
either = _integer(words, lambda b, x, y: b.or_(x, y))
differ = _integer(words, lambda b, x, y: b.xor(x, y))
add_wide = _integer(wide, lambda b, x, y: b.add(x, y))
sub_wide = _integer(wide, lambda b, x, y: b.sub(x, y))
mul_wide = _integer(wide, lambda b, x, y: b.mul(x, y))


# Shifts -------------------------------------------------------------------------------------------


def _shift(builder: Builder, value: Value, amount: Value, how: str) -> Value:
    kind = value.type
    width = 32 if kind == WORDS else 64
    over = builder.icmp_unsigned(">=", amount, filled(kind, width))
    if how == "ashr":
        return builder.ashr(value, builder.select(over, filled(kind, width - 1), amount))
    inside = builder.and_(amount, filled(kind, width - 1))
    moved = builder.shl(value, inside) if how == "shl" else builder.lshr(value, inside)
    return builder.select(over, filled(kind, 0), moved)


left = _integer(words, lambda b, x, n: _shift(b, x, n, "shl"))
right = _integer(words, lambda b, x, n: _shift(b, x, n, "lshr"))
right_signed = _integer(words, lambda b, x, n: _shift(b, x, n, "ashr"))
left_wide = _integer(wide, lambda b, x, n: _shift(b, x, n, "shl"))
right_wide = _integer(wide, lambda b, x, n: _shift(b, x, n, "lshr"))
right_wide_signed = _integer(wide, lambda b, x, n: _shift(b, x, n, "ashr"))


# Bits ---------------------------------------------------------------------------------------------


@operation(words, words)
def ones_of(builder: Builder, value: Value) -> Value:
    """Number of set bits."""
    return call(builder, "llvm.ctpop", value)


@operation(words, words)
def zeros_above(builder: Builder, value: Value) -> Value:
    """Number of zero bits above the highest set bit; 32 for zero."""
    never = ir.Constant(ir.IntType(1), 0)
    function = ir.FunctionType(WORDS, [WORDS, never.type])
    from numba.core import cgutils

    return builder.call(cgutils.get_or_insert_function(builder.module, function, "llvm.ctlz.v32i32"), [value, never])


@operation(words, words)
def reversed_bits(builder: Builder, value: Value) -> Value:
    """Bit 0 becomes bit 31 and so on."""
    return call(builder, "llvm.bitreverse", value)


@operation(words, words, words, words)
def merge(builder: Builder, chooser: Value, a: Value, b: Value) -> Value:
    """Bits of `a` where `chooser` has a one, of `b` where it has a zero."""
    return builder.xor(b, builder.and_(chooser, builder.xor(a, b)))


@operation(words, number, number)
def table_bit(builder: Builder, table: Value, bit: Value) -> Value:
    """Words of ones where a bit of a table is set, else of zeros."""
    set_ = builder.trunc(builder.lshr(table, bit), ir.IntType(1))
    return spread(builder, builder.sext(set_, ir.IntType(32)), WORDS)


# Compares of integers -----------------------------------------------------------------------------


def _compare(kind: Any, test: str, signed: bool = False) -> Any:
    def build(builder: Builder, x: Value, y: Value) -> Value:
        compare = builder.icmp_signed if signed else builder.icmp_unsigned
        return to_mask(builder, compare(test, x, y))

    return operation(mask, kind, kind)(build)


equal, below, below_signed = _compare(words, "=="), _compare(words, "<"), _compare(words, "<", True)
equal_wide, below_wide, below_wide_signed = _compare(wide, "=="), _compare(wide, "<"), _compare(wide, "<", True)


# Single precision ---------------------------------------------------------------------------------


def _single(builder: Builder, value: Value) -> Value:
    return builder.bitcast(value, FLOATS)


def _bits(builder: Builder, value: Value) -> Value:
    return builder.bitcast(value, WORDS)


fadd = operation(words, words, words)(lambda b, x, y: _bits(b, b.fadd(_single(b, x), _single(b, y))))
fmul = operation(words, words, words)(lambda b, x, y: _bits(b, b.fmul(_single(b, x), _single(b, y))))


@operation(words, words, words, words)
def fma(builder: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z, rounded once."""
    return _bits(builder, call(builder, "llvm.fma", *(_single(builder, v) for v in (x, y, z))))


def _compare_single(test: str) -> Any:
    def build(builder: Builder, x: Value, y: Value) -> Value:
        holds = builder.fcmp_unordered if test == "uno" else builder.fcmp_ordered
        return to_mask(builder, holds(test, _single(builder, x), _single(builder, y)))

    return operation(mask, words, words)(build)


fbelow, fequal, funordered = _compare_single("<"), _compare_single("=="), _compare_single("uno")


@operation(words, words)
def flush(builder: Builder, value: Value) -> Value:
    """Denormals replaced by zeros of the same sign."""
    exponent = builder.and_(value, filled(WORDS, 0x7F800000))
    tiny = builder.icmp_unsigned("==", exponent, filled(WORDS, 0))
    return builder.select(tiny, builder.and_(value, filled(WORDS, 0x80000000)), value)


# Double precision ---------------------------------------------------------------------------------


def _double(builder: Builder, value: Value) -> Value:
    return builder.bitcast(value, DOUBLES)


def _long(builder: Builder, value: Value) -> Value:
    return builder.bitcast(value, LONGS)


dadd = operation(wide, wide, wide)(lambda b, x, y: _long(b, b.fadd(_double(b, x), _double(b, y))))
dsub = operation(wide, wide, wide)(lambda b, x, y: _long(b, b.fsub(_double(b, x), _double(b, y))))
dmul = operation(wide, wide, wide)(lambda b, x, y: _long(b, b.fmul(_double(b, x), _double(b, y))))
ddiv = operation(wide, wide, wide)(lambda b, x, y: _long(b, b.fdiv(_double(b, x), _double(b, y))))


@operation(wide, wide, wide, wide)
def dfma(builder: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z of doubles, rounded once."""
    return _long(builder, call(builder, "llvm.fma", *(_double(builder, v) for v in (x, y, z))))


def _compare_double(test: str) -> Any:
    def build(builder: Builder, x: Value, y: Value) -> Value:
        holds = builder.fcmp_unordered if test == "uno" else builder.fcmp_ordered
        return to_mask(builder, holds(test, _double(builder, x), _double(builder, y)))

    return operation(mask, wide, wide)(build)


dbelow, dequal, dunordered = _compare_double("<"), _compare_double("=="), _compare_double("uno")


def _of_double(name: str) -> Any:
    return operation(wide, wide)(lambda b, x: _long(b, call(b, name, _double(b, x))))


dsqrt, drint, dtrunc = _of_double("llvm.sqrt"), _of_double("llvm.rint"), _of_double("llvm.trunc")
dfloor, dceil = _of_double("llvm.floor"), _of_double("llvm.ceil")


# Conversions --------------------------------------------------------------------------------------

single_to_double = operation(wide, words)(lambda b, x: _long(b, b.fpext(_single(b, x), DOUBLES)))
double_to_single = operation(words, wide)(lambda b, x: _bits(b, b.fptrunc(_double(b, x), FLOATS)))
signed_to_single = operation(words, words)(lambda b, x: _bits(b, b.sitofp(x, FLOATS)))
unsigned_to_single = operation(words, words)(lambda b, x: _bits(b, b.uitofp(x, FLOATS)))
signed_to_double = operation(wide, words)(lambda b, x: _long(b, b.sitofp(x, DOUBLES)))
unsigned_to_double = operation(wide, words)(lambda b, x: _long(b, b.uitofp(x, DOUBLES)))


def _to_integer(signed: bool) -> Any:
    low, high = (-(2.0**31), 2.0**31 - 1) if signed else (0.0, 2.0**32 - 1)

    def build(builder: Builder, value: Value) -> Value:
        x = _double(builder, value)
        least, most = filled(DOUBLES, low), filled(DOUBLES, high)
        x = builder.select(builder.fcmp_ordered(">", x, least), x, least)
        x = builder.select(builder.fcmp_ordered("<", x, most), x, most)
        return builder.fptosi(x, WORDS) if signed else builder.fptoui(x, WORDS)

    return operation(words, wide)(build)


double_to_signed, double_to_unsigned = _to_integer(True), _to_integer(False)
"""Doubles with integer values to words, clamped to the range; NaN gives an undefined result."""
