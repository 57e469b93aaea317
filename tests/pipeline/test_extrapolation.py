"""Large runs from small ones, where no jump is found."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pipeline_kernels import chain, workload

from drywarp.pipeline import Share, simulate
from drywarp.pipeline.extrapolate import extrapolate, instructions, shorten
from drywarp.workload.cost import Repeat

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from simulation_speed import tiled_matmul
from tests.effort import first


def test_small_runs_are_exact() -> None:
    result = simulate(workload(chain(10, 240, 960)), Share(2, 5, 5), budget=50)
    assert not result.extrapolated
    # Two start 1 cycle apart, each successor where its predecessor ended: ends at 40, 41, 80, 81, 120.
    assert result.cycles == 120


def test_many_blocks_continue_the_line_of_few() -> None:
    work = workload(chain(10, 240, 960))
    exact = simulate(work, Share(2, 1001, 1001))
    result = extrapolate(work, Share(2, 1001, 1001), budget=100)
    assert result.extrapolated
    assert (result.issued, result.blocks) == (exact.issued, 1001)
    assert result.total_ticks == pytest.approx(exact.total_ticks, rel=2e-3)
    assert result.busy_ticks == pytest.approx(exact.busy_ticks)


def test_half_of_the_budget_is_simulated_first() -> None:
    """A wave of two chains of ten is 20 instructions, so that 500 are 25 waves; the last one has a single block."""
    result = extrapolate(workload(chain(10, 240, 960)), Share(2, 1001, 1001), budget=1000)
    assert result.extrapolated
    assert len(result.block_starts) == 2 * 25 + 1


@pytest.mark.parametrize(("straight", "sloped"), [(35, True), (43, False)])
def test_two_lengths_tell_a_slope_if_they_differ_by_three_tenths(straight: int, sloped: bool) -> None:
    """A loop of two, shortened to 16 and 32 turns, differs by 32: of 64 + 35 that is 0.32, of 64 + 43 it is less."""
    path = chain(1, 240, 960)
    work = workload(replace(path, program=(0,) * straight + (Repeat(1000, (0, 0)),)))
    result = extrapolate(work, Share(2, 40, 40), budget=3500)
    assert result.extrapolated
    assert result.issued == 40 * (straight + 2000)
    # Of short blocks two thirds of the budget hold twice five waves of two, and one more is run; of whole ones two are.
    assert len(result.block_starts) == (12 if sloped else 4)


@pytest.mark.parametrize("policy", ["greedy_then_oldest", "loose_round_robin"])
@pytest.mark.parametrize("blocks", first([8, 20, 40]))
def test_long_loops_continue_the_line_of_short_ones(policy: str, blocks: int) -> None:
    work = replace(tiled_matmul(4, iterations=600), policy=policy)
    share = Share(8, blocks, blocks)
    exact = simulate(work, share, budget=10**9)
    result = extrapolate(work, share, budget=3_000_000)
    assert result.extrapolated
    assert not exact.extrapolated
    assert result.issued == exact.issued
    assert result.total_ticks == pytest.approx(exact.total_ticks, rel=0.02)


def test_a_single_block_per_sm_takes_as_long_as_the_slowest_type() -> None:
    work = workload(chain(1, 240, 960))
    kinds = tuple(replace(work.block_types[0], paths=(path,), weight=weight) for path, weight in ((0, 9.0), (1, 1.0)))
    work = replace(work, paths=(work.paths[0], chain(30, 240, 960)), block_types=kinds)
    assert simulate(work, Share(4, 1, 0)).cycles == 120


def test_shortening_scales_outer_loops_first_and_keeps_short_ones() -> None:
    work = workload(chain(1, 1, 1))
    nested = replace(work, paths=(replace(work.paths[0], program=(Repeat(200, (0, Repeat(3, (0,)))), 0)),))
    assert shorten(nested, 0.1).paths[0].program == (Repeat(20, (0, Repeat(3, (0,)))), 0)
    deep = replace(work, paths=(replace(work.paths[0], program=(Repeat(4, (Repeat(1000, (0,)),)),)),))
    assert shorten(deep, 0.1).paths[0].program == (Repeat(4, (Repeat(100, (0,)),)),)
    assert instructions(shorten(deep, 0.1), 3) == 1200
