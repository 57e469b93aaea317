"""Launches that are not predicted themselves: what stands for them, and how far it may be off."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drywarp.analysis.result import Analysis
from drywarp.program.alike import Alike, Estimates
from tests.report.html_answers import answer

BLOCKS, STEPS = 100, 1000.0


def taking(time_s: float) -> Analysis:
    found = answer()
    return replace(found, predictions={found.model: replace(found.prediction, time_s=time_s)})


def predicted(alike: Alike, count: int) -> list[int]:
    """Which of this many launches are predicted, each for as many seconds as its number."""
    found = []
    for number in range(1, count + 1):
        if alike.due() or alike.estimate(BLOCKS, STEPS) is None:
            alike.predicted(BLOCKS, STEPS, taking(number))
            found.append(number)
    return found


def test_fewer_and_fewer_launches_are_predicted() -> None:
    assert predicted(Alike(8), 40) == [*range(1, 9), 10, 13, 17, 22, 28, 35]
    assert predicted(Alike(2), 9) == [1, 2, 3, 4, 5, 7, 9]
    assert predicted(Alike(0), 12) == [*range(1, 13)]
    assert len(predicted(Alike(8), 20_000)) < 50


def test_the_latest_launch_that_did_as_much_stands_for_another() -> None:
    alike = Alike(2)
    for steps, time in ((1000, 10), (1000, 20), (1200, 6)):
        alike.predicted(BLOCKS, steps, taking(time))
    assert [alike.estimate(BLOCKS, steps).time_s for steps in (1000, 900, 1240)] == [20, 18, 6.2]  # type: ignore[union-attr]
    # Without a count, the latest of launches with as many blocks stands for it.
    without = alike.estimate(BLOCKS * 11 // 10)
    assert without
    assert (without.time_s, without.instructions) == (pytest.approx(6.6), pytest.approx(1320))
    assert without.waves == pytest.approx(1.1 * answer().waves)
    assert alike.estimate(BLOCKS, 1600) is alike.estimate(BLOCKS, 700) is alike.estimate(2 * BLOCKS, 1000) is None


def test_the_band_is_that_of_the_predictions_around() -> None:
    alike = Alike(1)
    for time in (50, 9, 10, 11):
        alike.predicted(BLOCKS, STEPS, taking(time))
    found = alike.estimate(BLOCKS, STEPS)
    assert found
    assert (found.time_s, found.band()) == (11, (9, 11))
    for steps, time in ((STEPS, 12), (3 * STEPS, 1), (STEPS, 14), (STEPS, 13), (STEPS, 99)):
        alike.predicted(BLOCKS, steps, taking(time))
    assert found.band() == (9, 14)


def test_what_was_not_computed_takes_the_mean_of_the_later_half() -> None:
    alike = Alike(8)
    assert alike.mean("extents", BLOCKS) is None
    alike.predicted(BLOCKS, STEPS, taking(10))
    for time in (100, 100, 10, 20):
        alike.computed("extents", time, STEPS)
    found = alike.mean("extents", BLOCKS)
    assert found
    assert (found.time_s, found.instructions, found.band()) == (15, STEPS, (10, 20))
    assert alike.mean("extents", BLOCKS) is found
    assert alike.mean("other extents", BLOCKS) is None


def test_launches_on_other_allocations_are_held_apart_while_they_are_few() -> None:
    found = Estimates(8)
    sets = [found.of("kernel", (number, 1)) for number in range(20)]
    assert len({id(one) for one in sets}) == 9
    assert found.of("kernel", (3, 1)) is sets[3]
    assert found.of("kernel", (8, 1)) is sets[19]
    assert found.of("other kernel", (3, 1)) is not sets[3]


def test_a_program_with_estimates_says_how_many_and_how_good(run: Any, more: Path) -> None:
    each, ran = (run("growing", options=options, started=more) for options in (("--predictions", "0"), ()))
    (exact,), (kernel,) = each.result["kernels"], ran.result["kernels"]
    assert (exact["estimated"], exact["predictions"]) == (0, 40)
    assert exact["time_low_s"] == exact["time_high_s"] == exact["time_s"]
    assert "estimated" not in each.report
    assert (kernel["computed"], kernel["predictions"], kernel["estimated"]) == (40, 14, 26)
    assert kernel["time_s"] == pytest.approx(exact["time_s"], rel=0.01)
    assert kernel["time_low_s"] <= exact["time_s"] <= kernel["time_high_s"]
    assert float(ran.output.split()[0]) == pytest.approx(float(each.output.split()[0]), rel=0.01)
    assert sum(one["estimated"] for one in ran.result["launches"]) == 26
    assert "estimated by the time per warp instruction: 26 of 40 launches of spin" in ran.report
    assert "from 14 predictions, which differ by a factor of 1." in ran.report


def test_what_exceeds_the_total_takes_the_mean_and_says_so(run: Any, more: Path) -> None:
    """Each launch counts as 50,000 warp instructions more than it runs."""
    whole = run("growing", started=more).result
    steps = [one["warp_instructions"] + 50_000 for one in whole["launches"]]
    ran = run("growing", options=("--emulate-total", str(sum(steps[:20]))), started=more)
    (kernel,) = ran.result["kernels"]
    assert (kernel["computed"], kernel["estimated"], kernel["predictions"]) == (20, 29, 11)
    assert kernel["time_s"] < whole["kernels"][0]["time_s"] < 1.5 * kernel["time_s"]
    # The first of them writes over results, the others over what is missing.
    assert [one["count"] for one in ran.result["launches"]] == [1] * 21 + [19]
    headline = next(line for line in ran.report.splitlines() if "predicted" in line)
    assert re.search(r"predicted \(\S+ .s to \S+ .s, as some launches are estimated\)", headline)


def test_launches_on_new_allocations_take_the_mean_of_all_before(run: Any, more: Path) -> None:
    whole = run("growing elsewhere", started=more).result
    assert whole["kernels"][0]["computed"] == 40
    steps = [one["warp_instructions"] + 50_000 for one in whole["launches"]]
    ran = run("growing elsewhere", options=("--emulate-total", str(sum(steps[:5]))), started=more)
    (kernel,) = ran.result["kernels"]
    assert (kernel["computed"], kernel["estimated"], kernel["predictions"]) == (5, 35, 5)
    times = [one["time_s"] for one in whole["launches"][2:5]]
    assert ran.result["launches"][-1]["time_s"] == pytest.approx(sum(times) / 3)
