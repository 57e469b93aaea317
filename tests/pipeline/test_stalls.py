"""Where the warps' time goes: one hand-made case for each reason, and what must add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_cases import random_workload
from pipeline_kernels import COMP, chain, example, node, workload
from tests.effort import examples

from drywarp.kernel.isa.nvidia.opcodes import CLASSES
from drywarp.pipeline import REASONS, Share, SimulationResult, share_of, simulate
from drywarp.pipeline.extrapolate import extrapolate
from drywarp.pipeline.reasons import busy_reason, dependent_reason
from drywarp.pipeline.shorten import apportion
from drywarp.pipeline.simulate import run_share
from drywarp.workload.cost import TICKS_PER_CYCLE, CostedNode, CostedPath, CostedWorkload, Level, Subsystem


def path_of(*nodes: CostedNode) -> CostedPath:
    """A straight program; each node's `instruction` is its place."""
    numbered = tuple(replace(node, instruction=place) for place, node in enumerate(nodes))
    return CostedPath(numbered, tuple(range(len(nodes))), 2)


def run(work: CostedWorkload, warps: int = 1) -> SimulationResult:
    result = run_share(work, Share(warps, warps, warps))
    assert result.stall_ticks.sum() == result.warp_ticks
    return result


def node_stalls(*nodes: CostedNode, warps: int = 1) -> dict[int, dict[str, float]]:
    work = workload(path_of(*nodes))
    return run(work, warps).node_stalls(work)


@pytest.mark.parametrize("in_order", [True, False])
def test_the_example(in_order: bool) -> None:
    """Issues at 0, 1, 5, 9, 15 and 19, the end at 25."""
    work = example(in_order)
    nodes = tuple(replace(its, instruction=place) for place, its in enumerate(work.paths[0].nodes))
    work = replace(work, paths=(replace(work.paths[0], nodes=nodes),))
    result = run(work)
    assert result.stalls() == {"selected": 6, "wait": 9, "long_scoreboard": 5, "drain": 5}
    assert result.node_stalls(work) == {
        0: {"selected": 1},
        1: {"selected": 1},
        2: {"selected": 1, "wait": 3},
        3: {"selected": 1, "wait": 3},
        4: {"selected": 1, "long_scoreboard": 5},
        5: {"selected": 1, "wait": 3, "drain": 5},
    }


def test_selected_is_cut_off_by_the_next_issue() -> None:
    assert node_stalls(node(COMP, 0.25, 0), node(COMP, 0.5, 0)) == {0: {"selected": 0.25}}
    assert node_stalls(node(COMP, 0.25, 0), node(COMP, 0.5, 0.5))[1] == {"selected": 0.5}


def test_wait_for_the_own_stall_count() -> None:
    first = replace(node(COMP, 1, 4), stall_ticks=5 * TICKS_PER_CYCLE)
    assert node_stalls(first, node(COMP, 1, 4))[1] == {"selected": 1, "wait": 4, "drain": 3}


@pytest.mark.parametrize(
    ("class_", "reason"),
    [("global_load", "long_scoreboard"), ("shared_load", "short_scoreboard"), ("fence", "membar"), ("fp32", "wait")],
)
def test_waiting_for_a_producer(class_: str, reason: str) -> None:
    producer = replace(node(COMP, 1, 20, (), 0), class_=class_)
    assert node_stalls(producer, node(COMP, 1, 1, (0,)))[1] == {"selected": 1, reason: 19}


def test_of_several_producers_the_latest_names_the_reason() -> None:
    load = replace(node(COMP, 1, 30, (), 0), class_="global_load")
    shared = replace(node(COMP, 1, 20, (), 1), class_="shared_load")
    assert node_stalls(load, shared, node(COMP, 1, 1, (1, 0)))[2] == {"selected": 1, "long_scoreboard": 28}
    assert node_stalls(replace(load, latency_ticks=5 * TICKS_PER_CYCLE), shared, node(COMP, 1, 1, (1, 0)))[2] == {
        "selected": 1,
        "short_scoreboard": 19,
    }


def test_queueing_at_a_further_level_is_part_of_the_scoreboard() -> None:
    load = replace(node(COMP, 1, 10, (), 0), class_="global_load", levels=(Level(1, 40 * 240, 40 * 240),))
    work = workload(path_of(load, load, node(COMP, 1, 1, (0,))))
    work = replace(work, subsystems=(Subsystem("lsu", "sm"), Subsystem("dram", "sm", upstream=False)))
    # The second load starts at DRAM when the first is through, at 40, and is done at 50.
    assert run(work).node_stalls(work)[2] == {"selected": 1, "long_scoreboard": 48}


@pytest.mark.parametrize(
    ("class_", "reason"),
    [
        ("fp32", "math_pipe_throttle"),
        ("global_load", "lg_throttle"),
        ("shared_load", "mio_throttle"),
        ("texture", "tex_throttle"),
    ],
)
def test_a_busy_subsystem(class_: str, reason: str) -> None:
    its = replace(node(COMP, 6, 6), class_=class_)
    assert node_stalls(its, its)[1] == {"selected": 1, reason: 5, "drain": 5}
    assert node_stalls(its, warps=2)[0] == {"selected": 2, reason: 6, "drain": 10}


def test_a_limit_of_outstanding_instructions_is_a_throttle() -> None:
    load = replace(node(COMP, 1, 100), class_="global_load")
    work = workload(path_of(load, load))
    work = replace(work, subsystems=(Subsystem("lsu", "sm", outstanding=1), work.subsystems[1]))
    assert run(work).node_stalls(work)[1] == {"selected": 1, "lg_throttle": 99, "drain": 99}


