"""The figures of a validation by their laws, and against plain reckonings of the same."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.experiments.validate import statistics as figures
from drywarp.experiments.validate.accuracy import accuracy_of
from drywarp.experiments.validate.groups import BINS, MOST_VALUES, OTHERS, groups_of, labels_of
from drywarp.experiments.validate.row import RowResult

TIMES = st.floats(1e-2, 1e3)
# Few values, so that there are ties.
COARSE = st.integers(1, 6).map(float)
PAIRS = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=40)
COARSE_PAIRS = st.lists(st.tuples(COARSE, COARSE), min_size=2, max_size=25)


def columns(pairs: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([p for p, _ in pairs]), np.array([m for _, m in pairs])


@given(st.lists(TIMES, min_size=2, max_size=40, unique=True))
def test_a_perfect_prediction_has_no_error(measured: list[float]) -> None:
    assert figures.mape(measured, measured) == 0
    assert figures.quantile_error(measured, measured, 0.9) == 0
    assert figures.bias(measured, measured) == 0
    assert figures.median_ratio(measured, measured) == 1
    assert figures.spearman(measured, measured) == pytest.approx(1)
    assert figures.kendall(measured, measured) == pytest.approx(1)
    assert all(figures.top_k_regret(measured, measured, k) == 0 for k in (1, 5, 100))


@given(PAIRS, st.floats(0.1, 10))
def test_a_common_factor_of_all_times_changes_nothing(pairs: list[tuple[float, float]], factor: float) -> None:
    p, m = columns(pairs)
    for figure in (figures.mape, figures.bias, figures.median_ratio, figures.spread_error):
        assert figure(p * factor, m * factor) == pytest.approx(figure(p, m), rel=1e-9, abs=1e-12)
    occupancy = np.arange(len(p)) % 5
    assert figures.mape_shape(p * factor, m * factor, occupancy) == pytest.approx(
        figures.mape_shape(p, m, occupancy), rel=1e-6, abs=1e-9
    )


@given(PAIRS, st.floats(0.1, 10))
def test_spread_does_not_see_a_factor_of_the_predictions(pairs: list[tuple[float, float]], factor: float) -> None:
    p, m = columns(pairs)
    assert figures.spread_error(p * factor, m) == pytest.approx(figures.spread_error(p, m), rel=1e-9, abs=1e-12)


@given(st.lists(st.tuples(TIMES, st.floats(-0.9, 3)), min_size=1, max_size=30))
def test_mape_and_bias_are_means_of_the_errors(rows: list[tuple[float, float]]) -> None:
    measured = np.array([time for time, _ in rows])
    errors = np.array([error for _, error in rows])
    predicted = measured * (1 + errors)
    assert figures.mape(predicted, measured) == pytest.approx(np.abs(errors).mean(), abs=1e-9)
    assert figures.bias(predicted, measured) == pytest.approx(errors.mean(), abs=1e-9)
    assert figures.quantile_error(predicted, measured, 0.5) == pytest.approx(np.median(np.abs(errors)), abs=1e-9)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 64), st.floats(0.5, 2.0)), min_size=3, max_size=30),
    st.floats(-0.4, 3),
    st.floats(-0.002, 0.05),
)
def test_shape_sees_neither_an_offset_nor_a_drift_over_occupancy(
    rows: list[tuple[int, float]], offset: float, drift: float
) -> None:
    occupancy = np.array([float(warps) for warps, _ in rows])
    performance = np.array([value for _, value in rows])
    moved = performance + offset + drift * occupancy
    if (moved <= 0).any():
        return
    assert figures.mape_shape(1 / moved, 1 / performance, occupancy) == pytest.approx(0, abs=1e-9)


def test_shape_by_hand() -> None:
    # Performance 1, 2, 3 measured and 2, 2, 4 predicted at occupancies 1, 2, 3: differences 1, 0, 1, fit 2/3.
    found = figures.mape_shape([1 / 2, 1 / 2, 1 / 4], [1.0, 1 / 2, 1 / 3], [1.0, 2.0, 3.0])
    assert found == pytest.approx((1 / 3 / 1 + 2 / 3 / 2 + 1 / 3 / 3) / 3)


@given(COARSE_PAIRS)
def test_ranks_are_mean_places(pairs: list[tuple[float, float]]) -> None:
    p, _ = columns(pairs)
    expected = [1 + (p < value).sum() + ((p == value).sum() - 1) / 2 for value in p]
    assert figures.ranks(p).tolist() == pytest.approx(expected)


@given(COARSE_PAIRS)
def test_spearman_is_the_correlation_of_the_ranks(pairs: list[tuple[float, float]]) -> None:
    p, m = columns(pairs)
    found = figures.spearman(p, m)
    if len(set(p)) == 1 or len(set(m)) == 1:
        assert found is None
        return
    assert found == pytest.approx(np.corrcoef(figures.ranks(p), figures.ranks(m))[0, 1])


@given(COARSE_PAIRS)
def test_kendall_counts_pairs(pairs: list[tuple[float, float]]) -> None:
    agree = disagree = tied_p = tied_m = 0
    for (p, m), (q, n) in itertools.combinations(pairs, 2):
        agree += (p - q) * (m - n) > 0
        disagree += (p - q) * (m - n) < 0
        tied_p += p == q
        tied_m += m == n
    every = len(pairs) * (len(pairs) - 1) // 2
    norm = math.sqrt((every - tied_p) * (every - tied_m))
    found = figures.kendall(*columns(pairs))
    assert found == (pytest.approx((agree - disagree) / norm) if norm else None)


def test_order_against_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    p, m = np.random.default_rng(1).integers(0, 9, (2, 60)).astype(float)
    assert figures.spearman(p, m) == pytest.approx(stats.spearmanr(p, m).statistic)
    assert figures.kendall(p, m) == pytest.approx(stats.kendalltau(p, m).statistic)


@given(PAIRS)
def test_regret_falls_with_k_and_ends_at_nothing(pairs: list[tuple[float, float]]) -> None:
    p, m = columns(pairs)
    found = [figures.top_k_regret(p, m, k) for k in range(1, len(pairs) + 1)]
    assert all(a >= b >= 0 for a, b in itertools.pairwise(found))
    assert found[-1] == 0


def test_regret_by_hand() -> None:
    predicted, measured = [3.0, 1.0, 2.0, 4.0], [1.0, 2.0, 1.5, 9.0]
    assert [figures.top_k_regret(predicted, measured, k) for k in (1, 2, 3)] == [1.0, 0.5, 0.0]


@given(st.lists(TIMES, min_size=2, max_size=20))
def test_a_model_without_an_opinion_gets_the_worst_row(measured: list[float]) -> None:
    same = [1.0] * len(measured)
    assert figures.top_k_regret(same, measured, 1) == pytest.approx(max(measured) / min(measured) - 1)


def test_explained_share() -> None:
    random = np.random.default_rng(0)
    groups = random.integers(0, 4, 4000)
    noise = random.normal(size=4000)
    assert figures.explained_share(groups.astype(float), groups) == pytest.approx(1)
    assert figures.explained_share(noise, groups) < 0.01
    # Variances add up: groups of variance 1.25 beside noise of variance 1.
    assert figures.explained_share(groups + noise, groups) == pytest.approx(1.25 / 2.25, abs=0.03)
    assert figures.explained_share(noise, np.zeros(4000)) == 0
    assert figures.explained_share(noise[:5], np.arange(5)) == 0


@pytest.mark.parametrize("bad", [([], []), ([1.0], [1.0, 2.0]), ([[1.0]], [[1.0]])])
def test_lists_that_do_not_match(bad: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="equal length"):
        figures.mape(*bad)
    with pytest.raises(ValueError, match="1 or more"):
        figures.top_k_regret([1.0], [1.0], 0)


@given(st.lists(st.one_of(st.integers(0, 200).map(str), st.sampled_from(["a", "b", ""])), min_size=1, max_size=120))
def test_every_row_is_in_one_group(column: list[str]) -> None:
    labels, order = labels_of(column)
    assert len(labels) == len(column)
    assert len(set(order)) == len(order)
    assert set(labels) <= set(order)
    assert len(order) <= MOST_VALUES
    p, m = np.full(len(column), 2.0), np.ones(len(column))
    shown = [value for value in order if value in labels]
    groups = groups_of(labels, shown, p, m)
    assert sum(group.rows for group in groups) == len(column)
    assert all(group.mape == 1 and group.median_ratio == 2 for group in groups)


def test_groups_by_value_range_and_name() -> None:
    assert labels_of(["2", "10", "2", "10"] * 3)[1] == ["2", "10"]
    many = [str(n) for n in range(600)]
    labels, order = labels_of(many)
    assert len(order) == BINS
    assert order[0] == "0 to 99"
    assert labels.count("0 to 99") == 100
    names = [f"n{n}" for n in range(30) for _ in range(30 - n)]
    assert labels_of(names)[1][:2] == ["n0", "n1"]
    assert labels_of(names)[1][-1] == OTHERS


def test_the_shape_of_several_kernels_is_the_mean_over_them() -> None:
    """Two kernels, each off by a line of its own over occupancy: no line through both fits."""

    def row(kernel: str, warps: int, real: float, said: float) -> RowResult:
        return RowResult(
            warps, "a100", "x", 1 / real, {"kernel": kernel} if kernel else {}, "ok",
            facts={"warps_per_sm": warps}, times={"pipeline": 1 / said}
        )  # fmt: skip

    def rows(*names: str) -> list[RowResult]:
        found = []
        for name, offset, slope in zip(names, (1.0, 30.0), (0.1, -0.2), strict=True):
            found += [
                row(name, warps, 5 + warps**0.5, 5 + warps**0.5 + offset + slope * warps) for warps in (4, 8, 16, 32)
            ]
        return found

    assert accuracy_of(rows("one", "two"), "pipeline").mape_shape == pytest.approx(0, abs=1e-9)
    mixed = accuracy_of(rows("", ""), "pipeline").mape_shape
    assert mixed is not None
    assert mixed > 0.5
    short = [row("one", warps, 5.0, 6.0) for warps in (4, 8)]
    assert accuracy_of(short, "pipeline").mape_shape is None
