"""Laws of putting parts together, whatever they are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.analysis.result import BandPart
from drywarp.analysis.uncertainty.constants import CLOCK, combine, part

RATIOS = st.lists(st.floats(0.2, 5.0), max_size=3)
NAMES = st.sampled_from(["scheduler", "L2 state", "DRAM bandwidth", "model", CLOCK])
ONE = st.tuples(NAMES, RATIOS).map(lambda drawn: part(*drawn, ""))
PARTS = st.lists(ONE, max_size=6)
TIMES = st.floats(1e-7, 1e3)
ROUND = 1 + 1e-12


@given(TIMES, PARTS)
def test_the_band_holds_the_nominal_time_and_the_whole_holds_that_at_one_clock(
    time: float, parts: list[BandPart]
) -> None:
    band = combine(time, 0.9, parts)
    assert 0 < band.low_s <= band.low_at_clock_s * ROUND
    assert band.low_at_clock_s <= time * ROUND
    assert time <= band.high_at_clock_s * ROUND
    assert band.high_at_clock_s <= band.high_s * ROUND


@given(TIMES, PARTS, ONE)
def test_a_part_that_grows_or_is_added_never_narrows_the_band(
    time: float, parts: list[BandPart], more: BandPart
) -> None:
    usual = combine(time, 0.9, parts)
    wider = combine(time, 0.9, [*parts, more])
    assert wider.low_s <= usual.low_s * ROUND
    assert wider.high_s >= usual.high_s / ROUND
    if parts:
        first = parts[0]
        grown = BandPart(first.name, first.low / 1.1, first.high * 1.1, "")
        wider = combine(time, 0.9, [grown, *parts[1:]])
        assert wider.low_s <= usual.low_s * ROUND
        assert wider.high_s >= usual.high_s / ROUND


@given(TIMES, st.permutations([part("a", [0.8], ""), part("b", [0.9, 1.3], ""), part("c", [1.2], "")]))
def test_the_order_of_the_parts_does_not_matter(time: float, parts: list[BandPart]) -> None:
    band, sorted_band = combine(time, 0.9, parts), combine(time, 0.9, sorted(parts, key=lambda p: p.name))
    assert band.high_s == pytest.approx(sorted_band.high_s, rel=1e-12)
    assert band.parts == sorted_band.parts


def test_squares_add_up_and_the_clock_multiplies() -> None:
    parts = [part("a", [math.exp(-0.3), math.exp(0.3)], ""), part("b", [math.exp(0.4)], ""), part(CLOCK, [2.0], "")]
    band = combine(1.0, 0.9, parts, (700e6, 1400e6))
    assert band.high_at_clock_s == pytest.approx(math.exp(0.5))
    assert band.low_at_clock_s == pytest.approx(math.exp(-0.3))
    assert band.high_s == pytest.approx(2 * math.exp(0.5))
    assert band.low_s == band.low_at_clock_s
    assert band.clock_hz == (700e6, 1400e6)
    assert [p.name for p in band.parts] == [CLOCK, "a", "b"]


def test_ratios_on_one_side_leave_the_other_alone() -> None:
    assert part("a", [1.2, 1.1], "") == BandPart("a", 1.0, 1.2, "")
    assert part("a", [], "") == BandPart("a", 1.0, 1.0, "")
