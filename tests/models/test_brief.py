"""A brief answer of the simulation is the long one without what was not asked for."""

from __future__ import annotations

import pytest
from tests.pipeline.pipeline_cases import lasting_workload, random_workload

from drywarp.models.base import get_model


@pytest.mark.parametrize("make", [random_workload, lasting_workload])
def test_the_same_numbers(make: object) -> None:
    for seed in range(12):
        workload = make(seed)  # type: ignore[operator]
        long, brief = (get_model("pipeline", brief=how).predict(workload, ()) for how in (False, True))
        assert long.stalls
        assert long.headroom
        assert (brief.stalls, brief.node_stalls, brief.headroom) == ({}, {}, {})
        for name in ("cycles", "time_s", "limiter", "utilization", "notes", "achieved_occupancy_warps", "curve"):
            assert getattr(long, name) == getattr(brief, name), name


def test_a_model_that_is_brief_anyway() -> None:
    workload = random_workload(1)
    assert get_model("volkov", brief=True).predict(workload, ()) == get_model("volkov").predict(workload, ())
