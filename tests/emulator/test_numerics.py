"""The emulator's numerical building blocks, each against an exact model."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drywarp.execution.emulator.atomics import UPDATES, apply
from drywarp.execution.emulator.bits import first_lane, pack, popcount, unpack
from drywarp.execution.emulator.compare import lookup
from drywarp.execution.emulator.half import double_to_bf16
from drywarp.execution.emulator.operands import ZERO
from drywarp.execution.emulator.rounding import fused_double, sum_to_float32
from tests.effort import examples

words = st.integers(0, 2**32 - 1)
doubles = st.floats(allow_nan=False, allow_infinity=False)
singles = st.floats(allow_nan=False, allow_infinity=False, width=32)


def nearest(exact: Fraction, mantissa: int, smallest: int, largest: float) -> float:
    """An exact number rounded to a binary format: bits of its mantissa, exponent of its smallest unit."""
    if exact == 0:
        return 0.0
    exponent = max(math.floor(math.log2(abs(exact.numerator)) - math.log2(exact.denominator)) - mantissa, smallest)
    while abs(exact) / Fraction(2) ** exponent >= 2**mantissa:
        exponent += 1
    while exponent > smallest and abs(exact) / Fraction(2) ** exponent < 2 ** (mantissa - 1):
        exponent -= 1
    # Fraction rounds halves to even.
    rounded = round(exact / Fraction(2) ** exponent) * Fraction(2) ** exponent
    if abs(rounded) > largest:
        return math.inf if rounded > 0 else -math.inf
    return float(rounded)


@settings(max_examples=examples(2000, 8))
@given(a=doubles, b=doubles, c=doubles)
@example(a=1.5, b=-5.814914798132018e16, c=1.8014398509481984e16)  # exact, where the product alone is rounded
@example(a=4.0937828093856013e-73, b=2.0**-1022, c=2.0**-1022)  # the least normal number and next to nothing
def test_fused_multiply_add_of_doubles_rounds_once(a, b, c):
    with np.errstate(all="ignore"):
        got = float(fused_double(np.array([a]), np.array([b]), np.array([c]))[0])
    assert got == nearest(Fraction(a) * Fraction(b) + Fraction(c), 53, -1074, 1.7976931348623157e308)


@settings(max_examples=examples(2000, 8))
@given(
    a=st.floats(1, 2),
    b=st.floats(1, 2),
    tail=st.integers(-60, -40),
    sign=st.sampled_from([-1, 1]),
    scale=st.integers(-1040, 900),
)
def test_fused_multiply_add_near_cancellation_and_denormals(a, b, tail, sign, scale):
    c = -(a * b) + sign * 2.0**tail
    a, c = math.ldexp(a, scale), math.ldexp(c, scale)
    with np.errstate(all="ignore"):
        got = float(fused_double(np.array([a]), np.array([b]), np.array([c]))[0])
    assert got == nearest(Fraction(a) * Fraction(b) + Fraction(c), 53, -1074, 1.7976931348623157e308)


@settings(max_examples=examples(2000, 8))
@given(a=singles, b=singles, c=singles)
def test_fused_multiply_add_of_singles_rounds_once(a, b, c):
    with np.errstate(all="ignore"):
        got = float(sum_to_float32(np.array([a * b]), np.array([c]))[0])
    assert got == nearest(Fraction(a) * Fraction(b) + Fraction(c), 24, -149, 3.4028234663852886e38)


def test_single_sums_half_way_in_double_are_decided_by_what_was_lost():
    # 1 + 2^-24 is half-way between two singles; 2^-90 more or less is lost in double precision.
    half = np.array([1 + 2.0**-24] * 2 + [1 + 3 * 2.0**-24] * 2)
    rest = np.array([2.0**-90, -(2.0**-90)] * 2)
    got = sum_to_float32(half, rest).astype(np.float64)
    np.testing.assert_array_equal(got, [1 + 2.0**-23, 1, 1 + 2.0**-22, 1 + 2.0**-23])


@given(x=doubles)
def test_bf16_rounds_once(x):
    with np.errstate(all="ignore"):
        bits = int(double_to_bf16(np.array([x]))[0])
    got = float(np.array([bits << 16], np.uint32).view(np.float32)[0])
    assert got == nearest(Fraction(x), 8, -133, 3.3895313892515355e38)


def test_every_look_up_table():
    """Words whose bits are all combinations of inputs give the table itself."""
    a, b, c = np.uint32(0xF0), np.uint32(0xCC), np.uint32(0xAA)
    assert [int(np.uint32(lookup(table, ZERO)(a, b, c))) & 0xFF for table in range(256)] == list(range(256))


@given(words=st.lists(words, min_size=1, max_size=5))
def test_masks_pack_and_count(words):
    array = np.array(words, np.uint32)
    assert pack(unpack(array)).tolist() == words
    assert popcount(array).tolist() == [w.bit_count() for w in words]
    assert first_lane(array).tolist() == [(w & -w).bit_length() - 1 if w else 0 for w in words]


@given(
    name=st.sampled_from(sorted(UPDATES)),
    lanes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=80),
)
def test_colliding_atomics_take_effect_in_the_order_of_lanes(name, lanes):
    update = UPDATES[name]
    index = np.array([lane[0] for lane in lanes])
    a, b = (np.array([lane[k] for lane in lanes], np.uint32) for k in (1, 2))
    memory = np.arange(6, dtype=np.uint32)
    model, old = memory.copy(), []
    for place, x, y in zip(index, a, b, strict=True):
        old.append(int(model[place]))
        model[place : place + 1] = update(model[place : place + 1], np.array([x]), np.array([y]))
    found = apply(memory, index, update, a, b, name == "ADD")
    assert found.tolist() == old
    assert memory.tolist() == model.tolist()
