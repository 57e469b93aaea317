"""The compiled loops against a plain time-stepping simulator, tick for tick."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pipeline_cases import meeting_workload, queueing_workload, random_workload, reissuing_workload
from pipeline_classify import classify
from pipeline_reference import Reference
from tests.effort import first

from drywarp.pipeline import REASONS, Share, share_of
from drywarp.pipeline.simulate import Program, run_share
from drywarp.workload.cost import CostedWorkload

SEEDS = 100
"""Random workloads of one test."""


def check(workload: CostedWorkload, share: Share, seed: int, accounts: bool = True) -> None:
    reference = Reference(workload, share)
    total = reference.run()
    # Few ticks and few notes on the subsystems, so that all their cases occur.
    cycle = seed % 4
    result = run_share(workload, share, profile=True, cycle=cycle, spells=1 + seed % 3)
    assert result.profile is not None
    first = [0]
    for path in workload.paths:
        first.append(first[-1] + len(path.nodes))
    rows = [
        [row[0], row[1], result.profile.paths_nodes[row[2]][1], row[3], row[4]] for row in result.profile.table.tolist()
    ]
    assert rows == reference.rows, f"seed {seed}"
    assert result.total_ticks == total, f"seed {seed}"
    assert result.tail_ticks == (total - reference.drained if reference.drained is not None else 0), f"seed {seed}"
    completions = {
        (warp.block, warp.slot, position): done
        for warps in reference.blocks.values()
        for warp in warps
        for position, done in warp.done_at.items()
    }
    for row in result.profile.table.tolist():
        assert row[5] == completions[row[1], row[0], row[3]], f"seed {seed}"
    account = {
        (*result.nodes[row], REASONS[column]): int(result.stall_ticks[row, column])
        for row, column in zip(*result.stall_ticks.nonzero(), strict=True)
    }
    if accounts:
        assert account == classify(reference, cycle), f"seed {seed}"
    assert sum(account.values()) == result.warp_ticks, f"seed {seed}"
    assert max(*result.busy_ticks, result.issue_busy_ticks) <= result.total_ticks, f"seed {seed}"


@pytest.mark.parametrize("chunk", first(range(20), 2))
def test_in_order_equals_the_reference(chunk: int) -> None:
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        workload = random_workload(seed)
        check(workload, share_of(workload, workload.blocks_per_sm), seed)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("chunk", first(range(8)))
def test_dual_issues_and_reissues_equal_the_reference(chunk: int, in_order: bool) -> None:
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        workload = reissuing_workload(seed, in_order)
        check(workload, share_of(workload, workload.blocks_per_sm), seed, accounts=False)


@pytest.mark.parametrize("seed", first(range(24), 8))
def test_many_warps_equal_the_reference(seed: int) -> None:
    """63 to 66 warps in a partition: the core has a bit for each of 64, and another search for more."""
    workload = random_workload(seed)
    count = (21, 22, 32, 33)[seed % 4]
    kinds = tuple(replace(kind, paths=(kind.paths * count)[:count]) for kind in workload.block_types)
    many = replace(workload, partitions=1, warps_per_block=count, block_types=kinds)
    resident = 3 if count < 30 else 2
    check(many, Share(resident, resident + 1, resident), seed)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("chunk", first(range(10)))
def test_queues_of_subsystems_equal_the_reference(chunk: int, in_order: bool) -> None:
    """Transactions that visit subsystems which instructions issue to, their own included."""
    queued = 0
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        workload = queueing_workload(seed, in_order)
        queued += any(node.queued for path in workload.paths for node in path.nodes)
        check(workload, share_of(workload, workload.blocks_per_sm), seed, accounts=False)
    assert queued > SEEDS // 4


@pytest.mark.parametrize("chunk", first(range(10)))
def test_warps_that_wait_for_some_others_equal_the_reference(chunk: int) -> None:
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        workload = meeting_workload(seed)
        check(workload, share_of(workload, workload.blocks_per_sm), seed)


@pytest.mark.parametrize("chunk", first(range(10)))
def test_dataflow_equals_the_reference(chunk: int) -> None:
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        workload = random_workload(seed, in_order=False)
        check(workload, share_of(workload, workload.blocks_per_sm), seed)


def test_a_type_of_block_alone_is_a_workload_with_that_type_only() -> None:
    """Types name their phases independently of each other, and signal each as often as their own warps do."""
    tried = 0
    for seed in range(200):
        work = meeting_workload(seed)
        program = Program(work)
        for kind, one in enumerate(work.block_types if len(work.block_types) > 1 else ()):
            only = program.of_kind(kind)
            alone = run_share(replace(work, block_types=(one,)), Share(1, 1, 1))
            found = run_share(only.workload, Share(1, 1, 1), program=only)
            assert (found.total_ticks, found.issued, found.warp_ticks) == (
                alone.total_ticks,
                alone.issued,
                alone.warp_ticks,
            )
            tried += work.synchronises
    assert tried > 50
