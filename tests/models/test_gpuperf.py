"""GPUPerf: its terms, its benefits, and what must hold for every workload."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hong_kim_kernels import fma_loads
from hypothesis import given
from hypothesis import strategies as st

from drywarp.analysis.prepare import prepare_kernel
from drywarp.hardware import load_gpu
from drywarp.models import get_model, gpuperf
from drywarp.models import gpuperf_terms as eq
from drywarp.models import gpuperf_terms as gain
from drywarp.models.base import NotApplicable
from drywarp.models.gpuperf import Kernel
from drywarp.models.gpuperf_terms import BenefitChart
from drywarp.models.inputs import ModelInputs, inputs_of
from drywarp.models.inputs_parts import Part, Transactions, memory_latency
from drywarp.workload.abstract import load_workload
from drywarp.workload.cost_model import idle_instructions

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))
from pipeline_cases import random_workload
from pipeline_kernels import chain, workload

KERNEL = Kernel(
    insts=90,
    mem_insts=10,
    sync_insts=0,
    sfu_insts=0,
    fp_insts=80,
    avg_inst_lat=18,
    fp_lat=18,
    warp_over_simd=1,
    warp_over_sfu=8,
    ilp=1,
    mlp=1,
    amat=440,
    avg_dram_lat=440,
    delta=20,
    mwp_peak_bw=30.7,
    bank_cycles=0,
)
positive = st.floats(0.1, 1000)
counts = st.floats(0, 1000)
kernels = st.builds(
    Kernel,
    insts=st.floats(1, 1000),
    mem_insts=st.floats(0.1, 100),
    sync_insts=counts,
    sfu_insts=counts,
    fp_insts=counts,
    avg_inst_lat=positive,
    fp_lat=positive,
    warp_over_simd=positive,
    warp_over_sfu=positive,
    ilp=st.floats(1, 8),
    mlp=st.floats(1, 8),
    amat=positive,
    avg_dram_lat=positive,
    delta=positive,
    mwp_peak_bw=positive,
    bank_cycles=counts,
)


def test_volkovs_simplified_form() -> None:
    """Volkov §7.4 for α additions and a load: T_comp and T_mem, and T_exec by case."""
    k = replace(KERNEL, insts=33, mem_insts=1, amat=513, avg_dram_lat=513, delta=1e-9)
    for n in (1, 2, 4, 8, 16, 32, 48):
        costs = gpuperf.costs_of(k, n)
        mwp, cwp = min(n, 30.7), min(n, 1 + 513 / (33 * max(18 / n, 1)))
        t_comp, t_mem = 33 * n * max(18 / n, 1), n * 513 / min(mwp, max(1, cwp - 1))
        assert (costs.t_comp, costs.t_mem) == (pytest.approx(t_comp), pytest.approx(t_mem))
        expected = max(t_comp, t_mem) if cwp > mwp else max(t_comp, t_mem + t_comp / n)
        assert costs.t_exec == pytest.approx(expected)


def test_the_kernel_of_a_workload() -> None:
    k = gpuperf.kernel_of(inputs_of(fma_loads(8)))
    assert (k.insts, k.mem_insts, k.fp_insts, k.avg_inst_lat, k.itilp_max) == (90, 10, 80, 18, 18)
    assert (k.amat, k.avg_dram_lat, k.delta, k.ilp, k.mlp) == (440, 440, 20, 1, 1)
    assert k.mwp_peak_bw == pytest.approx(30.745, abs=1e-3)
    answer = get_model("gpuperf").predict(fma_loads(8), (1, 8, 48))
    assert answer.cycles == pytest.approx(gpuperf.costs_of(k, 8).t_exec)
    assert [note.split()[0] for note in answer.notes] == ["B_itilp", "B_memlp", "B_fp", "B_serial"]


def test_sfu_instructions_hide_up_to_the_ratio_of_the_units() -> None:
    hidden, seen = gpuperf.kernel_of(inputs_of(fma_loads(8, 1))), gpuperf.kernel_of(inputs_of(fma_loads(8, 4)))
    assert gpuperf.costs_of(hidden, 8).o_sfu == 0
    assert gpuperf.costs_of(seen, 8).o_sfu == pytest.approx(40 * 8 * 8 * (40 / 90 - 1 / 8))


def test_barriers_cost_what_memory_makes_them_cost() -> None:
    k = gpuperf.kernel_of(inputs_of(fma_loads(8, barriers=1)))
    assert gpuperf.costs_of(k, 4).o_sync == pytest.approx(10 * 4 * 64 * 440 * 10 / 100)


def test_gamma_is_the_gpus_and_without_it_barriers_are_left_out() -> None:
    work = fma_loads(8, barriers=1)
    without = replace(work, parameters={k: v for k, v in work.parameters.items() if k != "sync_gamma"})
    k = gpuperf.kernel_of(inputs_of(without))
    assert gpuperf.costs_of(k, 4).o_sync == 0
    assert any("no Γ" in note for note in get_model("gpuperf").predict(without, (8,)).notes)
    assert not any("no Γ" in note for note in get_model("gpuperf").predict(work, (8,)).notes)
    assert load_gpu("papers/c2050").parameter("sync_gamma") == 64  # Table 2
    # No GPU of ours is as slow to synchronise as the paper's formula makes it: the tiled multiplication took 45 ms.
    assert 0.5 < load_gpu("a100").parameter("sync_gamma") < 4


SIDES = """
extern "C" __global__ void k(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    if (threadIdx.x >> SHIFT & 1) {
        for (int n = 0; n < 64; ++n) v = v * 1.5f + 1.0f;
    } else {
        for (int n = 0; n < 64; ++n) v = v * 0.5f - 2.0f;
    }
    x[i] = v;
}
"""


def test_divergence_is_serialisation(tmp_path: Path) -> None:
    """Eqs. 6 and 21: lanes of one warp on both sides of a branch show in B_serial, whole warps do not."""
    source = tmp_path / "sides.cu"
    source.write_text(SIDES)

    def of(shift: int) -> tuple[ModelInputs, BenefitChart, gpuperf.Costs]:
        made = prepare_kernel(
            source, gpu="a100", entry="k", grid=216, block=128, args={"x": "f32[27648]"}, defines={"SHIFT": str(shift)}
        ).costed
        inputs = inputs_of(made)
        return inputs, gpuperf.benefits_of(made), gpuperf.costs_of(gpuperf.kernel_of(inputs), 8)

    (split, lost, costs), (whole, free, uniform) = of(0), of(5)
    assert (whole.idle, free.b_serial, uniform.o_cf_div) == (0, 0, 0)
    # Each side has half of the lanes: half of both sides' instructions are what a warp that agrees would save.
    assert split.idle == pytest.approx(split.instructions - whole.instructions, rel=0.05)
    assert lost.b_serial > 0
    k = gpuperf.kernel_of(split)
    assert costs.o_cf_div == pytest.approx(split.idle * 8 * k.avg_inst_lat / costs.itilp)
    assert costs.w_parallel + costs.o_cf_div == pytest.approx(k.insts * 8 * k.avg_inst_lat / costs.itilp)


def test_idle_instructions_by_hand() -> None:
    assert idle_instructions([10, 20, 20, 5], [32, 16, 16, 32]) == 20
    assert idle_instructions([4], [24]) == 0  # a warp of 24 threads has lost none
    assert idle_instructions([], []) == 0


@pytest.mark.parametrize(
    ("share", "transactions", "expected"),
    # Λ 300 by the levels, DRAM_lat 400: hits take what is left of it.
    [(0.0, 1, 300), (0.5, 1, 300), (0.5, 4, (400 + 3 * 10) * 0.5 + 100), (1.0, 2, 410)],
)
def test_amat_is_equation_12(share: float, transactions: float, expected: float) -> None:
    found = memory_latency(
        {"dram_latency": 400, "departure_delay": 10}, Part(5, 8, 300), Transactions(transactions, 5, 0, 0, share)
    )
    assert found.amat == pytest.approx(expected)
    assert found.dram == 400 + (transactions - 1) * 10
    assert memory_latency({}, Part(5, 8, 300), Transactions(transactions, 5, 0, 0, share)).amat == 300


def test_loads_that_miss_every_cache_take_the_latency_of_dram() -> None:
    inputs = inputs_of(load_workload("papers/alpha-mix", load_gpu("a100")))
    assert inputs.miss_ratio == 1  # the file states no hits
    assert inputs.amat == pytest.approx(inputs.memory.latency, abs=1)


def test_itilp_and_overlap() -> None:
    assert eq.itilp_max(18, 32, 32) == 18
    assert [eq.itilp(ilp, n, 18) for ilp, n in ((1, 4), (2, 9), (3, 8))] == [4, 18, 18]
    assert eq.f_overlap(16, 16, 8) == 1
    assert eq.f_overlap(16, 8, 16) == 15 / 16
    assert eq.amat(eq.avg_dram_lat(440, 3, 20), 0.5, 18) == 258
    assert eq.average([(1, 30), (3, 10)]) == 1.5
    assert eq.average([]) == 1


def test_benefits() -> None:
    found = gpuperf.benefits_of(fma_loads(8))
    k = gpuperf.kernel_of(inputs_of(fma_loads(8)))
    costs = gpuperf.costs_of(k, 8)
    assert found.b_itilp == pytest.approx(90 * 8 * (18 / 8 - 1))
    assert found.t_fp == pytest.approx(80 * 8 * 18 / 8)
    assert found.b_fp == pytest.approx(costs.t_comp - found.t_fp - found.b_itilp)
    assert found.b_serial == 0
    assert found.t_mem_min == pytest.approx(80 * 440 / k.mwp_peak_bw)
    assert found.t_exec == pytest.approx(costs.t_exec)
    known = gpuperf.benefits_of(replace(fma_loads(8), data_bytes=14 * 128 * 20))
    assert known.t_mem_min == pytest.approx(20 * 440 / k.mwp_peak_bw)
    assert gain.b_memlp(0, known.t_mem_min) == 0
    assert gpuperf.benefits_of(fma_loads(8, blocks_per_sm=18)).b_itilp == 0


@given(kernels, st.integers(1, 64))
def test_no_negative_times_and_no_time_below_either_cost(k: Kernel, n: int) -> None:
    costs = gpuperf.costs_of(k, n)
    assert min(costs.t_comp, costs.t_mem, costs.t_overlap, costs.o_sync, costs.o_sfu, costs.o_bank) >= 0
    slack = 1 - 1e-9
    assert costs.t_exec >= max(costs.t_comp, costs.t_mem) * slack
    assert costs.t_exec <= (costs.t_comp + costs.t_mem) * (1 + 1e-9)
    assert costs.w_parallel >= costs.w_parallel_at_max * slack
    assert 0 < costs.itilp <= k.itilp_max
    assert costs.mwp <= n


@given(kernels, st.integers(1, 64), st.integers(1, 10))
def test_costs_are_proportional_to_the_warps(k: Kernel, n: int, rounds: int) -> None:
    one, several = gpuperf.costs_of(k, n), gpuperf.costs_of(k, n, n * rounds)
    assert several.t_exec == pytest.approx(rounds * one.t_exec)


@given(kernels, st.integers(1, 64))
def test_slower_memory_never_shortens_the_memory_cost(k: Kernel, n: int) -> None:
    slower = replace(k, mwp_peak_bw=k.mwp_peak_bw / 2)
    assert gpuperf.costs_of(slower, n).t_mem >= gpuperf.costs_of(k, n).t_mem * (1 - 1e-9)


@given(st.integers(0, 400))
def test_random_workloads_take_no_negative_time(seed: int) -> None:
    work = random_workload(seed)
    try:
        answer = get_model("gpuperf").predict(work, (work.warps_per_block,))
    except NotApplicable:
        return
    assert answer.cycles >= 0
    assert answer.curve[0].cycles_per_run is not None
    assert answer.curve[0].cycles_per_run >= 0


@given(st.integers(1, 40), st.integers(1, 48), st.integers(240, 2400))
def test_without_memory_the_time_is_that_of_the_computations(length: int, warps: int, more: int) -> None:
    work = workload(chain(length, 240, 240 + more))
    k = gpuperf.kernel_of(inputs_of(work))
    costs = gpuperf.costs_of(k, warps)
    assert (costs.t_mem, costs.t_overlap, costs.o_sync) == (0, 0, 0)
    assert costs.t_exec == costs.t_comp
    answer = get_model("gpuperf").predict(work, [warps])
    assert answer.curve[0].cycles_per_run == pytest.approx(length * max(1 + more / 240, warps))
    assert gpuperf.benefits_of(work).b_memlp == 0


def test_the_paper_s_micro_benchmarks_without_memory() -> None:
    """Figs. 6 to 8 on the C2050: ITILP saturates at 18, and one SFU instruction to eight others is hidden."""
    gpu = load_gpu("papers/c2050")
    for ilp, enough in ((1, 18), (2, 9), (3, 6)):
        k = gpuperf.kernel_of(inputs_of(load_workload("papers/itilp", gpu, {"ilp": ilp})))
        rate = [warps / gpuperf.costs_of(k, warps).t_exec for warps in range(1, 49)]
        gained = [gpuperf.costs_of(k, warps) for warps in (enough - 1, enough)]
        assert rate[enough - 2] < rate[enough - 1] == pytest.approx(rate[-1])
        assert [costs.w_parallel > costs.w_parallel_at_max * (1 + 1e-9) for costs in gained] == [True, False]
    serial = [
        gpuperf.costs_of(gpuperf.kernel_of(inputs_of(load_workload("papers/sfu-mix", gpu, {"sfu": sfu}))), 48).w_serial
        for sfu in (0, 1, 2, 4, 8)
    ]
    assert serial[:2] == [0, 0]
    assert 0 < serial[2] < serial[3] < serial[4]


@pytest.mark.parametrize("blocks", [1, 14 * 3, 14 * 8, 14 * 8 * 5, 14 * 8 * 5 + 7])
def test_the_chart_is_that_of_the_predicted_launch(blocks: int) -> None:
    """Few blocks, whole waves, and a partial last one: T_exec is the model's time, and Eq. 22 adds up."""
    work = replace(fma_loads(8, blocks_per_sm=8), blocks=blocks)
    chart = gpuperf.benefits_of(work)
    assert chart.t_exec == pytest.approx(get_model("gpuperf").predict(work, ()).cycles)
    assert chart.t_fp + chart.b_itilp + chart.b_fp + chart.b_serial == pytest.approx(chart.t_comp)
    assert sum(chart.cycles()[f"{name}_cycles"] for name in eq.BENEFITS) <= chart.t_exec * (1 + 1e-9)
