"""A lone warp's time from the tables of the whole workload is that of a workload made for it."""

from __future__ import annotations

import pytest
from tests.pipeline.pipeline_cases import lasting_workload, meeting_workload, random_workload

from drywarp.errors import UsageError
from drywarp.models.volkov import latency_bound, lone_ticks_whole, lone_ticks_within
from drywarp.pipeline.extrapolate import LAUNCH_BUDGET
from drywarp.workload.cost import CostedWorkload


def all_sets(workload: CostedWorkload) -> list[tuple[int, ...]]:
    count = len(workload.paths)
    kinds = {tuple(sorted(set(kind.paths))) for kind in workload.block_types}
    return sorted({*((path,) for path in range(count)), *kinds})


@pytest.mark.parametrize("make", [random_workload, lasting_workload])
def test_paths_alone(make: object) -> None:
    loops = several = 0
    for seed in range(60):
        workload: CostedWorkload = make(seed)  # type: ignore[operator]
        for paths in all_sets(workload):
            assert lone_ticks_whole(workload, paths) == lone_ticks_within(workload, paths, LAUNCH_BUDGET)
            several += len(paths) > 1
            loops += any(not isinstance(item, int) for path in paths for item in workload.paths[path].program)
    assert several > 10
    assert loops > 10


def test_warps_that_meet() -> None:
    met = 0
    for seed in range(40):
        workload = meeting_workload(seed)
        for kind in workload.block_types:
            paths = tuple(sorted(set(kind.paths)))
            try:
                expected = lone_ticks_within(workload, paths, LAUNCH_BUDGET)
            except UsageError:  # a signal is missing where one warp stands for several
                continue
            assert lone_ticks_whole(workload, paths) == expected
            met += 1
    assert met > 5


def test_it_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = random_workload(3)
    first = latency_bound(workload)
    monkeypatch.setattr("drywarp.models.volkov.lone_ticks_whole", None)
    assert latency_bound(workload) == first == latency_bound(workload, LAUNCH_BUDGET // 2)
