"""What must hold exactly of the simulation, whatever the workload."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pipeline_cases import lasting_workload, queueing_workload, random_workload
from pipeline_kernels import COMP, MEM, chain, instruction_mix, node, workload
from pipeline_kernels import example as paper_example
from tests.effort import examples

from drywarp.errors import UsageError
from drywarp.models.pipeline import utilization
from drywarp.models.throughput import demand, share_cycles
from drywarp.models.volkov import latency_bound
from drywarp.pipeline import POLICIES, Share, SimulationResult, share_of
from drywarp.pipeline.extrapolate import instructions
from drywarp.pipeline.simulate import run_share
from drywarp.pipeline.state import Steady
from drywarp.workload.cost import (
    TICKS_PER_CYCLE,
    BlockType,
    CostedNode,
    CostedPath,
    CostedWorkload,
    Level,
    Repeat,
    Subsystem,
)

MANY = settings(max_examples=examples(1500, 4), deadline=None)


def run(work: CostedWorkload, blocks: int, resident: int | None = None, profile: bool = False) -> SimulationResult:
    return run_share(work, Share(resident or blocks, blocks, blocks), profile)


@pytest.mark.parametrize("in_order", [True, False])
def test_one_warp_of_the_example_takes_25_cycles(in_order: bool) -> None:
    result = run(paper_example(in_order), 1, profile=True)
    assert result.cycles == 25
    assert result.profile is not None
    assert (result.profile.column("issue") / 240).tolist() == [0, 1, 5, 9, 15, 19]
    assert result.busy_ticks == (4 * 240, 4 * 240)


@MANY
@given(
    st.integers(1, 70), st.integers(1, 30), st.integers(1, 500), st.integers(0, 3000), st.integers(0, 500),
    st.booleans(),
)  # fmt: skip
def test_dependent_instructions_under_loose_round_robin(
    warps: int, length: int, lambda_: int, more: int, issue: int, in_order: bool
) -> None:
    latency = lambda_ + more
    work = replace(workload(chain(length, lambda_, latency), in_order=in_order), issue_ticks=min(issue, lambda_))
    if warps * lambda_ <= latency:
        expected = length * latency + (warps - 1) * lambda_
    else:
        expected = latency + (length * warps - 1) * lambda_
    assert run(work, warps).total_ticks == expected


@MANY
@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 500), st.integers(0, 3000), st.sampled_from([*POLICIES]))
def test_the_second_branch_bounds_all_policies(warps: int, length: int, lambda_: int, more: int, policy: str) -> None:
    work = workload(chain(length, lambda_, lambda_ + more), policy=policy)
    assert run(work, warps).total_ticks >= lambda_ + more + (length * warps - 1) * lambda_


def without_throughput(work: CostedWorkload) -> CostedWorkload:
    """Dependences alone: out of order, a delay may change the order and with it shorten what follows.

    That goes for every resource that instructions share: λ, places for outstanding accesses, and the banks of the
    register file. A warp alone may so end later than beside others; only its dependences hold in any order.
    """
    free = {"lambda_ticks": 0, "stall_ticks": 0, "register_ticks": (0, 0)}
    paths = tuple(replace(path, nodes=tuple(replace(its, **free) for its in path.nodes)) for path in work.paths)
    return replace(work, paths=paths, subsystems=tuple(replace(s, outstanding=0) for s in work.subsystems))


@MANY
@example(25741, False)  # a bank conflict puts off one instruction, and the order that follows ends one tick earlier
@example(20107, False)
@given(st.integers(0, 10**9), st.booleans())
def test_no_run_beats_its_bounds(seed: int, in_order: bool) -> None:
    work = random_workload(seed, in_order)
    work = replace(work, block_types=work.block_types[:1])
    result = run_share(work, share_of(work, work.blocks_per_sm), profile=True)
    assert result.profile is not None
    by_resource = defaultdict(list)
    per_partition: dict[int, int] = defaultdict(int)
    for warp, _, index, _, issue, completion, _ in result.profile.table.tolist():
        path, place = result.profile.paths_nodes[index]
        its = work.paths[path].nodes[place]
        partition = warp % work.partitions
        per_partition[partition] += 1
        inside = work.subsystems[its.subsystem].scope == "partition"
        by_resource[its.subsystem, partition if inside else -1].append((its.lambda_ticks, completion - issue))
    for issues in by_resource.values():
        assert result.total_ticks >= sum(cost for cost, _ in issues[:-1]) + issues[-1][1]
    for count in per_partition.values():
        assert result.total_ticks >= (count - 1) * work.issue_ticks
    alone = latency_bound(replace(work if in_order else without_throughput(work), launch_ticks=0)) * 240
    assert result.warp_ends[: work.warps_per_block].max() >= alone - 1e-6


@MANY
@example(31436, False, random_workload)
@given(st.integers(0, 10**9), st.booleans(), st.sampled_from([random_workload, lasting_workload, queueing_workload]))
def test_no_simulation_exceeds_its_roof(
    seed: int, in_order: bool, generate: Callable[[int, bool], CostedWorkload]
) -> None:
    """Each subsystem's Σλ fits into the time, but for the λ of what ran last: its Λ may be shorter than that."""
    work = generate(seed, in_order)
    share = share_of(work, work.blocks_per_sm)
    if instructions(work, share.blocks) > 20_000:
        return
    result = run_share(work, share, stalls=False, steady=Steady(least_gain=1, long_loop=3))
    assert all(0 <= busy <= 1 for busy in utilization(work, result).values())
    # The mean block of the roof is that of the blocks which this SM gets only if they are all of one type.
    # And a visit without `queues` is served at once, however much is before it.
    work = replace(work, block_types=work.block_types[:1], paths=tuple(_queueing(path) for path in work.paths))
    result = run_share(work, share, stalls=False)
    unlimited = tuple(replace(s, outstanding=0) for s in work.subsystems)
    needs = demand(replace(work, subsystems=unlimited, paths=tuple(map(_fastest, work.paths))))
    longest = max((visit for path in work.paths for its in path.nodes for visit in _lambdas(its)), default=0)
    last = max(longest, work.issue_ticks) / TICKS_PER_CYCLE
    assert max(share_cycles(work, needs, share).values(), default=0.0) <= result.cycles + last + 1e-9


