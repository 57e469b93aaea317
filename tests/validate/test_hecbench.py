"""The benchmark over HeCBench's launches: what is stated is whole, and bands are counted as they should be."""

from __future__ import annotations

import json
import math
import tomllib

import pytest
from benchmarks.hecbench import LAUNCHES, compared, summary, values

from drywarp.analysis.uncertainty.uncertainty import uncertainty

STATED = tomllib.loads(LAUNCHES.read_text(encoding="utf-8"))["launch"]


def test_launches_are_of_different_programs_in_order() -> None:
    positions = [entry["position"] for entry in STATED]
    assert positions == sorted(set(positions))
    assert len({entry["file"].split("/")[0] for entry in STATED}) == len(STATED) >= 60
    assert set(positions) <= set(range(1, 186))
    assert min(sum(p % 2 for p in positions), sum(1 - p % 2 for p in positions)) > 60


def test_expressions_are_worked_out(tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = values({"n": 3, "x": "f32[3]:random", "y": "=np.arange(n) if False else np.arange(3)"}, tmp_path)
    assert (found["n"], found["x"], found["y"].tolist()) == (3, "f32[3]:random", [0, 1, 2])


def row(position: int, off: float, limiter: str = "lsu", **parts: float) -> dict[str, str]:
    """A kernel that took `off` times as long as predicted, with these parts besides the model's of 1.5."""
    others = {name: [1 / value, value] for name, value in parts.items()}
    end = math.exp(math.hypot(math.log(1.5), *(math.log(value) for value in parts.values())))
    return {
        **dict.fromkeys(("error", "dram_ratio"), ""),
        "position": str(position),
        "predicted_us": "100",
        "measured_us": str(100 * off),
        "limiter": limiter,
        "low_us": str(100 / end),
        "high_us": str(100 * end),
        "doubtful": "0",
        "parts": json.dumps({"model": [1 / 1.5, 1.5], **others}),
        "operations_ratio": "1.25",
    }


@pytest.mark.parametrize("limiter", ["lsu", "dram"])
def test_a_band_is_judged_with_the_residual_of_its_kind(limiter: str) -> None:
    """Whatever residual the rows were predicted with: what lies beyond the present one's is outside."""
    model = uncertainty().model
    own = (model.stream if limiter == "dram" else model.rest).value
    inside, outside = row(1, own * 0.999, limiter), row(3, own * 1.001, limiter)
    assert "1 of 2 inside" in "\n".join(summary([inside, outside]))
    wider = row(3, own * 1.001, limiter, compiler=1.1)
    assert "2 of 2 inside" in "\n".join(summary([inside, wider]))
    assert f"{own * 1.001:.3f} for 2 " in "\n".join(summary([inside, outside]))
    scattered = row(1, model.rest.value * 0.999, limiter, **{"scattered accesses": 1.0})
    assert "1 of 1 inside" in "\n".join(summary([scattered]))
    assert "within 1.25 in 90 %" in "\n".join(summary([inside]))


def test_errors_are_those_of_all_rows_and_versions_are_compared_over_what_both_predict() -> None:
    """Predicted over measured: 1, 1/2, 1/4, and 1/4 of a kernel that is not to be trusted."""
    rows = [row(1, 1), row(3, 2) | {"dram_ratio": "1.2"}, row(5, 4), row(7, 4) | {"doubtful": "1"}]
    said = summary(rows)
    assert "all 4 at odd positions: times off by 50.0% on average, 62.5% in the median, 75.0% in 90 %" in said[1]
    assert any("off by 41.7% on average" in line and "DRAM bytes off by 20.0% on average" in line for line in said)
    # Measured 100, 200, 400 and 600 us, predicted in that order.
    ordered = [row(9 + 2 * n, 1) | {"measured_us": str(m), "predicted_us": str(p)}
               for n, (m, p) in enumerate(((100, 1), (200, 2), (400, 4), (600, 6)))]  # fmt: skip
    assert "Pearson of the logarithms 1.000, Spearman 1.000" in summary(ordered)[1]
    before, now, *_ = compared(rows, [row(3, 4), row(5, 4), row(15, 1)])
    assert before.startswith("2 at odd positions in both: times off by 75.0% on average")
    assert now.startswith("  times off by 62.5% on average")
