"""Large runs from small ones, where no jump is found."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_kernels import COMP, MEM, chain, node, workload

from drywarp.pipeline import POLICIES, Share, simulate
from drywarp.pipeline.extrapolate import StandIn, extrapolate, instructions
from drywarp.pipeline.shorten import WORST, lengthen, roof_ticks, shorten, two_lengths
from drywarp.workload.cost import CostedNode, CostedPath, CostedWorkload, Repeat

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from simulation_speed import tiled_matmul
from tests.effort import examples, first


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


@pytest.mark.parametrize(("straight", "sloped"), [(900, True), (1100, False)])
def test_two_lengths_need_loops_of_more_than_two_thirds(straight: int, sloped: bool) -> None:
    """A short run of a third or more and a longer one of twice that take as long as the whole one."""
    path = chain(1, 240, 960)
    work = workload(replace(path, program=(0,) * straight + (Repeat(1000, (0, 0)),)))
    assert (two_lengths(work, 0.01) is not None) == sloped
    result = extrapolate(work, Share(2, 40, 40), budget=3500)
    assert result.extrapolated
    assert result.issued == 40 * (straight + 2000)
    assert result.total_ticks == pytest.approx(simulate(work, Share(2, 40, 40)).total_ticks, rel=2e-3)


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


def uneven(seed: int) -> tuple[CostedWorkload, Share]:
    """Two or three loops in sequence, up to three deep, whose counts have nothing to do with each other."""
    r = random.Random(seed)
    nodes: list[CostedNode] = []

    def loop(count: int, depth: int) -> Repeat:
        body: list[int | Repeat] = []
        for _ in range(r.randint(1, 3)):
            subsystem = r.choice((COMP, MEM))
            lambda_ = r.choice((1, 2, 8)) if subsystem == COMP else r.choice((2, 16, 64))
            body.append(len(nodes))
            nodes.append(node(subsystem, lambda_, lambda_ + r.choice((3, 20, 60)), (0,), 0))
        return Repeat(count, (*body, loop(r.randint(2, 300), depth - 1)) if depth else tuple(body))

    program = tuple(
        loop(r.choice((r.randint(20, 60), r.randint(60, 3000))), r.choice((0, 0, 1, 2))) for _ in range(r.randint(2, 3))
    )
    work = workload(
        CostedPath(tuple(nodes), program, 1),
        warps_per_block=r.choice((1, 2)),
        issue_limit=r.choice((0, 1)),
        policy=r.choice(list(POLICIES)),
        in_order=r.random() < 0.7,
    )
    resident = r.choice((1, 3, 8))
    blocks = resident * r.randint(1, 3)
    return work, Share(resident, blocks, blocks)


def errors_of_estimates(seeds: range, alone: bool) -> list[float]:
    """How far estimates are off, of those workloads that are neither short nor too long to simulate here."""
    errors = []
    for seed in seeds:
        work, share = uneven(seed)
        share = Share(1, 1, 1) if alone else share
        total = instructions(work, share.blocks)
        if not (10_000 if alone else 30_000) < total < 500_000:
            continue
        full = simulate(work, share, full=True, stalls=False)
        found = simulate(work, share, total // 8, stalls=False)
        assert found.total_ticks >= roof_ticks(work, share, np.array([float(share.blocks)]))
        found = extrapolate(work, share, total // 8, stalls=False)
        assert found.issued == full.issued
        errors.append(abs(found.total_ticks / full.total_ticks - 1))
    return errors


def test_loops_of_uneven_counts_end_when_they_do() -> None:
    """One block at a time is off by its pipelines' filling; beside others its loops overlap with theirs."""
    alone = errors_of_estimates(range(examples(1000)), alone=True)
    assert len(alone) >= 20
    assert max(alone) < 0.03
    beside = errors_of_estimates(range(examples(2000)), alone=False)
    assert len(beside) >= 30
    assert np.percentile(beside, 50) < 0.005
    assert np.percentile(beside, 90) < 0.02
    assert max(beside) < 0.25


