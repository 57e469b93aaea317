"""Transit, Theorem 1, and the Roofline over a mix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.experiments.reproduce.small_kernels import Cost, Instruction, example, kernel
from drywarp.models import NotApplicable, get_model
from drywarp.models.first_order import ipc_of, wpc_transit
from drywarp.models.roofline import mix_cycles, wpc_mix
from drywarp.models.volkov import wpc_volkov

cycles = st.floats(0.25, 64)
counts = st.integers(1, 200)


@given(st.integers(1, 64), counts, cycles, cycles, counts, cycles, cycles)
def test_theorem_1_transit_is_volkov_without_ilp(
    warps: int, comp: int, comp_lambda: float, comp_more: float, mem: int, mem_lambda: float, mem_more: float
) -> None:
    comp_latency, mem_latency = comp_lambda + comp_more, mem_lambda + mem_more
    roof = 1 / max(comp * comp_lambda, mem * mem_lambda)
    volkov = wpc_volkov(warps, comp * comp_latency + mem * mem_latency, roof)
    transit = wpc_transit(warps, comp, (comp_lambda, comp_latency), mem, (mem_lambda, mem_latency))
    assert transit == pytest.approx(volkov, rel=1e-9)


def test_transit_knows_no_ilp() -> None:
    curve = get_model("transit").predict(example(), range(1, 10)).curve
    assert [point.cycles_per_run for point in curve] == pytest.approx([28] * 7 + [32, 36])
    assert [point.bound for point in curve] == ["latency"] * 6 + ["comp"] * 3


def test_one_subsystem_alone() -> None:
    assert ipc_of(3, 2, 6) == ipc_of(9, 2, 6) == 1 / 2
    assert wpc_transit(1, 4, (1, 4), 0, (0, 0)) == 1 / 16
    assert wpc_transit(1, 0, (0, 0), 2, (2, 6)) == 1 / 12
    nothing = kernel({"nop": Cost("x", 1, 0)}, [Instruction("nop")])
    with pytest.raises(NotApplicable, match="latency"):
        get_model("transit").predict(nothing, [1])


def test_the_mix_shares_one_computing_subsystem() -> None:
    """Analysis Eq. 43: β / (β λ1 + λ2) instructions of type 1 a cycle."""
    assert 4 * wpc_mix(mix_cycles({"add": 4, "sfu": 1}, {"add": 1, "sfu": 4}), 0) == 4 / (4 * 1 + 4)
    curve = get_model("roofline_mix").predict(example(), [1, 8]).curve
    assert [point.warps_per_cycle for point in curve] == [1 / 4, 1 / 4]