def test_the_valve_and_lost_arbitration() -> None:
    work = workload(path_of(node(COMP, 0, 4)), issue_limit=0.5)
    assert run(work, 2).stalls() == {"selected": 2, "not_selected": 2, "drain": 6}


def test_a_subsystem_that_was_free_in_between_is_no_throttle() -> None:
    """The second warp waits for `comp` from 0 to 4: busy from 0 to 1 and from 3 to 4, free from 1 to 3."""
    greedy = path_of(
        node(COMP, 1, 1), node(1, 1, 1), node(1, 1, 1), node(COMP, 1, 1), node(1, 1, 1)
    )  # issues at 0, 1, 2, 3 and 4, and takes the valve each time
    other = path_of(node(COMP, 1, 1))
    work = workload(greedy, warps_per_block=2, issue_limit=1, policy="greedy_then_oldest")
    work = replace(work, paths=(greedy, other), block_types=(replace(work.block_types[0], paths=(0, 1)),))
    result = run_share(work, Share(1, 1, 1))
    row = dict(zip(REASONS, (result.stall_ticks[5] / TICKS_PER_CYCLE).tolist(), strict=True))
    assert {name: cycles for name, cycles in row.items() if cycles} == {
        "selected": 1,
        "math_pipe_throttle": 2,
        "not_selected": 3,
    }


def test_the_barrier_and_one_that_is_last() -> None:
    late = path_of(node(COMP, 0, 30, (), 0), node(COMP, 0, 8, (0,), barrier=True), node(COMP, 0, 2))
    early = path_of(node(COMP, 0, 8, barrier=True))
    work = workload(late, warps_per_block=2)
    work = replace(work, paths=(late, early), block_types=(replace(work.block_types[0], paths=(0, 1)),))
    # The late warp arrives at 30, both go on at 38.
    result = run(work)
    stalls = {
        place: {name: int(t) // 240 for name, t in zip(REASONS, row, strict=True) if t}
        for place, row in zip(result.nodes, result.stall_ticks, strict=True)
    }
    assert stalls == {
        (0, 0): {"selected": 1},
        (0, 1): {"selected": 1, "wait": 29},
        (0, 2): {"selected": 1, "barrier": 7, "drain": 1},
        (1, 0): {"selected": 1, "barrier": 37},
    }


@settings(max_examples=examples(1000), deadline=None)
@given(st.integers(0, 10**9), st.booleans(), st.integers(0, 300), st.integers(1, 5))
def test_additivity(seed: int, in_order: bool, cycle: int, spells: int) -> None:
    work = random_workload(seed, in_order)
    share = share_of(work, work.blocks_per_sm)
    result = run_share(work, share, cycle=cycle, spells=spells)
    starts = np.repeat(result.block_starts, work.warps_per_block)
    assert result.stall_ticks.sum() == result.warp_ticks == (result.warp_ends - starts).sum()
    assert (result.stall_ticks >= 0).all()
    # How many notes are kept changes nothing, and without the account all else is the same.
    assert np.array_equal(result.stall_ticks, run_share(work, share, cycle=cycle).stall_ticks)
    without = run_share(work, share, stalls=False)
    assert (without.total_ticks, without.warp_ticks) == (result.total_ticks, result.warp_ticks)
    assert without.stall_ticks.shape[0] == 0


def test_extrapolated_stalls_add_up_and_scale() -> None:
    work = workload(chain(10, 240, 960))
    exact = simulate(work, Share(2, 1001, 1001))
    result = extrapolate(work, Share(2, 1001, 1001), budget=100)
    assert result.extrapolated
    assert result.stall_ticks.sum() == result.warp_ticks
    assert result.warp_ticks == pytest.approx(exact.warp_ticks, rel=1e-2)
    assert result.stalls() == pytest.approx(exact.stalls(), rel=2e-2)


def test_apportioning_is_exact() -> None:
    assert apportion(np.array([[1.0, 1.0], [1.0, -2.0]]), 10).tolist() == [[4, 3], [3, 0]]
    assert apportion(np.zeros((2, 2)), 10).sum() == 0
    assert apportion(np.array([2.0**60, 3.0]), 2**60 + 3).sum() == 2**60 + 3


def test_every_class_has_its_reasons() -> None:
    """By exception: all classes that are not named here are arithmetic of fixed latency."""
    l1tex = ("long_scoreboard", "lg_throttle")
    mio = ("short_scoreboard", "mio_throttle")
    expected = dict.fromkeys(CLASSES, ("wait", "math_pipe_throttle"))
    expected |= dict.fromkeys(("global_load", "global_store", "global_atomic", "local_load", "local_store"), l1tex)
    expected |= dict.fromkeys(("shared_load", "shared_store", "shared_atomic", "shuffle", "sfu", "convert"), mio)
    expected |= dict.fromkeys(("reduce", "special_register", "constant_load", "bit", "barrier", "mbarrier"), mio)
    expected |= dict.fromkeys(("tensor_load", "tensor_store"), mio)
    expected |= {"async_copy": l1tex, "bulk_copy": l1tex, "wgmma": ("gmma", "math_pipe_throttle")}
    expected |= {"texture": ("long_scoreboard", "tex_throttle")}
    expected |= {"fence": ("membar", "lg_throttle"), "fp64": ("short_scoreboard", "math_pipe_throttle")}
    assert {name: (dependent_reason(name, False), busy_reason(name)) for name in CLASSES} == expected