@settings(max_examples=examples(500), deadline=None)
@given(st.integers(0, 10**6))
def test_what_is_left_out_is_the_mix_of_what_is_put_back(seed: int) -> None:
    """The line through both lengths ends, node by node, at the whole workload, but for whole iterations."""
    work, _ = uneven(seed)
    (whole,) = work.paths
    for share in (0.1, 0.5, 1.0):
        short = shorten(work, 0.02)
        (few,), (more,) = short.paths, lengthen(short, work, share).paths
        for first_, second, last in zip(few.counts(), more.counts(), whole.counts(), strict=True):
            assert first_ <= second <= last
            assert share < 1 or second == last
    if lengths := two_lengths(work, 0.02):
        few, more = (np.array(its.paths[0].counts(), dtype=float) for its in lengths)
        span, ahead = more - few, np.array(whole.counts()) - more
        wrong = span * (ahead.sum() / span.sum()) - ahead
        assert np.abs(wrong).sum() <= WORST * whole.length


def test_a_stand_in_is_no_faster_than_its_busiest_subsystem() -> None:
    """Where warps drift, the line through two lengths may lead anywhere, even below nothing."""
    for seed in range(examples(300)):
        work, share = uneven(seed)
        least = roof_ticks(work, share, np.array([float(share.blocks)]))
        assert StandIn(work, 0.01, alike=0.0).trial(work).run(share).total_ticks >= least, f"seed {seed}"


def with_memory_latency(work: CostedWorkload, factor: int) -> CostedWorkload:
    def slower(node: CostedNode) -> CostedNode:
        return replace(node, latency_ticks=factor * node.latency_ticks) if node.class_ == "mem" else node

    paths = tuple(replace(path, nodes=tuple(map(slower, path.nodes))) for path in work.paths)
    return replace(work, paths=paths)


def ratio_of(simulated: Callable[[CostedWorkload], float], work: CostedWorkload) -> float:
    return simulated(with_memory_latency(work, 2)) / simulated(work)


@pytest.mark.parametrize("blocks", [1, 4, 9])
def test_a_stand_in_weighs_uneven_loops_as_the_launch_does(blocks: int) -> None:
    """20,000 iterations and 4: shortened to one scale the few take more than half of the time, and Λ matters much."""
    nodes = (node(COMP, 1, 4, (0,), 0), node(MEM, 2, 600, (0,), 0))
    work = workload(CostedPath(nodes, (Repeat(20_000, (0,)), Repeat(4, (1,))), 1))
    kinds = tuple(replace(work.block_types[0], paths=(path,), weight=weight) for path, weight in ((0, 3.0), (1, 1.0)))
    work = replace(work, paths=(work.paths[0], replace(work.paths[0], program=(Repeat(900, (0,)),))), block_types=kinds)
    share = Share(min(4, blocks), blocks, blocks)
    stand_in = StandIn(work, 0.01)
    assert stand_in.instructions < 0.02 * instructions(work, 4) / 4

    def alone(its: CostedWorkload) -> float:
        return simulate(shorten(its, 0.01, 4), share).cycles

    truth = ratio_of(lambda its: simulate(its, share, full=True).cycles, work)
    assert truth < 1.1
    assert ratio_of(lambda its: stand_in.trial(its).run(share).cycles, work) == pytest.approx(truth, rel=2e-3)
    assert ratio_of(alone, work) > 1.5


def test_what_is_left_of_a_stand_in() -> None:
    work = workload(replace(chain(1, 240, 960), program=(Repeat(1000, (0,)),)))
    assert StandIn(work, 1.0).instructions == 1000
    assert StandIn(work, 0.1).instructions == 100  # one loop alone is its own mix
    both = replace(work, paths=(replace(work.paths[0], program=(Repeat(1000, (0,)), Repeat(9, (0,)))),))
    assert StandIn(both, 0.1).instructions == 103
    first, second = two_lengths(both, 0.1 / 3) or ()
    assert StandIn(both, 0.1, alike=0.0).instructions == instructions(first, 1) + instructions(second, 1)
    half = replace(work, paths=(replace(work.paths[0], program=(0,) * 900 + (Repeat(1000, (0,)),)),))
    assert StandIn(half, 0.1).instructions == 1900  # two lengths would take as long
    waiting = replace(work, paths=(replace(work.paths[0], events=(0, 0)),))
    assert waiting.synchronises
    assert StandIn(waiting, 0.1).instructions == 1000
