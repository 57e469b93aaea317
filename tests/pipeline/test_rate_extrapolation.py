"""Many blocks from the rate of a few waves."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pipeline_kernels import chain, workload

from drywarp.pipeline import Share, simulate
from drywarp.pipeline.extrapolate import instructions, waves_and_rate
from drywarp.workload.cost import CostedWorkload, Level

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from simulation_speed import tiled_matmul


def restless(iterations: int = 6) -> CostedWorkload:
    """A tiled matmul whose loads come back at times that fit no others: blocks drift against each other."""
    work = replace(tiled_matmul(4, iterations=iterations, steps=4), policy="loose_round_robin")
    (path,) = work.paths
    nodes = tuple(
        replace(
            node,
            latency_ticks=node.latency_ticks + 611 * number,
            levels=tuple(Level(level.subsystem, 869 - 57 * number, 708) for level in node.levels),
        )
        if node.levels
        else node
        for number, node in enumerate(path.nodes)
    )
    return replace(work, paths=(replace(path, nodes=nodes),))


@pytest.mark.parametrize("blocks", [800, 803, 1207])
@pytest.mark.parametrize("resident", [5, 8])
def test_the_rate_tells_the_time(resident: int, blocks: int) -> None:
    work, share = restless(), Share(resident, blocks, blocks)
    total = instructions(work, blocks)
    full = simulate(work, share, full=True)
    found = waves_and_rate(work, share, 30, total, stalls=True)
    assert found.extrapolated
    assert (found.issued, found.blocks) == (full.issued, blocks)
    # The rate itself wanders by some per cent over tens of waves.
    assert found.total_ticks == pytest.approx(full.total_ticks, rel=0.05)
    assert found.warp_ticks == pytest.approx(full.warp_ticks, rel=0.05)
    assert found.stall_ticks.sum() == found.warp_ticks
    assert found.busy_ticks == pytest.approx(full.busy_ticks, rel=0.01)
    assert found.issue_busy_ticks == pytest.approx(full.issue_busy_ticks)


def test_blocks_in_step_are_no_worse_for_it() -> None:
    """All start and end together: the rate is taken over whole waves."""
    work = workload(chain(100, 240, 960), launch_cycles=50)
    for blocks in (60, 61):
        full = simulate(work, Share(3, blocks, blocks), full=True)
        found = waves_and_rate(work, Share(3, blocks, blocks), 2, instructions(work, blocks), stalls=True)
        assert found.total_ticks == pytest.approx(full.total_ticks, rel=5e-3)


def test_what_recurs_is_exact() -> None:
    work = workload(chain(1000, 240, 960))
    result = simulate(work, Share(2, 10_001, 10_001), budget=100_000)
    assert not result.extrapolated
    assert result.jumped


def test_few_blocks_are_simulated() -> None:
    work = restless()
    found = waves_and_rate(work, Share(8, 30, 30), 4, instructions(work, 30), stalls=False)
    assert not found.extrapolated
    assert found.total_ticks == simulate(work, Share(8, 30, 30), full=True).total_ticks
