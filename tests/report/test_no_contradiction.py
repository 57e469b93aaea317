"""Texts of one answer do not contradict each other: laws over examples and suite, with data and without."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console

import drywarp
from drywarp.hardware import load_gpu
from drywarp.models.base import UNKNOWN_LIMIT
from drywarp.report.terminal import render_analysis
from drywarp.report.text import json_text

from ..effort import first, some

ROOT = Path(__file__).parents[2]
TUTORIAL = sorted((ROOT / "examples" / "tutorial").glob("*.cu"), key=lambda path: (path.stem != "step3_shared", path))
FILES = sorted([*(ROOT / "examples").glob("*.cu"), *(ROOT / "suite").glob("*.cu")])
MODES = [(path, static) for path in FILES for static in (False, True)]
each = pytest.mark.parametrize(("path", "static"), some(MODES, 13), ids=str)

TOGETHER = 0.03
"""By how much shares of one time may differ where each is rounded, or found by a simulation of its own."""


@cache
def answer(path: Path, static: bool) -> drywarp.Analysis:
    return drywarp.analyze(path, gpu="a100", static=static)


def text_of(found: drywarp.Analysis) -> str:
    console = Console(width=400)
    with console.capture() as captured:
        console.print(render_analysis(found, full=True))
    return captured.get()


@pytest.mark.parametrize(("path", "static"), [*some(MODES, 13), *first([(path, True) for path in TUTORIAL])], ids=str)
def test_an_answer_is_made_of_plain_values(path: Path, static: bool) -> None:
    """NumPy's numbers look like Python's until they are written as JSON."""
    assert json.loads(json_text(answer(path, static).to_dict()))["kernel"] == answer(path, static).kernel


@each
def test_shares_and_times_agree(path: Path, static: bool) -> None:
    """A part that would take a time alone is in use for so long; on the busiest SM longer, as it has more blocks."""
    found = answer(path, static)
    prediction, blocks = found.prediction, math.prod(found.grid)
    sms = load_gpu("a100").device.sm_count
    more = -(-blocks // sms) * sms / blocks
    for name, share in prediction.utilization.items():
        alone = prediction.headroom[name] / prediction.cycles
        assert alone <= min(1.0, share) + TOGETHER, name
        assert 0 <= share <= min(1.0, alone * more + TOGETHER), name


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
    assert not (loads and found.memory.dram_bytes == 0)
    assert "0.0% only" not in text
    if found.resources.spill_bytes is None:
        assert "no spills reported" not in text


@each
def test_a_grid_smaller_than_the_gpu_is_seen(path: Path, static: bool) -> None:
    found = answer(path, static)
    assert f"achieved {found.prediction.achieved_occupancy_warps:.1f}" in text_of(found)
