"""The bar chart of active warps over time, drawn by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rich.text import Text

from drywarp.report.advice import render_trace


def drawn(cycles: list[float], active: list[float], peak: int) -> list[str]:
    trace = SimpleNamespace(cycles=cycles, active=active, peak=peak, mean=6.0, imbalance=0.25)
    analysis: Any = SimpleNamespace(prediction=SimpleNamespace(occupancy_trace=trace))
    heading, chart, _ = render_trace(analysis)
    assert isinstance(heading, Text)
    assert isinstance(chart, Text)
    assert heading.plain == "Active warps over time: 6.0 on average, 25% imbalance over partitions"
    return chart.plain.splitlines()


def test_a_column_shows_the_middle_of_its_stretch() -> None:
    """Eight warps for half of 120 cycles, then four: sixty columns of two cycles, eight rows of a warp."""
    rows = drawn([0, 60, 120], [8, 4], 8)
    assert rows[0] == "    8 " + 30 * "█"
    assert rows[3] == "    5 " + 30 * "█"
    assert rows[4] == "    4 " + 60 * "█"
    assert rows[7] == "    1 " + 60 * "█"
    assert rows[8].startswith("    0 └")
    assert rows[9].endswith("120 cycles")


def test_parts_of_a_row_are_eighths() -> None:
    """Of 16 warps at most a row stands for two: 13 are six rows and a half."""
    rows = drawn([10, 70], [13], 16)
    assert rows[0].strip() == "16"
    assert rows[1] == "   14 " + 60 * "▄"
    assert rows[2] == "   12 " + 60 * "█"
