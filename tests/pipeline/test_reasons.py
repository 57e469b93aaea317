"""What the execution profile gives as the reason that an instruction issued no earlier."""

from __future__ import annotations

from dataclasses import replace

from pipeline_kernels import COMP, example, node, workload

from drywarp.pipeline import REASONS, Share, simulate
from drywarp.pipeline.reasons import await_reason
from drywarp.workload.cost import CostedPath, CostedWorkload


def reasons(work: CostedWorkload, warps: int = 1) -> list[tuple[int, str]]:
    """(warp, reason) in the order of issue."""
    profile = simulate(work, Share(warps, warps, warps), profile=True).profile
    assert profile is not None
    codes = profile.column("reason").tolist()
    return [(warp, REASONS[code]) for warp, code in zip(profile.column("warp").tolist(), codes, strict=True)]


def test_the_example() -> None:
    expected = ["selected", "math_pipe_throttle", "wait", "wait", "long_scoreboard", "wait"]
    for in_order in (True, False):
        assert [reason for _, reason in reasons(example(in_order))] == expected


def test_lost_arbitration_and_stall_counts() -> None:
    path = CostedPath((replace(node(COMP, 0, 4), stall_ticks=720),), (0, 0), 0)
    work = workload(path, issue_limit=1)
    assert reasons(work, 2) == [(0, "selected"), (1, "not_selected"), (0, "wait"), (1, "wait")]


def test_memory_pipes_and_barriers() -> None:
    load = replace(node(COMP, 4, 20, (), 0), class_="global_load")
    shared = replace(node(COMP, 4, 20, (), 1), class_="shared_load")
    path = CostedPath(
        (load, shared, node(COMP, 1, 2, (1,)), node(COMP, 1, 30, barrier=True), node(COMP, 1, 4)), (0, 0, 1, 2, 3, 4), 2
    )
    assert [reason for _, reason in reasons(workload(path))] == [
        "selected",
        "lg_throttle",
        "mio_throttle",
        "short_scoreboard",
        "math_pipe_throttle",
        "barrier",
    ]


def test_waiting_for_some_warps_is_named_after_what_they_meet_at() -> None:
    """A named barrier is a barrier; one in shared memory uses the memory input/output queue."""
    assert await_reason("barrier", False) == "barrier"
    assert await_reason("mbarrier", False) == "short_scoreboard"
    assert await_reason("wgmma", False) == "gmma"
