"""An answer whose memory traffic is known between extremes says so, and names no limit that one of them contradicts."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from rich.console import Console

import drywarp
from drywarp.analysis import emulation_cache as whole_blocks
from drywarp.models.base import UNKNOWN_LIMIT
from drywarp.report.html.page import html_page
from drywarp.report.terminal import render_analysis

GATHER = """
extern "C" __global__ void k(const int* where, const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 8; ++j) sum += x[where[(i * 8 + j) % n]];
  out[i] = sum;
}"""


def analyzed(folder: Path) -> drywarp.Analysis:
    source = folder / "gather.cu"
    source.write_text(GATHER)
    return drywarp.analyze(
        source, gpu="a100", grid=2048, block=256, detail=0,
        args={"where": "i32[65536]:random", "x": "f32[65536]", "out": "f32[524288]", "n": 65536},
    )  # fmt: skip


@pytest.fixture
def nothing_followed(monkeypatch: pytest.MonkeyPatch, own_results: Path) -> None:
    monkeypatch.setattr(whole_blocks, "MOST_ACCESSES", 0)
    monkeypatch.setattr(whole_blocks, "LANE_STEPS", 0)


@pytest.mark.usefixtures("nothing_followed")
def test_extremes_are_told_and_spanned(tmp_path: Path) -> None:
    answer = analyzed(tmp_path)
    assert answer.memory.l2_method == "bounded"
    bounds, band = answer.bounds, answer.band
    assert bounds is not None
    assert band is not None
    assert bounds.least_read_bytes < answer.memory.dram_read_bytes < bounds.most_read_bytes
    assert bounds.fastest_s <= answer.time_s <= bounds.slowest_s
    assert band.low_at_clock_s <= bounds.fastest_s
    assert bounds.slowest_s <= band.high_at_clock_s
    found = answer.to_dict()
    assert found["bounds"]["time_s"] == [bounds.fastest_s, bounds.slowest_s]
    assert "the L2 could not be simulated in full: DRAM reads" in html_page(answer)
    text = render_text(answer)
    assert "the L2 could not be simulated in full: DRAM reads" in text
    if len(bounds.limiters) > 1:
        assert answer.limiter == UNKNOWN_LIMIT
        assert "the limit is unknown" in text
    else:
        assert bounds.limiters == (answer.limiter,)


def test_what_was_followed_lies_between_the_extremes(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    exact = analyzed(tmp_path)
    assert exact.bounds is None
    request.getfixturevalue("nothing_followed")
    bounds = analyzed(tmp_path).bounds
    assert bounds is not None
    assert bounds.least_read_bytes <= exact.memory.dram_read_bytes <= bounds.most_read_bytes
    # Blocks that start one after the other may meet less with slower memory: up to 2 % of the time.
    assert bounds.fastest_s <= exact.time_s * 1.02
    assert exact.time_s <= bounds.slowest_s * 1.02
    assert math.isfinite(bounds.slowest_s)


def render_text(answer: drywarp.Analysis) -> str:
    console = Console(width=300)
    with console.capture() as captured:
        console.print(render_analysis(answer))
    return captured.get()
