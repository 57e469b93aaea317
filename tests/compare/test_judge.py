"""Two answers held against each other, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from drywarp.analysis.compare.judge import judge
from drywarp.analysis.compare.result import (
    Assumptions,
    Comparison,
    CountChange,
    Instructions,
    Launch,
    Line,
    Occupancy,
    Predicted,
    Side,
)
from drywarp.errors import UsageError


def line(number: int, share: float, text: str) -> Line:
    return Line("k.cu", number, 1000 * share, share, "wait", text)


def side(time_s: float, *lines: Line, **others: Any) -> Side:
    values: dict[str, Any] = {
        "kernel": "k", "source_file": "k.cu", "arch": "sm_80", "gpu": "a100", "gpu_title": "A100", "gpu_hash": "h",
        "assumptions": Assumptions(1e9, "cold", "oldest_first"), "launch": Launch((8, 1, 1), (128, 1, 1)),
        "occupancy": Occupancy(64, 16, 1.0, "warps"),
        "instructions": Instructions(1000.0, {"fp32": 600.0, "int": 400.0}),
        "resources": {"registers": 32, "spill_bytes": None}, "memory": {"dram_bytes": 4096.0, "l2_method": "affine"},
        "prediction": Predicted(time_s, time_s * 1e9, "pipeline", "dram", ""), "lines": lines,
        "versions": {"drywarp": "1"}, "notes": (),
    }  # fmt: skip
    return Side(**{**values, **others})


@pytest.mark.parametrize(
    ("new", "allowed", "regressed"),
    [
        (1.05, 0.04, True),
        (1.05, 0.06, False),
        (1.05, None, False),
        (0.5, 0.0, False),
        (1.0, 0.0, False),
        (2.0, 0.5, True),
    ],
)
def test_slower_than_allowed_is_a_regression(new: float, allowed: float | None, regressed: bool) -> None:
    found = judge(side(1.0), side(new), allowed)
    assert (found.regressed, found.ratio, found.change) == (regressed, new, new - 1)
    assert Comparison((found,), allowed, {}).regressed == regressed
    # One GPU of several is enough.
    assert Comparison((judge(side(1.0), side(1.0), allowed), found), allowed, {}).regressed == regressed


def test_lines_have_their_share_of_the_time() -> None:
    # 2 s, of which a quarter, a half and a quarter; then 1 s, of which a half and a half.
    old = side(2.0, line(1, 0.25, "a = x[i];"), line(2, 0.5, "b = a * a + 1;"), line(3, 0.25, "y[i]  = b;"))
    new = side(1.0, line(1, 0.5, "a = x[i];"), line(4, 0.5, "z = sqrtf(17.0f - hypot);"))
    found = judge(old, new, None)
    assert [(c.match, c.old_s, c.new_s, c.change_s) for c in found.lines] == [
        ("removed", 1.0, 0.0, -1.0),
        ("removed", 0.5, 0.0, -0.5),
        ("added", 0.0, 0.5, 0.5),
    ]  # the first line takes half a second before and after
    edited = judge(side(1.0, line(1, 1.0, "b = a * a + 1;")), side(1.0, line(1, 0.5, "b = a * a + 2;")), None)
    spaced = judge(side(1.0, line(1, 1.0, "b = a;")), side(1.0, line(9, 0.5, "b  =  a;")), None)
    assert [c.match for c in (*edited.lines, *spaced.lines)] == ["edited", "same"]


def test_counts_are_compared_by_name() -> None:
    old, new = side(1.0), side(1.0, instructions=Instructions(1500.0, {"fp32": 600.0, "sfu": 900.0}))
    counts = {c.name: (c.old, c.new, c.change) for c in judge(old, new, None).counts}
    assert counts == {
        "resources.registers": (32, 32, 0),
        "instructions.warp_instructions": (1000, 1500, 0.5),
        "instructions.by_class.fp32": (600, 600, 0),
        "instructions.by_class.int": (400, None, None),
        "instructions.by_class.sfu": (None, 900, None),
        "memory.dram_bytes": (4096, 4096, 0),
    }
    # Metrics that one side alone has are left out.
    metric = {"smsp__inst_executed.sum": 7.0}
    for one, other in ((metric, {}), ({}, metric)):
        names = {c.name for c in judge(side(1.0, counts=one), side(1.0, counts=other), None).counts}
        assert "smsp__inst_executed.sum" not in names
    both = judge(side(1.0, counts=metric), side(1.0, counts={"smsp__inst_executed.sum": 14.0}), None)
    assert {c.name: c.change for c in both.counts}["smsp__inst_executed.sum"] == 1
    assert [CountChange("n", *values).change for values in ((0, 0), (0, 1), (4, 1), (4, 0))] == [0, None, -0.75, -1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gpu": "h100"}, "old is for a100, new for h100"),
        ({"assumptions": Assumptions(2e9, "cold", "oldest_first")}, "clock_hz"),
        ({"assumptions": Assumptions(1e9, "warm", "oldest_first")}, "l2 cold, new warm"),
        ({"assumptions": Assumptions(1e9, "cold", "loose_round_robin")}, "scheduler"),
        ({"prediction": Predicted(1.0, 1e9, "volkov", "dram", "")}, "predicted by pipeline, new by volkov"),
    ],
)
def test_what_cannot_be_compared_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        judge(side(1.0), side(1.0, **change), None)


def test_what_makes_a_comparison_weaker_is_said() -> None:
    assert judge(side(1.0), side(1.0), None).notes == ()
    new = side(
        1.0, gpu_hash="i", versions={"drywarp": "2", "nvrtc": "13"}, launch=Launch((4, 1, 1), (256, 1, 1))
    )  # fmt: skip
    notes = judge(side(1.0), new, None).notes
    assert len(notes) == 4
    assert "GPU file of a100" in notes[0]
    assert notes[1].startswith("drywarp 1 for old, 2 for new")
    assert notes[2].startswith("nvrtc none for old, 13 for new")
    assert notes[3] == "launches differ: grid 8,1,1 block 128,1,1 for old, grid 4,1,1 block 256,1,1 for new"
