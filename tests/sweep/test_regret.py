"""What is lost by keeping some configurations: against sampling, closed forms and laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.errors import DrywarpError
from drywarp.experiments.sweep.prune import order_sigma, prune
from drywarp.experiments.sweep.regret import chance_of_best, expected_regret
from drywarp.experiments.sweep.row import SweepRow
from tests.effort import first

times = st.lists(st.floats(1e-6, 1e-2), min_size=1, max_size=12)


def sampled(kept: list[float], others: list[float], sigma: float) -> tuple[float, float]:
    rng = np.random.default_rng(7)
    a = np.min(np.array(kept) * np.exp(sigma * rng.standard_normal((200_000, len(kept)))), axis=1)
    b = np.min(np.array(others) * np.exp(sigma * rng.standard_normal((200_000, len(others)))), axis=1)
    return float((a / np.minimum(a, b) - 1).mean()), float((a <= b).mean())


@pytest.mark.parametrize("sigma", first([0.1, 0.03, 0.4]))
@pytest.mark.parametrize(
    ("kept", "others"),
    [
        ([1.0], [1.0]),
        ([1.0, 1.1], [1.15, 1.2, 1.3]),
        ([1.0] * 5, [1.02] * 200),
        ([2.0], [1.0]),
        ([1.0], [9.0]),
    ],
)
def test_against_sampling(kept: list[float], others: list[float], sigma: float) -> None:
    regret, chance = sampled(kept, others, sigma)
    assert expected_regret(kept, others, sigma) == pytest.approx(regret, rel=0.03, abs=3e-4)
    assert chance_of_best(kept, others, sigma) == pytest.approx(chance, abs=5e-3)


@given(st.floats(-0.5, 0.5), st.floats(0.02, 0.3))
@settings(max_examples=50, deadline=None)
def test_two_configurations_have_a_closed_form(gap: float, sigma: float) -> None:
    # The difference of the two logarithms is normal with mean -gap and variance 2σ².
    s = sigma * math.sqrt(2)

    def phi(z: float) -> float:
        return math.erfc(-z / math.sqrt(2)) / 2

    exact = math.exp(-gap + s * s / 2) * phi((-gap + s * s) / s) - phi(-gap / s)
    assert expected_regret([1.0], [math.exp(gap)], sigma) == pytest.approx(exact, rel=2e-3, abs=1e-6)
    assert chance_of_best([1.0], [math.exp(gap)], sigma) == pytest.approx(phi(gap / s), abs=1e-3)


@given(times, times, st.floats(0.01, 0.5), st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_laws(kept: list[float], others: list[float], sigma: float, factor: float) -> None:
    regret, chance = expected_regret(kept, others, sigma), chance_of_best(kept, others, sigma)
    assert regret >= 0
    assert -1e-9 <= chance <= 1 + 1e-9
    # A factor of all times changes nothing, and what is kept on top of that can only help.
    scaled = expected_regret([t * factor for t in kept], [t * factor for t in others], sigma)
    assert scaled == pytest.approx(regret, rel=1e-6, abs=1e-9)
    assert expected_regret([*kept, others[0]], others[1:], sigma) <= regret + 2e-3 * (1 + regret)


def test_ends() -> None:
    assert expected_regret([1.0, 2.0], [], 0.1) == 0
    assert chance_of_best([1.0], [], 0.1) == 1
    assert expected_regret([1.5], [1.0], 0) == pytest.approx(0.5)
    assert expected_regret([1.0], [1.5], 0) == 0
    with pytest.raises(ValueError, match="nothing is kept"):
        expected_regret([], [1.0], 0.1)
    with pytest.raises(ValueError, match="not positive"):
        expected_regret([0.0], [1.0], 0.1)


def rows(count: int, gpu: str = "a100", n: int = 1) -> list[SweepRow]:
    return [SweepRow(k, gpu, {"x": k, "n": n}, time_s=float(1 + (7 * k) % count)) for k in range(1, count + 1)]


def test_the_best_share_of_each_gpu_and_problem() -> None:
    mixed = [
        *rows(40),
        *rows(20, "h100"),
        *rows(20, "h100", 2),
        SweepRow(99, "a100", {"x": 0, "n": 1}, status="failed"),
    ]
    found = prune(mixed, 0.1, ["n"])
    assert [(k.gpu, dict(k.problem), len(k.rows), k.of) for k in found.groups] == [
        ("a100", {"n": 1}, 4, 40),
        ("h100", {"n": 1}, 2, 20),
        ("h100", {"n": 2}, 2, 20),
    ]
    assert [row.time_s for row in found.groups[0].rows] == [1, 2, 3, 4]
    assert found.sigma == order_sigma()
    assert found.regret == max(k.regret for k in found.groups)
    assert prune(rows(30), 1.0).regret == 0
    assert len(prune(rows(3), 0.01).rows) == 1
    for share in (0.0, 1.5, -1):
        with pytest.raises(DrywarpError, match="expected a fraction above 0"):
            prune(rows(3), share)
    with pytest.raises(DrywarpError, match="nothing was predicted"):
        prune([SweepRow(1, "a100", {}, status="failed")], 0.5)