def _queueing(path: CostedPath) -> CostedPath:
    return _with_levels(path, lambda level: replace(level, queues=True))


def _fastest(path: CostedPath) -> CostedPath:
    """Each visit with the λ of the tail where that is shorter: a block of the tail may have that for some visits."""
    return _with_levels(path, lambda its: replace(its, tail_ticks=min(its.lambda_ticks, its.tail_ticks)))


def _with_levels(path: CostedPath, changed: Callable[[Level], Level]) -> CostedPath:
    return replace(path, nodes=tuple(replace(n, levels=tuple(map(changed, n.levels))) for n in path.nodes))


def _lambdas(its: CostedNode) -> list[int]:
    return [its.lambda_ticks, *(level.lambda_ticks for level in its.levels)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("in_order", [True, False])
def test_queued_instructions_queue(in_order: bool, policy: str) -> None:
    """They issue at once, and their subsystem takes one after the other: 64 warps of one access each, λ 500."""
    access = replace(node(MEM, 0, 100, (), 0), levels=(Level(MEM, 500 * 240, 500 * 240),))
    after = node(COMP, 1, 4, (0,), 1)
    work = replace(workload(CostedPath((access, after), (0, 1), 2), policy=policy), in_order=in_order)
    result = run(work, 64, profile=True)
    assert result.profile is not None
    table = result.profile.table
    assert (table[table[:, 2] == 0][:, 4] == 0).all()
    assert result.cycles == 63 * 500 + 100 + 4
    assert result.busy_ticks[MEM] == (63 * 500 + 104) * 240  # the last one's λ is not over
    # One that issues to the same subsystem waits for the queue to drain.
    plain = replace(work, paths=(CostedPath((access, replace(after, subsystem=MEM, waits=())), (0, 1), 2),))
    assert run(plain, 1).cycles == 504


@settings(max_examples=examples(300, 4), deadline=None)
@given(st.integers(0, 10**9), st.booleans())
def test_kept_loops_equal_unrolled_ones_and_runs_repeat(seed: int, in_order: bool) -> None:
    work = random_workload(seed, in_order)
    unrolled = replace(work, paths=tuple(replace(path, program=tuple(path.expand())) for path in work.paths))
    share = share_of(work, work.blocks_per_sm)
    tables = [run_share(w, share, profile=True).profile for w in (work, unrolled, work)]
    assert all(np.array_equal(tables[0].table, other.table) for other in tables[1:] if tables[0] and other)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("beta", [1, 2, 3, 4, 6, 8, 16])
def test_instruction_mix(beta: int, policy: str) -> None:
    """Analysis Eqs. 43-45 at λ1 = 1, λ2 = 4, IL = 1 bound the simulation, which comes near.

    Eq. 44 needs β/λ2, as Fig. 12 shows, where 1/λ2 is printed. Round robin reaches Eqs. 43 and 44; with
    the issue limit an instruction of type 2 may find the valve taken just when its subsystem is free.
    """
    cases = (
        (True, 0.0, beta / (beta * 1 + 4), 0.95, 0.99),
        (False, 0.0, min(1.0, beta / 4), 0.90, 0.99),
        (False, 1.0, min(1.0, beta / 4, beta / (beta + 1)), 0.82, 0.88),
    )
    for same, limit, expected, least, least_in_turn in cases:
        iterations = 200
        result = run(workload(instruction_mix(beta, iterations, same), issue_limit=limit, policy=policy), 64)
        share = 64 * iterations * beta / result.cycles / expected
        assert share <= 1.001
        assert share >= (least_in_turn if policy == "loose_round_robin" else least)


def test_barrier_joins_the_warps_of_a_block() -> None:
    """Volkov's Listing 3.3: the late warp arrives at 546, both go on Λ_bar = 34 later."""
    branch = node(COMP, 0, 0)
    late = CostedPath(
        (replace(branch, stall_ticks=28 * 240), node(COMP, 0, 512, (), 0), node(COMP, 0, 6, (0,), 0),
         node(COMP, 0, 34, (0,), barrier=True), node(COMP, 0, 6)),
        (0, 1, 2, 3, 4), 1,
    )  # fmt: skip
    early = CostedPath(
        (replace(branch, stall_ticks=32 * 240), node(COMP, 0, 34, barrier=True), node(COMP, 0, 6)), (0, 1, 2), 1
    )
    work = workload(late, warps_per_block=2)
    work = replace(work, paths=(late, early), block_types=(replace(work.block_types[0], paths=(0, 1)),))
    result = run(work, 1, profile=True)
    assert result.profile is not None
    issue = (result.profile.column("issue") / 240).tolist()
    warp = result.profile.column("warp").tolist()
    assert [t for t, w in zip(issue, warp, strict=True) if w == 0] == [0, 28, 540, 546, 580]
    assert [t for t, w in zip(issue, warp, strict=True) if w == 1] == [0, 32, 580]
    assert latency_bound(work) == 586


def test_ended_warps_do_not_hold_up_a_barrier() -> None:
    waits = CostedPath((node(COMP, 1, 10, barrier=True), node(COMP, 1, 4)), (0, 1), 0)
    ends = CostedPath((node(COMP, 1, 50),), (0,), 0)
    work = workload(waits, warps_per_block=2)
    work = replace(work, paths=(waits, ends), block_types=(replace(work.block_types[0], paths=(0, 1)),))
    # The other warp issues at 1 and ends at 51: the barrier opens then, 10 more to go on, 4 to finish.
    assert run(work, 1).cycles == 65


def test_blocks_are_replaced_in_the_order_in_which_room_is_made() -> None:
    long, short = chain(10, 240, 2400), chain(1, 240, 2400)
    work = workload(long, launch_cycles=5)
    kinds = (replace(work.block_types[0], paths=(0,)), replace(work.block_types[0], paths=(1,)))
    work = replace(work, paths=(long, short), block_types=kinds)
    # Blocks: long, short, long, short. Room after the short one at 11 + 5, for the long third block.
    result = run(work, 4, resident=2)
    assert (result.warp_ends / 240).tolist() == [100, 11, 116, 115]


def test_levels_queue_without_holding_the_warp_and_are_quicker_in_the_tail() -> None:
    load = replace(node(COMP, 1, 100), levels=(Level(1, 10 * 240, 2 * 240),))
    path = CostedPath((load,), (Repeat(4, (0,)),), 0)
    work = replace(workload(path), subsystems=(Subsystem("lsu", "sm"), Subsystem("dram", "sm", upstream=False)))
    assert run_share(work, Share(1, 1, 1)).cycles == 130  # issues at 0..3, starts at dram at 0, 10, 20, 30
    assert run_share(work, Share(1, 1, 0)).cycles == 106  # all in the tail: starts at 0, 2, 4, 6
    assert run_share(work, Share(1, 2, 1)).cycles == 130 + 106
    store = replace(load, async_result=True)
    stores = replace(work, paths=(replace(path, nodes=(store,)),))
    assert run_share(stores, Share(1, 1, 1)).cycles == 30


def test_outstanding_instructions_are_limited() -> None:
    path = CostedPath((node(COMP, 1, 100),), (Repeat(6, (0,)),), 0)
    work = workload(path)
    work = replace(work, subsystems=(Subsystem("lsu", "sm", outstanding=2), work.subsystems[1]))
    assert run(work, 1).cycles == 301  # pairs at 0 and 1, 100 and 101, 200 and 201


def test_share_of_the_grid() -> None:
    work = replace(workload(chain(1, 1, 1)), runs=0, sm_count=10)
    assert share_of(replace(work, blocks=43), 4) == Share(4, 5, 4)
    assert share_of(replace(work, blocks=40), 4) == Share(4, 4, 4)
    assert share_of(replace(work, blocks=3), 4) == Share(4, 1, 0)
    assert share_of(replace(work, runs=3), 4) == Share(4, 12, 12)


def test_the_longest_block_is_not_lost_where_it_is_rare() -> None:
    short, long = chain(2, 1, 10), chain(50, 1, 10)
    kinds = (BlockType((0,), 990.0), BlockType((1,), 10.0))
    work = replace(workload(short), paths=(short, long), block_types=kinds, runs=0, blocks=1000, sm_count=100)
    grid = share_of(work, 2)
    # Ten of a hundred SMs get such a block; the grid ends with these.
    assert run_share(work, grid).total_ticks >= run_share(replace(work, paths=(long, long)), Share(1, 1, 1)).total_ticks
    # One that no block is, and one that is shorter, change nothing.
    alone = run_share(replace(work, block_types=kinds[:1]), grid).total_ticks
    none = replace(work, block_types=(kinds[0], BlockType((1,), 0.5)))
    assert run_share(none, grid).total_ticks == alone
    shorter = replace(work, paths=(short, chain(1, 1, 10)))
    assert run_share(shorter, grid).total_ticks == alone


def test_contradictions_are_refused() -> None:
    work = workload(chain(1, 1, 1))
    with pytest.raises(UsageError, match="unknown scheduler policy 'best'"):
        run(replace(work, policy="best"), 1)
    with pytest.raises(UsageError, match="slot"):
        run(replace(work, paths=(replace(work.paths[0], slots=0),)), 1)
    # A slot too many at one place alone: what a node waits for, what it sets with its result or with its operands read.
    one = work.paths[0].nodes[0]
    for wrong in (replace(one, waits=(1,)), replace(one, waits=(-1,)), replace(one, sets=1), replace(one, sets_read=1)):
        with pytest.raises(UsageError, match=r"a dependence slot outside 0\.\.0"):
            run(replace(work, paths=(replace(work.paths[0], nodes=(wrong,)),)), 1)
    self_visit = replace(one, levels=(Level(COMP, 240, 240),))
    with pytest.raises(UsageError, match="expected no λ of its own"):
        run(replace(work, paths=(replace(work.paths[0], nodes=(self_visit,)),)), 1)
    with pytest.raises(UsageError, match="shorten the loops"):
        run(replace(work, paths=(chain(10_000_000, 1, 1),), in_order=False), 1)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("reads", "cycles"),
    [
        (((1, 1),), 1.0),
        (((2, 1),), 2.0),  # the even bank gives one register a cycle
        (((3, 0),), 3.0),
        (((2, 1), (1, 2)), 1.5),  # what one leaves of a bank's time the other takes
        (((3, 0), (0, 3)), 1.5),
        (((2, 0), (0, 0), (0, 0)), 1.0),
    ],
)
def test_banks_of_the_register_file(reads: tuple[tuple[int, int], ...], cycles: float, policy: str) -> None:
    """Huerta et al. 2025, §5.3: a bank gives a register a cycle, and operands are read within three cycles."""
    nodes = tuple(
        replace(node(COMP, 0, 0), register_ticks=(even * TICKS_PER_CYCLE, odd * TICKS_PER_CYCLE)) for even, odd in reads
    )
    iterations = 600 // len(nodes)
    path = CostedPath(nodes, (Repeat(iterations, tuple(range(len(nodes)))),), 1)
    work = replace(workload(path, issue_limit=1, policy=policy), read_window_ticks=3 * TICKS_PER_CYCLE)
    result = run(work, 1)
    assert result.cycles == pytest.approx(iterations * len(nodes) * cycles, abs=6)


def test_banks_beside_a_rival() -> None:
    """Products keep their sums in the register file: while one is computed, the banks give others half as much."""

    def cycles(rival: int, share: float, product: int) -> float:
        product_node = replace(
            node(COMP, 0, 0), levels=(Level(MEM, product * TICKS_PER_CYCLE, product * TICKS_PER_CYCLE),)
        )
        reads = replace(node(COMP, 0, 0), register_ticks=(TICKS_PER_CYCLE, TICKS_PER_CYCLE))
        path = CostedPath((product_node, reads), (0, Repeat(600, (1,))), 1)
        made = replace(workload(path, issue_limit=1), read_window_ticks=3 * TICKS_PER_CYCLE)
        scopes = tuple(replace(one, scope="partition") for one in made.subsystems)
        return run(replace(made, subsystems=scopes, bank_rival=rival, beside_rival=share), 1).cycles

    assert cycles(-1, 1.0, 200) == pytest.approx(600, abs=6)
    assert cycles(MEM, 1.0, 200) == pytest.approx(700, abs=6)  # 100 of them in the first 200 cycles
    assert cycles(MEM, 0.5, 300) == pytest.approx(700, abs=6)
    assert cycles(MEM, 1.0, 2000) == pytest.approx(1200, abs=6)
