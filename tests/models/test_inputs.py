"""What the models are given: counts, parallelism, intervals, and the work-flow graph."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.models.inputs import inputs_of, intervals
from drywarp.models.inputs_parts import groups
from drywarp.models.pipeline_papers import as_one
from drywarp.workload.cost import TICKS_PER_CYCLE, CostedNode, CostedPath, Item, Level, Repeat, Subsystem

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))
from pipeline_kernels import example, instruction_mix, node, workload
from tests.effort import examples


@st.composite
def paths(draw: st.DrawFn) -> CostedPath:
    """A few nodes with slots, in a program with nested loops."""
    nodes = tuple(
        CostedNode(
            number,
            draw(st.sampled_from(["comp", "mem"])),
            0,
            TICKS_PER_CYCLE,
            draw(st.integers(0, 20)) * TICKS_PER_CYCLE,
            stall_ticks=draw(st.integers(0, 4)) * TICKS_PER_CYCLE,
            waits=tuple(draw(st.lists(st.integers(0, 3), max_size=2))),
            sets=draw(st.integers(-1, 3)),
        )
        for number in range(draw(st.integers(1, 6)))
    )
    leaf = st.integers(0, len(nodes) - 1)
    tree = st.recursive(
        leaf, lambda inner: st.builds(Repeat, st.integers(0, 7), st.lists(inner, max_size=4).map(tuple))
    )
    program: list[Item] = draw(st.lists(tree, min_size=1, max_size=5))
    return CostedPath(nodes, (0, *program), 4)


@given(paths(), st.booleans())
@settings(max_examples=examples(400, 4), deadline=None)
def test_intervals_of_loops_are_those_of_the_unrolled_program(path: CostedPath, memory_only: bool) -> None:
    memory = [one.class_ == "mem" for one in path.nodes]
    kept = intervals(path, memory, memory_only)
    unrolled = intervals(replace(path, program=tuple(path.expand())), memory, memory_only)
    for found in (kept, unrolled):
        assert sum(i.instructions * i.times for i in found) == path.length
        assert all(i.stall >= 0 and i.times > 0 for i in found)

    def stalls(found: tuple[object, ...]) -> float:
        return sum(i.stall * i.times for i in found)  # type: ignore[attr-defined]

    assert stalls(kept) == stalls(unrolled)
    assert sum(i.times for i in kept) == sum(i.times for i in unrolled)


@given(paths())
@settings(max_examples=examples(200, 4), deadline=None)
def test_counts_graph_and_parallelism_agree(path: CostedPath) -> None:
    found = inputs_of(replace(workload(path), kinds={"mem": "memory"}))
    assert found.instructions == path.length
    assert sum(one.instructions * one.times for one in found.graph) == path.length
    assert sum(one.times for one in found.graph if one.kind == "memory") == found.memory.count
    for one in found.graph:
        assert all(found.graph[need].kind == "memory" for need in one.needs)
        assert 1 <= one.ilp <= one.instructions
    assert found.ilp >= 1
    assert found.mlp >= 1
    assert found.coalesced == found.memory.count


def test_the_example() -> None:
    found = inputs_of(replace(example(in_order=False), kinds={"mem": "memory"}))
    assert [(one.kind, one.instructions, one.needs) for one in found.graph] == [
        ("computation", 3, ()),
        ("memory", 1, ()),
        ("computation", 1, (1,)),
        ("memory", 1, ()),
    ]
    assert found.graph[0].ilp == 1.5
    assert [(i.instructions, i.stall) for i in found.memory_intervals] == [(4, 5), (2, 5)]
    assert found.ilp == 6 / 5


def test_what_waits_for_memory_begins_a_node_of_its_own() -> None:
    """A load, an addition that does not need it, one that does, and one that needs that: three nodes."""
    load = replace(node(1, 2, 6, (), 0), class_="global_load")
    free, needs, after = node(0, 1, 4, (), 1), node(0, 1, 4, (0,), 2), node(0, 1, 4, (2,), 3)
    found = inputs_of(workload(CostedPath((load, free, needs, after), (0, 1, 2, 3), 4)))
    assert [(one.kind, one.instructions, one.needs) for one in found.graph] == [
        ("memory", 1, ()),
        ("computation", 1, ()),
        ("computation", 2, (0,)),
    ]


def test_memory_is_as_slow_as_the_slowest_of_what_it_visits() -> None:
    """A load of λ 2 at the LSU whose sectors take 10 cycles of the L2 and 7 of DRAM; additions visit neither."""
    levels = (Level(2, 10 * TICKS_PER_CYCLE, 10 * TICKS_PER_CYCLE), Level(3, 7 * TICKS_PER_CYCLE, 7 * TICKS_PER_CYCLE))
    load = replace(node(1, 2, 60, (), 0), class_="global_load", levels=levels)
    work = workload(CostedPath((load, node(0, 1, 4, (0,), 1)), (0, 1), 2))
    names = (*work.subsystems, Subsystem("l2", "sm", upstream=False), Subsystem("dram", "sm", upstream=False))
    found = inputs_of(replace(work, subsystems=names))
    assert (found.memory.lambda_, found.computation.lambda_) == (10, 1)


def test_an_iteration_may_need_the_one_before() -> None:
    load = replace(node(1, 2, 6, (1,), 0), class_="global_load")
    add = node(0, 1, 4, (0, 1), 1)
    found = inputs_of(workload(CostedPath((add, load), (Repeat(5, (0, 1)),), 2)))
    assert [(one.kind, one.times, one.needs) for one in found.graph] == [("computation", 5, (1,)), ("memory", 5, ())]


def test_groups_that_issue_together() -> None:
    chain_of_two_pairs: list[set[int]] = [set(), set(), {0}, {1}]
    assert groups(chain_of_two_pairs, in_order=True) == 2
    crossed: list[set[int]] = [set(), {0}, set(), {2}]
    assert groups(crossed, in_order=True) == 3
    assert groups(crossed, in_order=False) == 2


def test_def_use_chains_tell_more_than_slots() -> None:
    work = workload(CostedPath(tuple(replace(node(0, 1, 4), instruction=i) for i in range(3)), (0, 1, 2), 0))
    assert inputs_of(work).ilp == 3
    assert inputs_of(replace(work, producers=((), (0,), (1,)))).ilp == 1


def test_loads_before_their_first_use_overlap() -> None:
    loads = [replace(node(1, 2, 6, (), slot), class_="global_load") for slot in (0, 1)]
    use = node(0, 1, 4, (0, 1), 2)
    both = inputs_of(workload(CostedPath((*loads, use), (0, 1, 2), 3)))
    assert both.mlp == 1.5  # two requests from the first load to the use, one from the second
    single = inputs_of(workload(CostedPath((loads[0], replace(use, waits=(0,)), loads[1]), (0, 1, 2), 3)))
    assert single.mlp == 1


def test_an_sm_as_one_has_the_same_throughputs() -> None:
    work = workload(instruction_mix(4, 10, same_subsystem=False), partitions=4, issue_limit=1)
    path = work.paths[0]
    work = replace(work, paths=(replace(path, nodes=tuple(replace(n, held_ticks=960) for n in path.nodes)),))
    one = as_one(work)
    assert {n.held_ticks for n in one.paths[0].nodes} == {240}
    assert (one.partitions, one.issue_ticks, one.policy) == (1, 60, "loose_round_robin")
    before, after = inputs_of(work), inputs_of(one)
    assert after.busy == before.busy
    assert after.issue_rate == before.issue_rate == 4


@given(st.integers(1, 12), st.integers(1, 12))
def test_computing_subsystems_work_side_by_side(first: int, second: int) -> None:
    """λ_comp is that of the busiest subsystem, no less than the issue limit; the mix adds all of them up."""
    nodes = tuple(
        replace(node(subsystem, λ, 4), class_="comp") for subsystem, λ in ((0, first), (1, second), (1, second))
    )
    apart = inputs_of(replace(workload(CostedPath(nodes, (0, 1, 2), 0)), kinds={"comp": "computation"}))
    assert apart.computation.lambda_ * 3 == pytest.approx(max(first, 2 * second))
    assert apart.mixed_cycles == pytest.approx(first + 2 * second)
    limited = replace(workload(CostedPath(nodes, (0, 1, 2), 0)), issue_ticks=8 * TICKS_PER_CYCLE)
    assert inputs_of(limited).computation.lambda_ * 3 == pytest.approx(max(24, first, 2 * second))
