"""A profile's figures in place of emulated ones, worked out by hand: scaled predictions, and terms of a difference."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import pytest

from drywarp.analysis.measured import CountRatio, check_mapper, compare_with, count_ratio, with_memory
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.errors import UsageError
from drywarp.kernel.profile import SM_CLOCK, TIME, MeasuredKernel
from drywarp.models.base import CurvePoint, Prediction
from drywarp.workload.cost import CostedWorkload
from tests.round_gpu import round_gpu

COPY = "__global__ void copy(const float* x, float* y) { int i = blockIdx.x * 128 + threadIdx.x; y[i] = x[i]; }"
EXECUTED = "smsp__inst_executed.sum"


@pytest.fixture(scope="module")
def ready() -> Prepared:
    return prepare_kernel(COPY, gpu=round_gpu(), grid=20, block=128, args={"x": "f32[2560]", "y": "f32[2560]"})


def measured(time_s: float | None = None, clock_hz: float | None = None, **metrics: float) -> MeasuredKernel:
    said = {TIME: time_s, SM_CLOCK: clock_hz}
    given = {name: value for name, value in said.items() if value is not None}
    return MeasuredKernel("copy", (20, 1, 1), (128, 1, 1), {**given, **metrics}, place="p.json: line 1")


def prediction(time_s: float = 1.0) -> Prediction:
    point = CurvePoint(8, 0.5, 2.0, "latency", 16.0)
    return Prediction(
        "pipeline", 1000.0, time_s, "dram", (point,), utilization={"dram": 0.9}, headroom={"dram": 900.0},
        stalls={"wait": 40.0}, node_stalls={3: {"wait": 40.0}}, notes=("before",), tail_s=0.2,
    )  # fmt: skip


def test_more_instructions_of_the_same_mixture_take_more_of_all() -> None:
    found = CountRatio(1.5).scale(prediction())
    assert (found.cycles, found.time_s, found.tail_s) == (1500, 1.5, pytest.approx(0.3))
    assert (found.curve[0].time_s, found.curve[0].warps_per_cycle) == (3, pytest.approx(0.5 / 1.5))
    assert (found.headroom, found.stalls, found.node_stalls) == ({"dram": 1350}, {"wait": 60}, {3: {"wait": 60}})
    # What is a fraction stays one.
    assert (found.utilization, found.limiter) == ({"dram": 0.9}, "dram")
    assert found.notes[0] == "before"
    assert found.notes[1].startswith("the profile counts 1.500 times")


@pytest.mark.parametrize(
    ("ratio", "matters"), [(1.0, False), (1.0049, False), (1.0051, True), (0.9951, False), (0.9949, True)]
)
def test_half_a_percent_is_not_worth_a_word(ratio: float, matters: bool) -> None:
    assert CountRatio(ratio).matters == matters
    assert (CountRatio(ratio).scale(prediction()) == prediction()) != matters


def test_the_ratio_is_that_of_the_counts(ready: Prepared) -> None:
    emulated = float(ready.profile.executions().sum())
    assert count_ratio(ready, measured(**{EXECUTED: 3 * emulated})).ratio == 3
    assert count_ratio(ready, measured(**{EXECUTED: 0.0})).ratio == 1
    assert count_ratio(ready, measured()).ratio == 1
    assert count_ratio(ready, None).ratio == 1


def test_each_figure_explains_its_part_and_the_model_the_rest(ready: Prepared) -> None:
    """The stand-in of a model: 8 µs, at half the clock 12 µs; with a profile's memory figures half as long."""

    class StandIn:
        name = summary = "stand-in"

        def __init__(self) -> None:
            self.first: dict[float, CostedWorkload] = {}

        def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
            slow = workload.clock_hz < ready.costed.clock_hz
            averaged = workload != self.first.setdefault(workload.clock_hz, workload)
            return prediction(8e-6 * (1.5 if slow else 1) * (0.5 if averaged else 1))

    emulated = float(ready.profile.executions().sum())
    all_said = {EXECUTED: 2 * emulated, "l1tex__t_sector_hit_rate.pct": 10.0}
    found = compare_with(ready, measured(24e-6, 500e6, **all_said), StandIn())
    # 8 µs · 1.5 (clock) · 2 (instructions) · 0.5 (memory) = 12 µs; the model leaves a factor of 2.
    assert [(term.name, term.factor) for term in found.terms] == [
        ("clock", pytest.approx(1.5)),
        ("instructions", pytest.approx(2)),
        ("memory", pytest.approx(0.5)),
        ("model", pytest.approx(2)),
    ]
    assert (found.time_s, found.predicted_s, found.ratio) == (24e-6, 8e-6, pytest.approx(1 / 3))
    assert prod(term.factor for term in found.terms) == pytest.approx(24 / 8)
    # What the profile does not say has no term.
    (only,) = compare_with(ready, measured(4e-6), StandIn()).terms
    assert (only.name, only.factor) == ("model", pytest.approx(0.5))
    names = [term.name for term in compare_with(ready, measured(4e-6, **{EXECUTED: 2 * emulated}), StandIn()).terms]
    assert names == ["instructions", "model"]
    with pytest.raises(UsageError, match="has no time"):
        compare_with(ready, measured(), StandIn())


def test_the_mapper_is_that_of_averages_where_a_profile_is_given(ready: Prepared) -> None:
    hits = measured(**{"l1tex__t_sector_hit_rate.pct": 25.0})
    assert with_memory(ready, None, None) is ready
    assert with_memory(ready, "emulated", hits) is ready
    for mapper in (None, "averaged"):
        found = with_memory(ready, mapper, hits)
        assert found.behaviour.method == "averaged"
        assert found.behaviour.l1_hit_rate == 0.25
        assert found.behaviour.notes[-1].endswith("; from the profile: L1 hit rate")
        assert found.costed.clock_hz == ready.costed.clock_hz
    own = with_memory(ready, "averaged", None)
    assert own.behaviour.notes[-1].endswith("with emulated values")
    assert own.behaviour.dram_read_bytes == ready.behaviour.dram_read_bytes
    check_mapper(None)
    with pytest.raises(UsageError, match="expected one of emulated, averaged"):
        check_mapper("other")
