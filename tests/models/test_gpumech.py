"""GPUMech as Volkov's thesis prints it, and as the analysis corrects it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drywarp.experiments.reproduce.small_kernels import (
    Cost,
    Instruction,
    chain,
    costs_of,
    example,
    issue_limit_of,
    kernel,
)
from drywarp.models import NotApplicable, get_model
from drywarp.models import gpumech as g
from drywarp.models.gpumech import cycles_of, gto, rr
from drywarp.models.inputs import Interval
from drywarp.workload.cost import CostedWorkload, Repeat

MAXWELL = "papers/volkov-maxwell"


def uncoalesced(transactions: float = 2.0) -> CostedWorkload:
    """Only loads, each of several transactions, on Volkov's Fermi GPU (§7.8)."""
    costs = {"load": Cost("mem", 128 * 1.4 / 177.4 * 15 * transactions, 513)}
    work = kernel(costs, [Instruction("load", (0,))], (Repeat(100, (0,)),), 1, ("load",))
    path = work.paths[0]
    nodes = tuple(replace(node, transactions=transactions) for node in path.nodes)
    return replace(work, paths=(replace(path, nodes=nodes),), sm_count=15, blocks=15)


def test_the_example_of_the_analysis() -> None:
    p = g.issue_probability(3, 9)
    assert p == pytest.approx(1 / 3)
    assert g.nonoverlapped_rr(p, 4, 3) == pytest.approx(2)
    assert g.nonoverlapped_rr_corrected(4, 3, 6) == 6
    # However many warps, no more than an instruction a cycle.
    assert g.ipc_multithreading(100, 3, 9, g.nonoverlapped_rr_corrected(100, 3, 6)) == pytest.approx(1)


def test_round_robin_goes_through_the_roof() -> None:
    """§7.5: 341 adds a cycle on Maxwell's 128 lanes at full occupancy."""
    work = chain(costs_of(MAXWELL), "add", 100, issue_limit_of(MAXWELL))
    point = get_model("gpumech_rr").predict(work, [64]).curve[0]
    assert 32 * 100 * point.warps_per_cycle == pytest.approx(341, abs=0.5)
    lone = get_model("gpumech_rr").predict(work, [1]).curve[0]
    assert lone.cycles_per_run == pytest.approx(600)


def test_greedy_then_oldest_exceeds_the_issue_rate_by_a_fifth() -> None:
    """§7.6: CPI is 1 − 1/alu_lat for many warps, 20 % too fast where alu_lat is 6."""
    line = (Interval(1, 5.0, 100),)
    assert cycles_of(line, 1000, gto) / (1000 * 100) == pytest.approx(1 - 1 / 6, abs=1e-3)
    assert cycles_of(line, 6, gto) == cycles_of(line, 6, rr) == 600


def test_negative_delays_are_as_published_and_flagged() -> None:
    """§7.8: stride 2 and 17 warps: Bandwidth_delay −120, CPI −89."""
    work = uncoalesced()
    s = g.service_time(1.4, 128, 177.4)
    assert g.bandwidth_delay(g.core_requests(17, 2), 15, 513, s) == pytest.approx(-120, abs=0.5)
    prediction = get_model("gpumech_rr").predict(work, [8, 17])
    cpi = (prediction.curve[1].cycles_per_run or 0) / (17 * 100)
    assert cpi == pytest.approx(-89.5, abs=0.5)
    assert prediction.curve[1].warps_per_cycle < 0 < prediction.curve[0].warps_per_cycle
    assert any("outside the domain at 17 warps" in note for note in prediction.notes)


def test_coalesced_accesses_meet_no_contention() -> None:
    prediction = get_model("gpumech_rr").predict(uncoalesced(1.0), [17])
    assert prediction.curve[0].cycles_per_run == pytest.approx(51300)
    assert prediction.notes == ()


def test_more_requests_than_mshrs_are_flagged() -> None:
    work = replace(uncoalesced(), parameters={"mshrs": 16})
    notes = get_model("gpumech_gto").predict(work, [4, 12]).notes
    assert any("MSHR_delay left out at 12 warps" in note for note in notes)


def test_the_pole() -> None:
    s = g.service_time(1.0, 128, 192)
    assert g.singular_warps(16, 300, s) == pytest.approx(28.1, abs=0.05)
    at_pole = g.singular_warps(16, 300, s)
    assert g.bandwidth_delay(at_pole, 16, 300, s) > 0
    assert not g.in_domain(at_pole + 1, 16, 300, s)
    assert g.cpi_final(300 / 29, g.bandwidth_delay(29, 16, 300, s)) == pytest.approx(-0.7, abs=0.05)


def test_corrected_on_the_example() -> None:
    curve = get_model("gpumech_rr_corrected").predict(example(), [1, 2, 10]).curve
    # Alone: 6 instructions and two stalls of 5 cycles; with many warps one instruction a cycle.
    assert [point.cycles_per_run for point in curve] == pytest.approx([16, 20, 60])


def test_a_slower_scheduler_is_not_gpumechs() -> None:
    name = "papers/volkov-gt200"
    work = chain(costs_of(name), "add", 4, issue_limit_of(name))
    with pytest.raises(NotApplicable, match="one instruction per cycle"):
        get_model("gpumech_gto").predict(work, [1])
