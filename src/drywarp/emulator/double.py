"""Double precision: arithmetic with one rounding, compares."""

from __future__ import annotations

import numpy as np

from ..kernel.instruction import Instruction
from .decode import Decoder, Step, opcode
from .floating import COMPARE_MODIFIERS, compare_step, rounding_of
from .frame import Frame
from .operands import Value
from .rounding import fused_double, sum_double


@opcode("DADD", "RN RM RP RZ")
def _add(d: Decoder, i: Instruction) -> Step:
    # The second addend is printed last, whatever stands between.
    a, b = d.f64(i.operands[1]), d.f64(i.operands[-1])
    put, rounding = d.put_pair(i.operands[0]), rounding_of(i.modifiers)
    if rounding == "RN":
        return lambda f: put(f, np.asarray(a(f) + b(f)).view(np.uint64))
    return lambda f: put(f, np.asarray(sum_double(a(f), b(f), rounding)).view(np.uint64))


@opcode("DMUL", "RN RM RP RZ")
def _multiply(d: Decoder, i: Instruction) -> Step:
    a, b = d.f64(i.operands[1]), d.f64(i.operands[2])
    put, rounding = d.put_pair(i.operands[0]), rounding_of(i.modifiers)
    if rounding == "RN":
        return lambda f: put(f, np.asarray(a(f) * b(f)).view(np.uint64))
    return lambda f: put(f, _product(a(f), b(f), rounding).view(np.uint64))


def _product(a: Value, b: Value, rounding: str) -> Value:
    """A directed product; the sign of a zero one is that of its factors, whatever the mode."""
    product = fused_double(a, b, np.float64(-0.0), rounding)
    return np.asarray(np.where((a == 0) | (b == 0), a * b, product))


@opcode("DFMA", "RN RM RP RZ")
def _fused(d: Decoder, i: Instruction) -> Step:
    a, b, c = (d.f64(o) for o in i.operands[1:4])
    put, rounding = d.put_pair(i.operands[0]), rounding_of(i.modifiers)
    return lambda f: put(f, np.asarray(fused_double(a(f), b(f), c(f), rounding)).view(np.uint64))


@opcode("DSETP", COMPARE_MODIFIERS + " MIN MAX")
def _compare(d: Decoder, i: Instruction) -> Step:
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
