"""Needed occupancy, cusp and contention: the thesis's laws over any parameters."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from drywarp.hardware import load_gpu
from drywarp.models.cusp import contention_of
from drywarp.models.needed_occupancy import Mix, instruction_throughput, memory_gbs
from drywarp.models.prior_on_mix import baghsorkhi_warp_latency, sim_time, zhang_owens_throughput
from drywarp.models.volkov_contention import Contention, Term, fit_of, memory_throughput, needed_occupancy, solve

alphas = st.floats(0.01, 1000)
warps = st.integers(1, 64)
mixes = st.builds(
    Mix,
    mem_lat=st.floats(30, 2000),  # no shorter than alu_lat, or the issue bound has no maximum at the cusp
    mem_thru=st.floats(0.001, 1),
    alu_lat=st.floats(2, 30),
    alu_thru=st.sampled_from((0.25, 1.0, 2.0, 4.0)),
    issue_thru=st.sampled_from((0.5, 1.0, 4.0, inf)),
)
contentions = st.builds(
    lambda a, b, c: Contention(a, (Term(b, c),)), st.floats(100, 600), st.floats(1, 200), st.floats(0.01, 1)
)


@given(mixes, alphas)
def test_needed_occupancy_is_at_least_one_and_attains_the_bound(mix: Mix, alpha: float) -> None:
    needed = mix.needed_occupancy(alpha)
    assert needed >= 1
    assert mix.memory_throughput(needed, alpha) == pytest.approx(mix.throughput_bound(alpha))
    assert mix.memory_throughput(needed * 0.99, alpha) < mix.throughput_bound(alpha) or needed == 1


@given(mixes)
def test_the_cusp_is_where_both_bounds_meet_and_the_most_is_needed(mix: Mix) -> None:
    at = mix.cusp_intensity()
    if at > 0:
        others = min(mix.alu_thru / at, mix.issue_thru / (at + 1))
        assert mix.mem_thru == pytest.approx(others)
    most = mix.needed_occupancy(at)
    assert most <= max(1.0, mix.needed_at_cusp()) * (1 + 1e-9)
    for factor in (0.5, 0.9, 1.1, 2):
        assert mix.needed_occupancy(at * factor) <= most * (1 + 1e-9)


@given(mixes, alphas)
def test_needed_warps_are_the_instructions_in_execution(mix: Mix, alpha: float) -> None:
    together = mix.arithmetic_in_execution(alpha) + mix.memory_in_execution(alpha)
    assert mix.needed_occupancy(alpha) == pytest.approx(max(1, together))


def test_the_limits_of_intensity() -> None:
    mix = Mix(368, 0.0814, 6, 4)
    assert mix.needed_occupancy(0) == pytest.approx(mix.warps_for_memory)
    assert mix.needed_occupancy(1e12) == pytest.approx(mix.warps_for_arithmetic)
    assert mix.needed_occupancy(mix.cusp_intensity()) == pytest.approx(mix.needed_at_cusp())
    assert [mix.bound(alpha) for alpha in (1, 100)] == ["memory", "arithmetic"]
    assert Mix(368, 0.0814, 6, 4, 4).bound(100) == "issue"
    with pytest.raises(ValueError, match="positive"):
        Mix(368, 0, 6, 4)


def test_another_latency_towards_adds() -> None:
    """§4.7: on Maxwell an SFU result is ready for an add 4 cycles earlier."""
    mix = Mix(13, 1, 6, 4, 4, mem_lat_alu=9)
    assert mix.latency(1) == 9 + 6
    assert mix.latency(0) == 13
    assert mix.latency(0.5) == pytest.approx((13 + 9 + 6) / 2)  # two SFU instructions to an add


@given(st.floats(1, 1000), st.floats(0.5, 2), st.integers(1, 100))
def test_bandwidth_and_throughput_are_inverse(gbs: float, clock: float, sms: int) -> None:
    assert memory_gbs(instruction_throughput(gbs, clock, sms), clock, sms) == pytest.approx(gbs)


@given(mixes, contentions, alphas, warps)
def test_throughput_under_load_solves_its_equation(mix: Mix, load: Contention, alpha: float, n: int) -> None:
    x = memory_throughput(mix, load, n, alpha)
    assert 0 < x <= mix.throughput_bound(alpha)
    latency = load.latency(x) + alpha * mix.alu_lat
    assert latency > 0
    if x < mix.throughput_bound(alpha):
        assert x * latency == pytest.approx(n, rel=1e-4)
    assert memory_throughput(mix, load, n + 1, alpha) >= x


@given(mixes, contentions, alphas, st.floats(0.1, 1))
def test_contention_never_needs_fewer_warps_than_its_unloaded_latency(
    mix: Mix, load: Contention, alpha: float, share: float
) -> None:
    unloaded = Mix(load.a, mix.mem_thru, mix.alu_lat, mix.alu_thru, mix.issue_thru)
    assert needed_occupancy(mix, load, alpha, share) >= unloaded.needed_occupancy(alpha, share) * (1 - 1e-9)


def test_latency_grows_without_limit_and_is_never_negative() -> None:
    g80 = Contention(441, (Term(4, 71), Term(156, 121)))  # §6.4
    assert g80.limit == 71
    assert g80.latency(0) == 441
    assert g80.latency(70.99) > 1000
    assert g80.latency(71) == g80.latency(500) == inf
    assert g80.scaled(2).latency(60) == pytest.approx(g80.latency(30))
    gpu = load_gpu("papers/volkov-g80")
    given = {name: value for name, value in asdict(gpu.parameters).items() if value is not None}
    assert fit_of(given) == g80
    assert fit_of(given, refined=False) == Contention(453, (Term(61, 81),))  # Table 6.5
    assert fit_of({}) is None
    scale = instruction_throughput(1, 1.35, 16)
    assert contention_of(gpu) == g80.scaled(scale)
    assert solve(10, lambda x: 100, 1) == pytest.approx(0.1)
    assert solve(1000, lambda x: 100, 1) == 1


@given(mixes, alphas, warps)
def test_prior_models_give_positive_times(mix: Mix, alpha: float, n: int) -> None:
    assert baghsorkhi_warp_latency(mix, alpha, n) > 0
    assert sim_time(mix, alpha, n) > 0
    assert zhang_owens_throughput(mix, alpha, n) > 0
