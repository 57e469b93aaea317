"""Programs that see several devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.effort import first


@pytest.mark.parametrize("count", first([3, 1, 2]))
def test_each_device_has_its_own_memory_constants_and_variables(run: Any, more: Path, count: int) -> None:
    ran = run("devices", options=("--devices", str(count)), started=more)
    assert (ran.status, ran.output) == (0, f"{count} devices, 0 wrong, 1 call\n")
    assert ran.result["devices"] == count
    assert [one["device"] for one in ran.result["launches"]] == list(range(count))
    between = {one["kind"]: one["bytes"] for one in ran.result["copies"]}.get("copy between devices", 0)
    assert between == 4000 * (count - 1)
    assert (f"on {count} x NVIDIA A100" in ran.report) == (count > 1)


def test_kernels_reach_other_devices_as_far_as_that_is_allowed(run: Any, more: Path) -> None:
    ran = run("peers", options=("--devices", "2"), started=more)
    said = ran.output.split()
    assert said[:3] == [
        "cudaErrorInvalidResourceHandle",
        "cudaErrorPeerAccessNotEnabled",
        "cudaErrorPeerAccessAlreadyEnabled",
    ]
    value = 0
    for k in range(3):
        value += k * k ^ value
    assert said[3:] == [str(value), "cudaErrorIllegalAddress", "cudaSuccess"], (
        "a fault ends the work of its device alone"
    )


def test_devices_work_at_the_same_time(run: Any, more: Path) -> None:
    one, three = (run("threads", options=("--devices", str(count)), started=more).result for count in (1, 3))
    assert one["time_s"] <= three["time_s"] < 1.5 * one["time_s"]
    assert len(three["launches"]) == 3


def test_a_number_of_devices_is_positive(run: Any, more: Path) -> None:
    assert run("devices", options=("--devices", "0"), started=more).status == 2
