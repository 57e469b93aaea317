"""WFG with its two errors, and without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.experiments.reproduce.small_kernels import Cost, Instruction, example, kernel
from drywarp.models import get_model
from drywarp.models.inputs import WorkNode
from drywarp.models.wfg import (
    arcs_of,
    cycles_per_warp,
    latency_exposed,
    latency_exposed_corrected,
    nbc_avg,
    reduced,
    transition_memory,
)


def node(kind: str, latency: float, times: int = 1, needs: tuple[int, ...] = (), count: int = 1) -> WorkNode:
    return WorkNode(kind, count, 1.0, latency, 1.0, times, needs, alone=count * latency)


def published(graph: tuple[WorkNode, ...], warps: int, lambda_mem: float = 2.0, lambda_instr: float = 1.0) -> float:
    return cycles_per_warp(graph, arcs_of(graph, warps, lambda_mem, lambda_instr))


def test_the_example_lies_above_volkov_for_three_and_four_warps() -> None:
    work = example()
    wfg = get_model("wfg").predict(work, range(1, 11)).curve
    volkov = get_model("volkov").predict(work, range(1, 11)).curve
    assert wfg[0].cycles_per_run == 25
    above = [w.occupancy_warps for w, v in zip(wfg, volkov, strict=True) if w.warps_per_cycle > v.warps_per_cycle]
    assert above == [3, 4]  # analysis §2.4.4
    # α_comp + α_mem · λ_mem^instr: the memory instructions keep the computing subsystem busy.
    assert wfg[-1].cycles_per_run == pytest.approx(60)


@pytest.mark.parametrize(("compute", "latency"), [(8, 6), (11, 3), (3, 11)])
def test_equation_40(compute: float, latency: float) -> None:
    """One computation and one access, λ negligible: the published model's CPR of Fig. 6."""
    graph = (
        WorkNode("computation", 1, 0.0, compute, 1.0, 1, alone=compute),
        WorkNode("memory", 1, 0.0, latency, 1.0, 1),
    )
    for warps in (1, 2):  # Eq. 40 holds while Λ_exposed is above the transition arc
        cpr = warps * published(graph, warps, 0.0, 0.0)
        assert cpr == pytest.approx(compute + latency * warps - (warps - 1) * compute / 2)
    if compute == 11:
        assert 2 * published(graph, 2, 0.0, 0.0) < published(graph, 1, 0.0, 0.0)  # "this is impossible"


def test_volkovs_memory_only_kernel_on_g80() -> None:
    """Thesis §7.2, α = 0: a throughput of 1 / max(448 − 4 n, 37), the errors' dramatic underestimate."""
    graph = (WorkNode("memory", 1, 37.0, 444.0, 1.0, 1000, needs=(0,)),)
    for warps in (1, 12, 24):
        assert published(graph, warps, 37, 4) / 1000 == pytest.approx(448 - 4 * warps, rel=2e-3)


def test_the_formulas() -> None:
    assert nbc_avg(6, 2, 0) == 2
    assert nbc_avg(6, 2, 1) == 1.5
    assert latency_exposed(6, 3, 2) == 2
    assert latency_exposed_corrected(6, 1, 2, 100) == 6
    assert transition_memory(1, 10, 4, 2) == 4
    assert transition_memory(1, 4, 10, 2) == 1


def test_nodes_between_an_access_and_its_use_count_against_the_latency() -> None:
    graph = (node("memory", 0), node("computation", 5), node("computation", 5, needs=(0,)))
    assert reduced(graph, (1, 5, 5), (4, 0, 0)) == 11
    assert reduced(graph, (1, 5, 5), (10, 0, 0)) == 15


def test_loads_nobody_uses_end_with_the_warp_and_stores_do_not() -> None:
    load = node("memory", 0)
    store = WorkNode("memory", 1, 1.0, 0.0, 1.0, 1, waited_for=False)
    assert reduced((load,), (1,), (9,)) == 9
    assert reduced((store,), (1,), (9,)) == 1


def test_a_loop_counts_each_iteration_and_what_it_carries_over() -> None:
    graph = (node("computation", 5, 10, needs=(1,)), node("memory", 0, 10))
    assert reduced(graph, (5, 1), (1, 1)) == 60
    # The next iteration waits: 20 cycles lie between an access and its use, of which 1 is its own.
    assert reduced(graph, (5, 1), (0, 20)) == 60 + 9 * 19
    inner = (node("memory", 0, 10), node("computation", 5, 10, needs=(0,)))
    assert reduced(inner, (1, 5), (20, 0)) == 10 * 25


@given(st.integers(1, 40), st.integers(0, 60), st.integers(0, 8), st.integers(1, 4), st.integers(1, 64))
def test_corrected_never_beats_the_roof(warps: int, comp: int, mem: int, lambda_: int, more: int) -> None:
    costs = {"comp": Cost("comp", 1, 4), "mem": Cost("mem", lambda_, lambda_ + more)}
    line = [Instruction("comp", (max(0, i - 1),)) for i in range(comp)]
    line += [Instruction("mem", (max(0, comp + i - 1),)) for i in range(mem)] or [Instruction("comp")]
    work = kernel(costs, line, issue_limit=1, memory=("mem",))
    roof = get_model("roofline").predict(work, [warps]).curve[0].warps_per_cycle
    for name in ("wfg_corrected", "gpumech_rr_corrected"):
        point = get_model(name).predict(work, [warps]).curve[0]
        assert 0 < point.warps_per_cycle <= roof * (1 + 1e-9), name
