"""λ and Λ multiplied in a bound workload: what scales, what stays, and laws that the simulated time keeps."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drywarp.analysis.advice.case import Setting
from drywarp.analysis.advice.resimulate import resimulate
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.errors import UsageError
from drywarp.pipeline import share_of, simulate
from drywarp.report.serve.change import SmallLaunch, group_of, lambdas, latencies, scaled

from .local import SAXPY


@cache
def kernel() -> Prepared:
    return prepare_kernel(SAXPY, gpu="a100")


def time_of(factors: dict[str, float], later: dict[str, float]) -> float:
    return resimulate(Setting.of(kernel()).then(lambda bound: scaled(bound, factors, later))).time_s


def test_factors_of_one_change_nothing() -> None:
    bound = kernel().costed
    assert scaled(bound, {}, {}) == bound
    assert scaled(bound, dict.fromkeys(lambdas(bound), 1.0), dict.fromkeys(latencies(bound), 1.0)) == bound


def test_the_means_are_multiplied() -> None:
    bound = kernel().costed
    for name, cycles in lambdas(bound).items():
        assert lambdas(scaled(bound, {name: 2.0}, {}))[name] == pytest.approx(2 * cycles)
    for group, cycles in latencies(bound).items():
        found = scaled(bound, {}, {group: 3.0})
        assert latencies(found)[group] >= 2 * cycles
        for path, before in zip(found.paths, bound.paths, strict=True):
            for node, old in zip(path.nodes, before.nodes, strict=True):
                if group_of(old) != group:
                    assert node == old


def test_dram_is_scaled_in_its_visits() -> None:
    bound = kernel().costed
    dram = next(n for n, subsystem in enumerate(bound.subsystems) if subsystem.name == "dram")
    found = scaled(bound, {"dram": 2.0}, {})
    visits = [
        (level.lambda_ticks, level.tail_ticks, old.lambda_ticks, old.tail_ticks)
        for path, before in zip(found.paths, bound.paths, strict=True)
        for node, was in zip(path.nodes, before.nodes, strict=True)
        for level, old in zip(node.levels, was.levels, strict=True)
        if level.subsystem == dram
    ]
    assert visits
    assert all(a == 2 * c and b == 2 * d for a, b, c, d in visits)


def test_unknown_names_are_said() -> None:
    with pytest.raises(UsageError, match="no 'nonsense'; expected"):
        scaled(kernel().costed, {"nonsense": 2.0}, {})
    with pytest.raises(UsageError, match="no 'nonsense'; expected"):
        scaled(kernel().costed, {}, {"nonsense": 2.0})


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([1.5, 2.0, 4.0]), st.sampled_from(["dram", "lsu", "issue"]))
def test_more_of_everything_takes_as_many_times_as_long_at_most(factor: float, name: str) -> None:
    """Twice the λ of one subsystem: never faster by more than scheduling anomalies, never above twice the time."""
    usual, slower = time_of({}, {}), time_of({name: factor}, {})
    assert 0.97 * usual <= slower <= 1.03 * factor * usual


UNEVEN = """// drywarp: --grid 432 --block 128 --arg x=i32[65536]:random --arg y=f32[55296] --arg n=4000 --arg m=4
__global__ void uneven(const int* x, float* y, int n, int m) {
  float v = threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < n; ++k) v = v * v + 1.5f;
  int at = 64 * threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < m; ++k) at = x[at] & 65535;
  y[blockIdx.x * blockDim.x + threadIdx.x] = v + at;
}
"""


def test_while_a_slider_moves_loops_weigh_what_they_weigh_in_the_launch() -> None:
    """4,000 iterations of arithmetic and 4 of loads: shortened to one scale, the loads would count several times."""
    bound = prepare_kernel(UNEVEN, gpu="a100").costed
    slower = scaled(bound, {}, {"long_scoreboard": 10.0})
    whole = [simulate(its, share_of(its, its.blocks_per_sm), stalls=False).cycles for its in (slower, bound)]
    ratio, _ = SmallLaunch(bound).ratio(slower)
    assert 0.01 < whole[0] / whole[1] - 1 < 0.2
    assert ratio == pytest.approx(whole[0] / whole[1], rel=0.04)
