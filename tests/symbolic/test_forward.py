"""Going forward over iterations that repeat changes nothing but the time that it takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drywarp.execution.symbolic import Hints, assume_launch, static_profile
from drywarp.execution.symbolic.forward import FAR, periods_alike
from drywarp.execution.symbolic.state import Compared
from drywarp.kernel.launch.arguments import bind_arguments
from tests.symbolic.kernels import EXAMPLES, assert_same_profile, compiled, example, iteration_by_iteration

NESTED = """
__global__ void nested(float* x, int n, int m, int step, int turn) {
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int a = 0; a < n; ++a) {
    for (int b = threadIdx.x % turn; b < m + a; b += step) {
      sum += x[i + (a * m + b) * 256];
      if (b < (int)threadIdx.x) sum += x[b * 64 + threadIdx.x];
    }
    tile[(a & 1) * 64 + threadIdx.x] = sum;
    if (a % 3 == 0) x[a * 1024 + i] = tile[threadIdx.x ^ 1];
  }
  x[i] = sum;
}
"""
MINIMUM = """
__global__ void minimum(float* x, int n, int tile) {
  int i = threadIdx.x;
  float s = 0;
  for (int t = 0; t < n; t += tile) {
    int end = min(t + tile, n);
    for (int k = t + i; k < end; k += blockDim.x) s += x[k * 4];
    for (long long q = n; q > t; q -= tile * 2) s += x[q];
  }
  x[i] = s;
}
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_iteration_by_iteration(path: Path) -> None:
    kernel, _ = example(path)
    assert_same_profile(static_profile(kernel).profile, iteration_by_iteration(kernel).profile)


@pytest.mark.exhaustive
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    n=st.integers(0, 24), m=st.integers(1, 40), step=st.integers(1, 5), turn=st.sampled_from([1, 2, 16]),
    arch=st.sampled_from(["sm_80", "sm_100"]),
)  # fmt: skip
def test_nested_loops_iteration_by_iteration(n: int, m: int, step: int, turn: int, arch: str) -> None:
    kernel = compiled(NESTED, arch)
    arguments = bind_arguments(kernel, {"n": n, "m": m, "step": step, "turn": turn})
    launch = assume_launch(kernel, grid=(3, 1, 1), block=(64, 1, 1), arguments=arguments)
    assert_same_profile(static_profile(kernel, launch).profile, iteration_by_iteration(kernel, launch).profile)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(n=st.integers(1, 900), tile=st.integers(16, 200))
def test_minima_and_long_counters_iteration_by_iteration(n: int, tile: int) -> None:
    kernel = compiled(MINIMUM)
    launch = assume_launch(
        kernel, grid=(2, 1, 1), block=(64, 1, 1), arguments=bind_arguments(kernel, {"n": n, "tile": tile})
    )
    assert_same_profile(static_profile(kernel, launch).profile, iteration_by_iteration(kernel, launch).profile)


def test_a_million_iterations_take_no_longer_than_a_hundred() -> None:
    source = (
        "__global__ void sum(float* x, int n) { float s = 0; for (int k = 0; k < n; ++k) s += x[k * 32]; x[0] = s; }"
    )
    kernel = compiled(source)
    found = static_profile(kernel, hints=Hints({"1": 1_000_000}))
    loads = np.array([i.opcode == "LDG" for i in kernel.instructions])
    warps = found.profile.launch.blocks * found.profile.launch.warps_per_block
    assert found.profile.executions()[loads].sum() / warps == pytest.approx(1_000_000, rel=1e-4)
    assert found.profile.logged is not None
    held = found.profile.logged[loads]
    assert ((held > 0) & (held < 1)).any()
    assert len(found.profile.accesses) <= 1_000_000


@given(gap=st.integers(-60, 60), step=st.integers(-7, 7), how=st.sampled_from(["LT", "LE", "GT", "GE", "EQ", "NE"]))
def test_a_compare_comes_out_the_same_for_so_many_periods_and_no_more(gap: int, step: int, how: str) -> None:
    compare = {"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal,
               "NE": np.not_equal}[how]  # fmt: skip
    compared = Compared(0, how, np.zeros(1, np.int64), np.ones((1, 1), bool), np.array([[gap]]))
    periods = periods_alike(compared, np.array([[step]]), np.ones((1, 1), bool))
    outcomes = [bool(compare(gap + k * step, 0)) == bool(compare(gap, 0)) for k in range(1, 200)]
    expected = outcomes.index(False) if False in outcomes else None
    if expected is None:
        assert periods >= FAR
    else:
        assert periods == expected
