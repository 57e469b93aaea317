"""Single terms of the models, with numbers small enough to be worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from drywarp.experiments.reproduce.small_kernels import Cost, Instruction, chain, costs_of, issue_limit_of, kernel
from drywarp.models import get_model
from drywarp.models import gpumech as g
from drywarp.models.cycles_per_run import issue_cycles_of
from drywarp.models.inputs import inputs_of
from drywarp.models.volkov_contention import WARP_ACCESS_BYTES
from drywarp.models.wfg import block_ilp, issue_lambda
from drywarp.models.work_flow_graph import WorkNode
from drywarp.workload.cost import CostedWorkload, Repeat

MAXWELL = "papers/volkov-maxwell"


def block(alone: float, latency: float) -> WorkNode:
    return WorkNode("computation", 4, 1.0, latency, 1.0, 1, alone=alone)


def test_a_blocks_ilp_is_its_latencies_over_its_time() -> None:
    assert block_ilp(block(alone=10, latency=5)) == 2
    assert block_ilp(block(alone=10, latency=0)) == 1
    assert block_ilp(block(alone=0, latency=5)) == 1


def test_no_more_than_one_warp_in_one_is_found_in_a_stall() -> None:
    """GPUMech, Eqs. 12 to 16: p · stall = 2 is a certainty; two other warps issue 100 instructions each in 4 cycles."""
    assert g.nonoverlapped_gto(0.5, 3, 100, 4) == 2 * 100 - 4
    assert g.nonoverlapped_gto(0.125, 3, 100, 4) == 0.5 * 2 * 100 - 4
    assert g.nonoverlapped_gto(0.5, 1, 100, 4) == 0
    assert (g.core_requests(17), g.core_requests(17, 2)) == (17, 34)


def test_issue_cycles_come_from_the_file_the_issue_limit_or_the_computations() -> None:
    def given(parameters: dict[str, float], rate: float) -> Any:
        return SimpleNamespace(parameters=parameters, issue_rate=rate, computation=SimpleNamespace(lambda_=3.0))

    assert issue_cycles_of(given({"issue_cycles": 4.0}, 2.0)) == 4
    assert issue_cycles_of(given({}, 2.0)) == 0.5
    assert issue_cycles_of(given({}, 0.0)) == 3


def test_memory_instructions_issue_at_the_computations_rate_or_else_at_the_issue_limit() -> None:
    def given(computations: int, rate: float) -> Any:
        return SimpleNamespace(issue_rate=rate, computation=SimpleNamespace(count=computations, lambda_=3.0))

    assert issue_lambda(given(5, 2.0)) == 3
    assert issue_lambda(given(0, 4.0)) == 0.25
    assert issue_lambda(given(0, 0.0)) == 0, "no limit"


def loads(transactions: float, parameters: dict[str, float]) -> CostedWorkload:
    """Ten loads of λ 8 and Λ 500, each in so many transactions."""
    work = kernel({"load": Cost("mem", 8, 500)}, [Instruction("load", (0,))], (Repeat(10, (0,)),), 1, ("load",))
    path = work.paths[0]
    nodes = tuple(replace(node, transactions=transactions) for node in path.nodes)
    return replace(work, paths=(replace(path, nodes=nodes),), parameters=parameters)


@pytest.mark.parametrize(
    ("transactions", "parameters", "expected"),
    [
        (1, {"dram_latency": 400.0, "departure_delay": 10.0}, 400),
        (4, {"dram_latency": 400.0, "departure_delay": 10.0}, 400 + 3 * 10),
        (0.5, {"dram_latency": 400.0, "departure_delay": 10.0}, 400),
        (4, {"dram_latency": 400.0}, 400 + 3 * 8 / 4),  # where the file knows no delay, they share λ of memory
        (4, {}, 500),
    ],
)
def test_transactions_depart_one_after_the_other(
    transactions: float, parameters: dict[str, float], expected: float
) -> None:
    """Hong and Kim, Eqs. 11 and 12: Mem_LD + (transactions - 1) · Departure_del."""
    assert inputs_of(loads(transactions, parameters)).dram_latency == pytest.approx(expected)


def test_the_latency_of_a_run_goes_on_along_its_line_near_the_throughput_that_is_never_reached() -> None:
    """Volkov, 6.5: 30 warps of ten dependent loads, a latency of 501 + T / (c - T) cycles, at 10⁻³ runs a cycle.

    With c = 2500 / 2499 · 10⁻³ that is 501 + 2499 = 3000 cycles a load, 30 000 a run: 30 = 10⁻³ · 30 000.
    """
    work = loads(1, {})
    bytes_per_run = 10 * WARP_ACCESS_BYTES
    gbs = 2500 / 2499 * 1e-3 * work.clock_hz * work.sm_count * bytes_per_run / 1e9
    fit = {"contention_latency": 501.0, "contention_slope": 1.0, "contention_gbs": gbs}
    (point,) = get_model("volkov_contention").predict(replace(work, parameters=fit), [30]).curve
    assert point.cycles_per_run == pytest.approx(30_000, rel=1e-6)
    assert point.bound == "latency"


@pytest.mark.parametrize("model", ["gpumech_gto", "gpumech_rr"])
def test_a_run_that_takes_no_longer_than_one_warp_is_bound_by_latency(model: str) -> None:
    """Chains of additions of Λ 6 on Maxwell's four schedulers: of up to 24 warps none takes longer than one."""
    work = chain(costs_of(MAXWELL), "add", 100, issue_limit_of(MAXWELL))
    points = get_model(model).predict(work, [1, 8, 16, 64]).curve
    assert {point.bound for point in points if point.cycles_per_run == points[0].cycles_per_run} == {"latency"}
    assert points[1].cycles_per_run == points[0].cycles_per_run == 600
