"""Launches that are computed only if the host reads what they write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.effort import first
from tests.program.conftest import Ran


def by_kernel(ran: Ran, what: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in ran.result["launches"]:
        name = one["kernel"].partition("(")[0]
        found[name] = found.get(name, 0) + one["count"] * one[what]
    return found


def test_only_what_is_read_is_computed_and_it_is_right(run: Any, more: Path) -> None:
    whole, ran = (run("read", options=options, started=more) for options in ((), ("--sampled",)))
    assert (ran.status, ran.output) == (0, "1 of 1\n")
    assert by_kernel(ran, "computed") == {"spin": 0, "copy_flagged": 2, "add": 1}
    assert by_kernel(ran, "sampled") == {"spin": 2, "copy_flagged": 0, "add": 0}
    assert by_kernel(whole, "sampled") == {"spin": 0, "copy_flagged": 0, "add": 0}
    assert ran.result["time_s"] == pytest.approx(whole.result["time_s"], rel=1e-9)
    assert "3 of 5 launches were emulated in full" in ran.report
    assert "sampled: 2 launches, whose results the host did not read (spin" in ran.report
    assert not ran.result["findings"]


def test_a_kernel_whose_time_depends_on_results_gets_them(run: Any, more: Path) -> None:
    """Nothing is read: what decides on the time of another kernel is computed, and nothing else."""
    ran = run("unread", options=("--sampled",), started=more)
    assert (ran.status, ran.output) == (0, "0 of 1\n")
    assert sum(by_kernel(ran, "sampled").values()) == 5
    assert ran.result["time_s"] == pytest.approx(run("unread", started=more).result["time_s"], rel=1e-9)


def test_what_the_host_sees_unasked_is_computed(run: Any, more: Path) -> None:
    ran = run("seen", options=("--sampled",), started=more)
    assert ran.output == "said 8\n5 6\n"
    assert by_kernel(ran, "computed") == {"add": 2, "spin": 0, "talk": 1}


@pytest.mark.parametrize(
    "which", first(["results", "chain", "streams", "graph", "textures", "registered", "passed on"])
)
def test_programs_get_the_same_results(run: Any, which: str) -> None:
    whole, ran = (run(which, options=options) for options in ((), ("--sampled",)))
    assert (ran.status, ran.output) == (whole.status, whole.output)


def test_faults_are_looked_for_in_what_is_computed(run: Any) -> None:
    ran = run("results", options=("--sampled", "--check"))
    assert ran.status == 2
    assert "drywarp: --sampled cannot be combined with --check" in ran.report
