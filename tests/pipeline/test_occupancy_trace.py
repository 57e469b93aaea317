"""Active warps over time, as Volkov tracks them (2016, §5.6-5.9)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_cases import random_workload
from pipeline_kernels import COMP, chain, node, workload
from tests.effort import examples

from drywarp.models.pipeline import Pipeline
from drywarp.pipeline import Share, occupancy_trace, share_of, simulate, trace_of
from drywarp.pipeline.extrapolate import extrapolate
from drywarp.pipeline.simulate import run_share
from drywarp.workload.cost import CostedPath, Subsystem


def test_seventeen_warps_on_four_partitions() -> None:
    """Fig. 5.2: a throughput-bound block of 17 warps; the partition with five runs on alone."""
    work = workload(chain(1000, 240, 240), warps_per_block=17, partitions=4)
    trace = occupancy_trace(work, Share(1, 1, 1))
    assert trace.by_partition[0].tolist() == [5, 4, 4, 4]
    assert trace.active[0] == 17
    assert trace.active[-5:].tolist() == [5, 4, 3, 2, 1]
    # Three partitions are through at 4000 cycles, the first at 5000.
    through = trace.cycles[:-1] >= 4000
    assert (trace.by_partition[through, 1:] == 0).all()
    assert trace.cycles[-1] == 5000
    assert trace.mean == pytest.approx(17 * 4000 / 5000 + 5 * 1000 / 5000, rel=1e-3)
    assert trace.peak == 17
    assert trace.imbalance == pytest.approx(1 - trace.mean / 20, abs=1e-3)


def test_imbalance_of_a_steady_seventeen() -> None:
    """Latency-bound, all 17 end together: a mean partition has 15 % fewer than the busiest."""
    work = workload(chain(100, 0, 2400), warps_per_block=17, partitions=4)
    assert occupancy_trace(work, Share(1, 1, 1)).imbalance == pytest.approx(1 - 17 / 20)
    assert occupancy_trace(replace(work, partitions=1), Share(1, 1, 1)).imbalance == 0


def test_whole_waves_and_the_tail() -> None:
    """Blocks of one warp, 100 cycles each and 5 to replace: two waves of four, then two."""
    work = workload(CostedPath((node(COMP, 0, 100),), (0,), 0), launch_cycles=5)
    trace = occupancy_trace(work, Share(4, 10, 8))
    assert trace.cycles.tolist() == [0, 100, 105, 205, 210, 310]
    assert trace.active.tolist() == [4, 0, 4, 0, 2]
    assert trace.mean == 1000 / 310
    assert not trace.decimated


def test_warps_that_start_in_step_drift_apart() -> None:
    """§5.6: the first blocks start and end nearly together; later starts are spread out."""
    work = workload(chain(20, 240, 4800), warps_per_block=1)
    work = replace(work, subsystems=(Subsystem("comp", "sm"), work.subsystems[1]))
    result = run_share(work, Share(24, 240, 240))
    assert set(result.block_starts[:24].tolist()) == {0}
    assert len(set(result.block_starts[24:48].tolist())) > 12
    assert trace_of(result).peak == 24


@settings(max_examples=examples(500), deadline=None)
@given(st.integers(0, 10**9), st.booleans(), st.integers(1, 40))
def test_littles_law_holds_exactly(seed: int, in_order: bool, points: int) -> None:
    """Mean occupancy · time = warps · mean warp latency, in whole ticks, decimated or not."""
    work = random_workload(seed, in_order)
    result = run_share(work, share_of(work, work.blocks_per_sm))
    latencies = result.warp_ends - np.repeat(result.block_starts, work.warps_per_block)
    for trace in (trace_of(result, 10**6), trace_of(result, points)):
        assert trace.warp_ticks.sum() == latencies.sum() == result.stall_ticks.sum()
        assert (trace.warp_ticks >= 0).all()
        if result.total_ticks:
            assert trace.mean == result.mean_occupancy
            assert (trace.ticks[0], trace.ticks[-1]) == (0, result.total_ticks)
            assert trace.mean == pytest.approx(latencies.mean() * len(latencies) / result.total_ticks)
            assert 0 <= trace.imbalance < 1
    assert len(trace.warp_ticks) <= points


def test_decimation_keeps_areas() -> None:
    work = workload(CostedPath((node(COMP, 0, 100),), (0,), 0), launch_cycles=5)
    result = run_share(work, Share(4, 10, 8))
    trace = trace_of(result, 2)
    assert trace.decimated
    assert trace.cycles.tolist() == [0, 155, 310]
    # 400 and 50 · 4 warp-cycles before the middle, 50 · 4 and 200 after it.
    assert (trace.warp_ticks / 240).tolist() == [[600], [400]]
    assert trace.mean == 1000 / 310
    assert trace.peak == 4


def test_the_prediction_holds_it() -> None:
    work = workload(chain(100, 240, 960), warps_per_block=4, partitions=4)
    work = replace(work, runs=0, blocks=3)
    plain, traced = Pipeline().predict(work, ()), Pipeline(trace_points=16).predict(work, ())
    assert plain.occupancy_trace is None
    assert traced.occupancy_trace is not None
    assert traced.occupancy_trace.mean == traced.achieved_occupancy_warps == plain.achieved_occupancy_warps == 4
    assert sum(plain.stalls.values()) == pytest.approx(plain.cycles * 4)
    assert plain.node_stalls == {0: plain.stalls}


def test_an_extrapolated_run_is_traced_in_its_simulated_part() -> None:
    work = workload(chain(10, 240, 960))
    result = extrapolate(work, Share(2, 1001, 1001), budget=100)
    trace = trace_of(result)
    assert trace.extrapolated
    assert trace.ticks[-1] == result.simulated_ticks < result.total_ticks
    assert result.mean_occupancy == pytest.approx(simulate(work, Share(2, 1001, 1001)).mean_occupancy, rel=1e-2)
