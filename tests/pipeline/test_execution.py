"""Events of random small workloads: each warp's time is filled exactly, and a cut keeps the beginning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pipeline_cases import random_workload

from drywarp.errors import UsageError
from drywarp.pipeline import execution as room
from drywarp.pipeline import share_of
from drywarp.pipeline.execution import Execution, execution
from drywarp.pipeline.extrapolate import instructions, simulate
from drywarp.workload.cost import CostedWorkload


def several_blocks(seed: int, in_order: bool) -> CostedWorkload:
    """With one block to a share the slowest type alone is simulated: that has fewer warps than it seems."""
    work = random_workload(seed, in_order)
    return replace(work, blocks=max(work.blocks, 2 * work.sm_count))


def check_lives(done: Execution) -> None:
    """In ticks, warp by warp: waits and issue slots follow one another from launch to the last one's end."""
    for slot, block, warp, start, end in done.launches.tolist():
        rows = np.flatnonzero((done.block == block) & (done.warp == warp))
        assert (done.slot[rows] == slot).all()
        bounds = np.column_stack([done.waited_from[rows], done.issue[rows], done.left[rows]])
        assert (np.diff(bounds, axis=1) >= 0).all()
        assert bounds[:, 0].tolist() == [start, *bounds[:-1, 2].tolist()][: len(rows)]
        assert not len(rows) or bounds[-1, 2] <= end


@pytest.mark.parametrize("in_order", [True, False])
def test_every_warps_time_is_filled(in_order: bool) -> None:
    filled = 0
    for seed in range(150):
        work = several_blocks(seed, in_order)
        share = share_of(work, work.blocks_per_sm)
        done = execution(work, 10**9)
        alone = simulate(work, share)
        assert len(done.issue) == done.issued == instructions(work, share.blocks)
        assert (done.total, done.end, done.blocks) == (alone.total_ticks, alone.total_ticks, done.of), seed
        assert done.mean_warps == alone.mean_occupancy
        assert (np.diff(done.issue) >= 0).all()
        lives = done.launches[:, 4] - done.launches[:, 3]
        assert int(lives.sum()) == alone.warp_ticks
        check_lives(done)
        # An issue slot lasts for what the valve takes, or λ where there is none, at most until the next issue.
        taken = np.array([work.issue_ticks or node.lambda_ticks for node in done.nodes])[done.node]
        assert (done.left - done.issue <= taken).all()
        filled += int((done.left - done.issue == taken)[taken > 0].sum()) if work.issue_ticks else 0
        if work.issue_ticks:
            for q in range(work.partitions):
                assert (np.diff(done.issue[done.slot % work.partitions == q]) >= work.issue_ticks).all()
    assert filled > 500


@pytest.mark.parametrize("in_order", [True, False])
def test_a_cut_keeps_the_beginning(in_order: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "FEWEST_EVENTS", 1)
    cut = 0
    for seed in range(80):
        work = several_blocks(seed, in_order)
        whole = execution(work, 10**9)
        for most in (20, 60):
            done = execution(work, most)
            kept = len(done.issue)
            assert done.issue.tolist() == whole.issue[:kept].tolist()
            assert (whole.issue[kept:] >= done.end).all()
            assert (done.issue < done.end).all() or kept == len(whole.issue)
            assert (done.launches[:, 3] < done.end).all() or kept == len(whole.issue)
            waits = int((done.waited_from < done.issue).sum())
            assert kept + waits <= most
            check_lives(done)
            cut += kept < len(whole.issue)
    assert cut > 50


def test_too_few_events_are_refused() -> None:
    with pytest.raises(UsageError, match="expected 1000 or more"):
        execution(random_workload(1), 999)
