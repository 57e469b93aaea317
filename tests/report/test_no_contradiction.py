"""Texts of one answer do not contradict each other: laws over examples and suite, with data and without."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console

import drywarp
from drywarp.errors import DrywarpError
from drywarp.models.base import UNKNOWN_LIMIT
from drywarp.report.terminal import render_analysis

from ..effort import some

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "examples").glob("*.cu"), *(ROOT / "suite").glob("*.cu")])
MODES = [(path, static) for path in FILES for static in (False, True)]
each = pytest.mark.parametrize(("path", "static"), some(MODES, 5), ids=str)

TOGETHER = 0.03
"""By how much shares of one time may differ where each is rounded, or found by a simulation of its own."""


@cache
def answer(path: Path, static: bool) -> drywarp.Analysis:
    try:
        return drywarp.analyze(path, gpu="a100", static=static)
    except DrywarpError as error:
        pytest.skip(str(error))


def text_of(found: drywarp.Analysis) -> str:
    console = Console(width=400)
    with console.capture() as captured:
        console.print(render_analysis(found))
    return captured.get()


@each
def test_what_is_in_use_takes_as_long_alone(path: Path, static: bool) -> None:
    """A part that would take a time alone is in use for so long at least; no part takes longer than the kernel."""
    prediction = answer(path, static).prediction
    for name, share in prediction.utilization.items():
        alone = prediction.headroom[name] / prediction.cycles
        assert alone <= min(1.0, share) + TOGETHER, name
        assert 0 <= share <= 1


@each
def test_the_verdict_follows_from_the_figures(path: Path, static: bool) -> None:
    found = answer(path, static)
    busiest = max(found.prediction.utilization.items(), key=lambda item: item[1])
    if found.limiter == UNKNOWN_LIMIT:
        assert found.bounds is not None or found.doubts
    elif found.limiter == "latency":
        assert busiest[1] < 0.8
    else:
        assert found.prediction.utilization[found.limiter] == busiest[1] >= 0.8
    for percent in re.findall(r"(\d+)% of the time", found.verdict):
        assert 0 <= int(percent) <= 100


@each
def test_parts_add_up(path: Path, static: bool) -> None:
    found = answer(path, static)
    memory, prediction = found.memory, found.prediction
    assert memory.dram_bytes == pytest.approx(memory.dram_read_bytes + memory.dram_write_bytes, abs=1)
    assert sum(found.by_class.values()) == pytest.approx(found.warp_instructions)
    assert sum(line.share for line in found.lines) == pytest.approx(1, abs=1e-6)
    active = prediction.achieved_occupancy_warps
    assert active is not None
    assert active <= found.occupancy.warps_per_sm * (1 + 1e-9)
    assert sum(prediction.stalls.values()) / prediction.cycles == pytest.approx(active, rel=TOGETHER)
    rate = memory.l2_hit_rate
    assert rate is None or 0 <= rate <= 1


@each
def test_what_was_accessed_is_not_called_untouched(path: Path, static: bool) -> None:
    found = answer(path, static)
    text = text_of(found)
    shared = any(count and name.startswith("shared_") for name, count in found.by_class.items())
    assert ("no shared accesses" in text) <= (not shared)
    loads = found.by_class.get("global_load", 0) > 0
    assert not (loads and found.memory.global_load_sectors == 0 and found.static is None)
    assert "0.0% only" not in text
    if found.resources.spill_bytes is None:
        assert "no spills reported" not in text


@each
def test_a_grid_smaller_than_the_gpu_is_seen(path: Path, static: bool) -> None:
    found = answer(path, static)
    assert f"achieved {found.prediction.achieved_occupancy_warps:.1f}" in text_of(found)
