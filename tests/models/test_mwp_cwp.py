"""MWP-CWP in its three forms: the papers' examples, and what must hold for every workload."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from hong_kim_kernels import tiled_matmul
from hypothesis import given
from hypothesis import strategies as st

from drywarp.hardware import load_gpu
from drywarp.models import get_model, mwp_cwp, mwp_cwp_2009_model
from drywarp.models import mwp_cwp_2009 as hk
from drywarp.models.base import NotApplicable
from drywarp.models.inputs import inputs_of
from drywarp.models.mwp_cwp import Symbols
from drywarp.models.terms import terms_over
from drywarp.workload.abstract import load_workload
from drywarp.workload.cost import CostedWorkload

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))
from pipeline_cases import random_workload
from pipeline_kernels import chain, example, workload

EXAMPLE = Symbols(alpha_comp=4, alpha_mem=2, lambda_comp=1, lambda_mem=2, latency_mem=6)
MODELS = ("mwp_cwp", "mwp_cwp_2009", "mwp_cwp_corrected")

positive = st.floats(0.1, 1000)
symbols = st.builds(Symbols, positive, positive, positive, positive, positive)


def mixed(seed: int) -> CostedWorkload:
    work = random_workload(seed)
    return replace(work, kinds={"global_load": "memory"})


def test_the_analysis_papers_example() -> None:
    assert mwp_cwp.mwp_of(6, 2) == 3
    assert mwp_cwp.cwp_of(6, 2, 1) == 4
    assert mwp_cwp.latency_app_star(EXAMPLE) == 16
    runs = [mwp_cwp.cpr_of(EXAMPLE, warps) for warps in range(1, 6)]
    assert [run.cycles for run in runs] == [16, 18, 20, 22, 26]
    assert [run.bound for run in runs] == ["latency"] * 3 + ["memory"] * 2


def test_the_example_as_a_workload() -> None:
    work = replace(example(in_order=False), kinds={"comp": "computation", "mem": "memory"})
    published = get_model("mwp_cwp").predict(work, range(1, 13))
    assert [point.cycles_per_run for point in published.curve[:5]] == [16, 18, 20, 22, 26]
    assert published.notes == ("MWP 3, CWP 4",)
    corrected = get_model("mwp_cwp_corrected").predict(work, range(1, 13))
    assert [point.cycles_per_run for point in corrected.curve[:3]] == [25, 27, 29]
    assert corrected.cycles == 25
    for mine, his in zip(corrected.curve, published.curve, strict=True):
        assert mine.warps_per_cycle <= his.warps_per_cycle


@pytest.mark.parametrize("latency", [1.0, 3.0, 6.0, 60.0])
def test_mwp_exceeds_cwp_where_eq_20_says(latency: float) -> None:
    lambda_comp, lambda_mem = 1, 2
    threshold = lambda_mem / (lambda_comp * (1 - lambda_mem / latency)) if latency > lambda_mem else inf
    for ci in (0.5, 1.9, 2.1, 2.9, 3.1, 100):
        assert (mwp_cwp.mwp_of(latency, 2) > mwp_cwp.cwp_of(latency, ci, 1)) == (ci > threshold)


@given(symbols, st.integers(1, 64))
def test_runs_grow_with_the_occupancy_within_a_case(s: Symbols, warps: int) -> None:
    for case in (mwp_cwp.cpr_memory_bound, mwp_cwp.cpr_compute_bound, mwp_cwp.cpr_occupancy_bound):
        assert 0 < case(s, warps) <= case(s, warps + 1) * (1 + 1e-12)


@given(symbols, st.integers(1, 64), st.floats(0, 1e5))
def test_the_corrected_model_keeps_below_volkovs_two_bounds(s: Symbols, warps: int, more: float) -> None:
    latency_app = mwp_cwp.latency_app_star(s) + more
    cycles = mwp_cwp.cpr_corrected(s, warps, latency_app).cycles
    assert cycles >= latency_app
    assert cycles >= warps * max(s.alpha_comp * s.lambda_comp, s.alpha_mem * s.lambda_mem)
    assert cycles >= mwp_cwp.cpr_of(s, warps).cycles * (1 - 1e-12)
    assert cycles <= mwp_cwp.cpr_corrected(s, warps + 1, latency_app).cycles * (1 + 1e-12)


@given(st.integers(0, 400))
def test_no_negative_times_and_no_corrected_run_above_the_roof(seed: int) -> None:
    work = mixed(seed)
    occupancies = [work.warps_per_block * blocks for blocks in range(1, work.max_blocks_per_sm + 1)]
    for model in MODELS:
        try:
            answer = get_model(model).predict(work, occupancies)
        except NotApplicable:
            continue
        assert answer.cycles >= 0
        assert all(point.cycles_per_run is not None and point.cycles_per_run >= 0 for point in answer.curve)
        if model == "mwp_cwp_corrected":
            roof = inputs_of(work).roof
            assert all(point.warps_per_cycle <= roof * (1 + 1e-9) for point in answer.curve)


@given(st.integers(1, 40), st.integers(1, 48))
def test_without_memory_the_time_is_that_of_the_computations(length: int, warps: int) -> None:
    """α_comp · λ_comp · ω; with the latency of computations no less than Λ_app."""
    work = workload(chain(length, 240, 960))
    for model in MODELS:
        corrected = model == "mwp_cwp_corrected"
        point = get_model(model).predict(work, [warps]).curve[0]
        assert point.cycles_per_run == pytest.approx(length * (max(4, warps) if corrected else warps))
        assert point.bound == ("latency" if corrected and warps <= 4 else "comp")


def test_table_2_from_the_kernel() -> None:
    work = tiled_matmul()
    t = mwp_cwp_2009_model.terms_of(work, inputs_of(work))
    assert (t.mem_l, t.departure_delay, t.comp_cycles, t.mem_cycles) == (730, 320, 132, 4380)
    assert (t.mem_insts, t.synch_insts, t.ind_mem_req) == (6, 6, 0)
    assert t.without_bw == 730 / 320
    assert t.peak_bw == pytest.approx(28.516, abs=1e-3)
    answer = get_model("mwp_cwp_2009").predict(work, (20,))
    assert answer.cycles == pytest.approx(4380 * 20 / (730 / 320) + 22 * (730 / 320 - 1) + 12300)
    assert (answer.cycles, answer.limiter) == (answer.curve[0].cycles_per_run, "mem")


@pytest.mark.parametrize(("mwp", "cwp", "cycles"), [(8, 8, 300 + 100 + 7 * 100), (2, 4, 1300), (8, 4, 1100)])
def test_the_three_equations(mwp: float, cwp: float, cycles: float) -> None:
    at = {"mem_cycles": 300, "comp_cycles": 100, "mem_insts": 1, "mem_l": 300, "n": 8}
    assert hk.exec_cycles_app(**at, mwp=mwp, cwp=cwp) == cycles


def test_independent_requests_shorten_a_run_of_few_warps_only() -> None:
    work = tiled_matmul()
    t = replace(mwp_cwp_2009_model.terms_of(work, inputs_of(work)), without_bw=30, peak_bw=30)
    freed = replace(t, ind_mem_req=0.75 * t.mem_insts)
    assert mwp_cwp_2009_model.run_of_warps(freed, 4).cycles < mwp_cwp_2009_model.run_of_warps(t, 4).cycles
    many = 40
    assert mwp_cwp_2009_model.run_of_warps(freed, many) == mwp_cwp_2009_model.run_of_warps(t, many)


def test_n_pw_is_never_below_n() -> None:
    assert hk.n_pw(4, 6, 0) == 4
    assert hk.n_pw(4, 6, 2) == 4
    assert hk.n_pw(4, 6, 4) == 8
    assert hk.n_pw(4, 6, 6) == float("inf")


def test_cpi_synchronisation_and_divergence() -> None:
    assert hk.cpi(3300, 33, 4, 80, 16) == 5
    assert hk.synch_cost(320, hk.n_pwb(0.5, 4), 6, 5) == 0
    assert hk.synch_cost(320, hk.n_pwb(8, 4), 6, 5) == 320 * 3 * 6 * 5
    assert hk.comp_cycles(4, 10, 4.2) == pytest.approx(168)
    assert hk.divergent((10, 20, 5)) == 35


@pytest.mark.parametrize("gpu", ["papers/fx5600", "papers/gtx280", "papers/8800gt"])
def test_the_first_micro_benchmark_has_no_memory_instruction(gpu: str) -> None:
    """Hong and Kim, Table 4: Mb1. Its GPUs state the bytes of a transaction, of which there is none."""
    work = load_workload("papers/mb1", load_gpu(gpu))
    for model in ("mwp_cwp_2009", "mwp_cwp"):
        (point,) = get_model(model).predict(work, (work.warps_per_sm,)).curve
        assert point.warps_per_cycle > 0
    assert terms_over(work, (work.warps_per_sm,)).parallelism == ()
