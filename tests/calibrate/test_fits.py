"""The fits against formulas: what went in comes out, with noise as without."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.experiments.calibrate.fits import (
    best_model,
    distinct,
    fit_boat_hull,
    fit_capacity,
    fit_contention,
    fit_line,
    in_flight,
    limit_of,
    one_subsystem,
    plateaus,
    two_kinds,
    two_subsystems,
    two_with_issue_limit,
)
from drywarp.experiments.calibrate.result import Estimate, mean
from tests.effort import examples

WARPS = [1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64]


@given(latency=st.floats(4, 400), bend=st.floats(1.5, 40), seed=st.integers(0, 1000))
@settings(max_examples=examples(120, 5), deadline=None)
def test_a_boat_hull_gives_its_two_constants_back(latency: float, bend: float, seed: int) -> None:
    lambda_ = latency / bend
    noise = np.random.default_rng(seed).normal(1, 0.004, len(WARPS))
    points = [Estimate(max(latency, n * lambda_) * e, 0.004) for n, e in zip(WARPS, noise, strict=True)]
    hull = fit_boat_hull(WARPS, points)
    assert hull.latency is not None
    assert hull.lambda_ is not None
    assert hull.latency.value == pytest.approx(latency, rel=0.02)
    assert hull.lambda_.value == pytest.approx(lambda_, rel=0.02)


def test_a_hull_that_never_rises_has_no_lambda_and_one_that_always_does_no_latency() -> None:
    flat = fit_boat_hull(WARPS, [Estimate(500.0)] * len(WARPS))
    assert flat.lambda_ is None
    assert flat.latency is not None
    rising = fit_boat_hull(WARPS, [Estimate(3.0 * n) for n in WARPS])
    assert rising.lambda_ is not None
    assert rising.lambda_.value == pytest.approx(3.0)


@given(st.floats(0.5, 300), st.floats(0.1, 50))
@settings(max_examples=examples(80, 5), deadline=None)
def test_a_line_is_found_and_its_spread_covers_the_noise(intercept: float, slope: float) -> None:
    xs = [0, 1, 3, 7, 15, 31]
    line = fit_line(xs, [Estimate(intercept + slope * x) for x in xs])
    assert line.slope.value == pytest.approx(slope, rel=1e-6)
    assert line.intercept.value == pytest.approx(intercept, rel=1e-6, abs=1e-9)


def test_the_mix_tells_one_pipe_two_pipes_and_the_issue_limit_apart() -> None:
    betas, lambdas = [1, 2, 3, 4, 6, 8], (1.0, 4.0)
    for name, model in (
        ("one subsystem", lambda b: one_subsystem(b, *lambdas)),
        ("two subsystems", lambda b: two_subsystems(b, *lambdas)),
        ("two subsystems with issue limit", lambda b: two_with_issue_limit(b, *lambdas, 1.0)),
    ):
        found, errors = best_model(betas, [model(b) for b in betas], *lambdas, 1.0)
        assert found == name
        assert errors[name] < 1e-12
    # Figure 12 of the analysis paper, at β = 4: 1/2, 1 and 4/5 instructions of the first kind a cycle.
    assert [4 / f for f in (one_subsystem(4, 1, 4), two_subsystems(4, 1, 4), two_with_issue_limit(4, 1, 4, 1))] == [
        0.5,
        1.0,
        0.8,
    ]


@pytest.mark.parametrize(
    ("a", "b", "c"), [(453, 61, 81), (438, 17, 140), (501, 41, 170), (300, 32, 170), (372, 22, 221)]
)
def test_latency_under_load_of_volkovs_table_6_5(a: float, b: float, c: float) -> None:
    throughput = np.linspace(0.05, 0.97, 24) * c
    latency = (a + b * throughput / (c - throughput)) * np.random.default_rng(1).normal(1, 0.01, 24)
    fit = fit_contention(list(throughput), list(latency))
    assert fit.a == pytest.approx(a, rel=0.03)
    assert fit.c == pytest.approx(c, rel=0.03)
    assert fit.b == pytest.approx(b, rel=0.25)
    assert fit.error < 0.02


def test_levels_of_a_walk_and_two_kinds_of_lines() -> None:
    footprints = [2.0**n for n in range(12, 24)]
    latency = [33.0] * 5 + [210.0] * 4 + [560.0] * 3
    assert [level for _, _, level in plateaus(footprints, latency)] == [33.0, 210.0, 560.0]
    assert two_kinds([200, 402, 201, 399, 199, 400]) == (200.0, pytest.approx(400.33, abs=0.01))
    assert two_kinds([200, 202, 201, 199]) == (200.5, 200.5)


def test_a_limit_of_accesses_under_way_shows_where_more_are_asked_for_than_run() -> None:
    asked = [1.0, 2, 4, 8, 16, 32, 64]
    limited = in_flight([min(n, 12) / 500 for n in asked], [500.0] * 7)
    assert limit_of(asked, limited) == pytest.approx(12)
    assert limit_of(asked, asked) is None


def test_estimates_carry_their_spread() -> None:
    each = Estimate.of([10.0, 10.1, 9.9, 10.0, 14.0])
    assert each.value == 10.0
    assert 0 < each.spread < 0.2
    total = Estimate(10, 3) + Estimate(5, 4)
    assert (total.value, total.spread) == (15, 5)
    assert (Estimate(10, 1) - 4).value == 6
    assert Estimate(4, 0.4).into(8) == Estimate(2, pytest.approx(0.2))
    assert mean([Estimate(1.0), Estimate(3.0)]).spread == pytest.approx(1.0)


EIGHTHS = [n / 8 for n in (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16)]


@given(end=st.floats(0.6, 1.4), more=st.floats(0.6, 2.0), start=st.floats(0, 0.2), seed=st.integers(0, 1000))
@settings(max_examples=examples(120, 5), deadline=None)
def test_the_end_of_a_cache_that_keeps_what_fits_comes_out(end: float, more: float, start: float, seed: int) -> None:
    noise = np.random.default_rng(seed).normal(1, 0.001, len(EIGHTHS))
    times = [Estimate((start + f + more * max(0.0, f - end)) * e) for f, e in zip(EIGHTHS, noise, strict=True)]
    fit = fit_capacity(EIGHTHS, times)
    assert fit.capacity is not None
    assert fit.keeps
    assert fit.capacity.value == pytest.approx(end, rel=0.02)
    assert fit.at(2.0) == pytest.approx(start + 2 + more * (2 - end), rel=0.01)


@given(between=st.integers(1, len(EIGHTHS) - 4), more=st.floats(0.3, 2.0), seed=st.integers(0, 1000))
@settings(max_examples=examples(120, 5), deadline=None)
def test_the_end_of_a_cache_that_keeps_nothing_lies_between_two_footprints(
    between: int, more: float, seed: int
) -> None:
    low, high = EIGHTHS[between : between + 2]
    noise = np.random.default_rng(seed).normal(1, 0.001, len(EIGHTHS))
    times = [Estimate((0.1 + f * (1 + more * (f > low))) * e) for f, e in zip(EIGHTHS, noise, strict=True)]
    fit = fit_capacity(EIGHTHS, times)
    assert fit.capacity is not None
    assert not fit.keeps
    assert fit.capacity.value == pytest.approx((low + high) / 2)
    assert fit.capacity.spread == pytest.approx((high - low) / 2)


@given(st.integers(0, 1000))
@settings(max_examples=examples(40, 5), deadline=None)
def test_a_walk_without_an_end_has_none(seed: int) -> None:
    noise = np.random.default_rng(seed).normal(1, 0.01, len(EIGHTHS))
    assert (
        fit_capacity(EIGHTHS, [Estimate((0.1 + f) * e) for f, e in zip(EIGHTHS, noise, strict=True)]).capacity is None
    )


def test_distinct_places_are_those_that_draws_reach() -> None:
    draws = np.random.default_rng(3).integers(0, 500, (200, 400))
    assert distinct(400, 500) == pytest.approx(np.mean([len(set(row)) for row in draws.tolist()]), rel=0.01)
    assert distinct(1, 1 << 25) == pytest.approx(1)
    assert distinct(32, 1) == 1
