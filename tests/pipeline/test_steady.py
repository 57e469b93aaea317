"""Jumps over steady states: the same as simulating every instruction, to the tick."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_cases import lasting_workload, meeting_workload, queueing_workload
from pipeline_kernels import COMP, chain, node, workload

from drywarp.errors import UsageError
from drywarp.pipeline import POLICIES, Share, SimulationResult, share_of, simulate, trace_of
from drywarp.pipeline.extrapolate import WORTH, instructions
from drywarp.pipeline.occupancy import timeline
from drywarp.pipeline.simulate import run_share, try_share
from drywarp.pipeline.state import Steady
from drywarp.workload.cost import CostedPath, CostedWorkload, Repeat

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from simulation_speed import tiled_matmul
from tests.effort import examples, first

EAGER = Steady(least_gain=1, long_loop=3, sparing=10**9)
"""Every chance is taken, however little it spares."""


def compare(work: CostedWorkload, share: Share, seed: int, stalls: bool) -> SimulationResult:
    """Both ways, with few ticks and few notes on the subsystems, so that all cases of the accounts occur."""
    few = {"cycle": seed % 4, "spells": 1 + seed % 3}
    full = run_share(work, share, stalls=stalls, **few)  # type: ignore[arg-type]
    steady = run_share(work, share, stalls=stalls, steady=EAGER, **few)  # type: ignore[arg-type]
    for name in (
        "total_ticks",
        "issued",
        "blocks",
        "busy_ticks",
        "issue_busy_ticks",
        "warp_ticks",
        "simulated_ticks",
        "tail_ticks",
    ):
        assert getattr(steady, name) == getattr(full, name), f"seed {seed}: {name}"
    assert np.array_equal(steady.stall_ticks, full.stall_ticks), f"seed {seed}: stalls"
    assert (full.jumped, full.recurrences) == (0, ())
    for points in (2, 7, 10**6):
        ours, theirs = trace_of(steady, points), trace_of(full, points)
        assert np.array_equal(ours.ticks, theirs.ticks), f"seed {seed}: trace"
        assert np.array_equal(ours.warp_ticks, theirs.warp_ticks), f"seed {seed}: trace"
        assert (ours.busiest_ticks, ours.peak, ours.decimated) == (theirs.busiest_ticks, theirs.peak, theirs.decimated)
    return steady


@pytest.mark.parametrize("chunk", first(range(3), 1))
def test_jumps_change_no_queue(chunk: int) -> None:
    jumped = 0
    for seed in range(chunk * 200, chunk * 200 + 200):
        work = replace(queueing_workload(seed), blocks=60)
        share = share_of(work, work.blocks_per_sm)
        if instructions(work, share.blocks) < 10_000:
            jumped += compare(work, share, seed, stalls=False).jumped > 0
    assert jumped > 20


@pytest.mark.parametrize("chunk", first(range(14)))
def test_jumps_change_nothing(chunk: int) -> None:
    """All policies, barriers, partitions, levels, limits, unequal paths, several types of blocks and tails."""
    tried = jumped = folded = 0
    for seed in range(chunk * 200, chunk * 200 + 200):
        work = lasting_workload(seed)
        share = share_of(work, work.blocks_per_sm)
        if instructions(work, share.blocks) < 10_000:
            result = compare(work, share, seed, stalls=seed % 4 != 0)
            tried, jumped = tried + 1, jumped + (result.jumped > 0)
            folded += bool(timeline(result, 7).folds)
    assert tried > 170
    assert jumped > 0.4 * tried
    assert folded > 0.05 * tried


@settings(max_examples=examples(300), deadline=None)
@given(
    st.integers(0, 10**9), st.sampled_from([*POLICIES]), st.integers(1, 3), st.integers(1, 200),
    st.integers(0, 30),
)  # fmt: skip
def test_jumps_change_nothing_whatever_the_policy(
    seed: int, policy: str, resident: int, blocks: int, tail: int
) -> None:
    work = replace(lasting_workload(seed), policy=policy)
    share = Share(resident, blocks, max(0, blocks - tail))
    if instructions(work, blocks) < 30_000:
        compare(work, share, seed, stalls=True)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("partitions", [4, 1])
def test_the_tiled_matmul(policy: str, partitions: int) -> None:
    """Barriers, loops in each other, two memory levels: at several occupancies, with and without replacement."""
    jumped = 0
    for resident, blocks in ((1, 1), (1, 6), (2, 2), (3, 8)):
        work = replace(tiled_matmul(partitions, iterations=24), policy=policy)
        jumped += compare(work, Share(resident, blocks, blocks), 0, stalls=True).jumped
    assert jumped > 0


@pytest.mark.parametrize("warps", [1, 3, 4, 9])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_loop_of_a_billion_iterations(warps: int, policy: str) -> None:
    """The law of dependent instructions (analysis, Eq. 1 of Cornelis) far beyond what could be simulated."""
    iterations, lambda_, latency = 10**9, 240, 960
    work = workload(chain(iterations, lambda_, latency), policy=policy)
    result = simulate(work, Share(warps, warps, warps))
    assert not result.extrapolated
    assert result.issued == iterations * warps
    if warps * lambda_ <= latency:
        expected = iterations * latency + (warps - 1) * lambda_
    elif policy == "loose_round_robin":
        expected = latency + (iterations * warps - 1) * lambda_
    else:  # what every thousand iterations more take
        first, second = (
            run_share(workload(chain(n, lambda_, latency), policy=policy), Share(warps, warps, warps)).total_ticks
            for n in (1000, 2000)
        )
        expected = first + (second - first) * (iterations // 1000 - 1)
    assert result.total_ticks == expected
    assert result.stall_ticks.sum() == result.warp_ticks


def test_loops_in_each_other() -> None:
    body = (Repeat(10**6, (Repeat(10, (0,)), 0)), Repeat(1000, (0, 0, Repeat(10**6, (0,)))))
    work = workload(replace(chain(1, 240, 960), program=body))
    result = simulate(work, Share(3, 3, 3))
    iterations = 11 * 10**6 + 1000 * (10**6 + 2)
    assert not result.extrapolated
    assert result.total_ticks == iterations * 960 + 2 * 240


def test_a_billion_blocks() -> None:
    """Two at once, 1 cycle apart, each successor where its predecessor ended: 40 cycles for each pair.

    One after the other they would take hours.
    """
    work = workload(chain(10, 240, 960))
    blocks = 10**9
    result = simulate(work, Share(2, blocks, blocks))
    trace = trace_of(result, 100)
    assert not result.extrapolated
    assert (result.issued, result.blocks) == (10 * blocks, blocks)
    assert result.total_ticks == (blocks // 2 * 40 + 1) * 240
    assert result.warp_ticks == result.stall_ticks.sum() == blocks * 40 * 240 + 240
    assert len(result.warp_ends) < 10**5
    assert trace.warp_ticks.sum() == result.warp_ticks
    assert (trace.peak, len(trace.warp_ticks)) == (2, 100)


def test_types_of_blocks_that_alternate() -> None:
    work = workload(chain(10, 240, 960))
    kinds = tuple(replace(work.block_types[0], paths=(path,), weight=weight) for path, weight in ((0, 2.0), (1, 1.0)))
    work = replace(work, paths=(work.paths[0], chain(3, 240, 960)), block_types=kinds)
    few, many = (run_share(work, Share(2, blocks, blocks), steady=EAGER) for blocks in (3000, 300_000))
    assert many.jumped > 0.9 * many.issued
    assert few.total_ticks == run_share(work, Share(2, 3000, 3000)).total_ticks
    # In the mean a block has (10 + 10 + 3) / 3 instructions of 4 cycles, on two slots.
    assert many.cycles == pytest.approx(300_000 * 23 / 3 * 4 / 2, rel=1e-4)


def test_a_steady_state_is_left_in_time() -> None:
    """Tails, at every length of the loop: none is jumped over."""
    rng = random.Random(1)
    for iterations in range(1, 60):
        path = CostedPath(
            (node(COMP, 1, 4, (0,), 0), node(COMP, 2, 30, (0,), 0)), (1, Repeat(iterations, (0, 0)), 1), 1
        )
        work = workload(path, policy=rng.choice([*POLICIES]), launch_cycles=3)
        compare(work, Share(3, 50, 49), iterations, stalls=True)


def test_nothing_recurs_within_the_limit() -> None:
    work = tiled_matmul(4, iterations=100)
    assert try_share(work, Share(8, 64, 64), steady=Steady(limit=100_000)) is None
    result = simulate(work, Share(8, 64, 64), budget=300_000)
    assert result.extrapolated
    full = simulate(work, Share(3, 3, 3), budget=1000, full=True)
    assert (full.extrapolated, full.jumped) == (False, 0)


def test_an_estimate_that_saves_little_is_not_made() -> None:
    work, share = tiled_matmul(4, iterations=100), Share(8, 64, 64)
    total = instructions(work, share.blocks)
    at_most = simulate(work, share, budget=int(total / WORTH) + 1)
    assert not at_most.extrapolated
    assert at_most.total_ticks == simulate(work, share, full=True).total_ticks
    assert simulate(work, share, budget=int(total / WORTH) - 1).extrapolated


def test_time_that_leaves_the_range() -> None:
    with pytest.raises(UsageError, match="exceeds the range"):
        simulate(workload(chain(10**13, 240, 960)), Share(1, 1, 1))


def test_out_of_order_nothing_is_jumped() -> None:
    work = lasting_workload(1, in_order=False)
    share = share_of(work, work.blocks_per_sm)
    plain, steady = run_share(work, share), run_share(work, share, steady=EAGER)
    assert (steady.total_ticks, steady.jumped) == (plain.total_ticks, 0)


def test_where_warps_wait_for_some_others_nothing_is_jumped() -> None:
    """The description of a state has no phases, so that two states may look alike that are not."""
    works = [work for work in map(meeting_workload, range(60)) if work.synchronises]
    assert len(works) > 20
    for work in works:
        share = Share(work.blocks_per_sm, 40, 40)
        plain, steady = run_share(work, share), run_share(work, share, steady=EAGER)
        assert (steady.total_ticks, steady.jumped) == (plain.total_ticks, 0)


def test_a_profile_has_every_instruction_in_it() -> None:
    work = replace(tiled_matmul(4, iterations=24), policy="loose_round_robin")
    result = run_share(work, Share(1, 6, 6), profile=True, steady=Steady())
    assert result.jumped == 0
    assert result.profile is not None
    assert len(result.profile.table) == result.issued
