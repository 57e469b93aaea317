"""The beginning of an execution profile, and what each of its instructions waited for."""

from __future__ import annotations

import numpy as np
import pytest
from pipeline_cases import meeting_workload, random_workload
from pipeline_kernels import example

from drywarp.pipeline import REASONS, Share, share_of
from drywarp.pipeline.blocks import awaited
from drywarp.pipeline.simulate import first_issues, run_share
from drywarp.workload.cost import CostedWorkload

SEEDS = range(60)


@pytest.mark.parametrize("in_order", [True, False])
def test_it_is_what_the_whole_profile_begins_with(in_order: bool) -> None:
    for seed in SEEDS:
        work = random_workload(seed, in_order)
        share = share_of(work, work.blocks_per_sm)
        if share.blocks == 1:
            continue
        whole = run_share(work, share, profile=True).profile
        assert whole is not None
        opens = np.array([work.paths[p].nodes[n].barrier for p, n in whole.paths_nodes])
        for most in (1, 7, len(whole.table) // 2, len(whole.table), len(whole.table) + 5):
            begun = first_issues(work, share, max(1, most)).table
            count = min(max(1, most), len(whole.table))
            assert len(begun) == count, f"seed {seed}"
            same = (begun == whole.table[:count]).all(axis=1)
            # A barrier that had not opened yet is the one exception.
            assert (same | opens[begun[:, 2]]).all(), f"seed {seed}"


def test_the_longest_type_of_a_lone_block_is_shown() -> None:
    for seed in SEEDS:
        work = random_workload(seed)
        share = Share(1, 1, 1)
        lengths = [sum(work.paths[p].length for p in kind.paths) for kind in work.block_types]
        assert len(first_issues(work, share, 10_000).table) == max(lengths)


def dependences(work: CostedWorkload) -> None:
    profile = run_share(work, share_of(work, work.blocks_per_sm), profile=True).profile
    assert profile is not None
    producers = awaited(work, profile).tolist()
    nodes = [work.paths[p].nodes[n] for p, n in profile.paths_nodes]
    rows = profile.table.tolist()
    for row, producer in zip(rows, producers, strict=True):
        reason = REASONS[row[6]]
        if producer < 0:
            assert reason not in ("long_scoreboard", "short_scoreboard", "membar", "gmma")
            continue
        source, by = rows[producer], nodes[rows[producer][2]]
        assert source[1] == row[1], "of the same block"
        if source[0] != row[0]:
            assert by.barrier
        came = [source[5], source[4] + by.read_ticks]
        assert min(came) <= row[4]
        if reason in ("long_scoreboard", "short_scoreboard", "membar", "gmma"):
            assert row[4] in came, "nothing else held it"


@pytest.mark.parametrize("in_order", [True, False])
def test_what_was_waited_for_came_when_the_instruction_issued(in_order: bool) -> None:
    for seed in SEEDS:
        dependences(random_workload(seed, in_order))


def test_warps_that_await_some_others() -> None:
    for seed in range(20):
        dependences(meeting_workload(seed))


@pytest.mark.parametrize("in_order", [True, False])
def test_arrows_of_the_papers_example(in_order: bool) -> None:
    """Fig. 8: c3 waits for c2, m1 for c3, c4 for m1, m2 for c4."""
    work = example(in_order)
    profile = first_issues(work, Share(1, 1, 1), 100)
    assert (profile.column("issue") / 240).tolist() == [0, 1, 5, 9, 15, 19]
    assert awaited(work, profile).tolist() == [-1, -1, 1, 2, 3, 4]
