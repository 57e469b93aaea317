"""Counts of other people's kernels: what is stored, and what is predicted from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.accuracy import counts
from benchmarks.accuracy.drift import MOST, frozen

from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.analysis.request import Options
from drywarp.analysis.stages import answer_prepared
from tests.effort import first

EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIONS = Options(models=("pipeline",), occupancies=(), findings=False, brief=True)
KEPT = counts.counts()


def prepared(name: str) -> Prepared:
    return prepare_kernel(EXAMPLES / name, gpu="a100", options=OPTIONS)


def _length(kernel: str) -> float:
    """Warp instructions of a warp."""
    rows = KEPT[kernel]
    return sum(float(row["executions"]) for row in rows) / int(rows[0]["blocks"]) / int(rows[0]["warps"])


@pytest.mark.parametrize("kernel", first(sorted(KEPT, key=_length), 6))
def test_a_prediction_from_counts_is_the_frozen_one(kernel: str) -> None:
    (row,) = (row for row in frozen() if row["kernel"] == kernel and row["variant"] == "counts")
    time_s, limiter = counts.predicted_from(KEPT[kernel])
    assert time_s * 1e6 == pytest.approx(float(row["time_us"]), rel=MOST)
    assert limiter == row["limiter"]


@pytest.mark.parametrize(("name", "limiter", "most"), [("saxpy.cu", "dram", 0.02), ("tiled_matmul.cu", "lsu", 0.1)])
def test_counts_alone_come_close_to_the_kernel(name: str, limiter: str, most: float) -> None:
    """Where a rate limits, dependences matter little."""
    ready = prepared(name)
    rows = list(counts.counted(name, "a100", ready.costed.clock_hz / 1e6, ready))
    time_s, found = counts.predicted_from(rows)
    own = answer_prepared(ready, OPTIONS)
    assert found == own.limiter == limiter
    assert time_s == pytest.approx(own.time_s, rel=most)


def test_counts_are_those_of_the_grid() -> None:
    ready = prepared("saxpy.cu")
    rows = list(counts.counted("saxpy", "a100", 1410, ready))
    assert sum(float(row["executions"]) for row in rows) == pytest.approx(ready.profile.executions().sum(), rel=1e-5)
    loads, stores = ([row for row in rows if row["kind"] == kind] for kind in ("load", "store"))
    warps = 65536 * 8
    assert [float(row["executions"]) for row in (*loads, *stores)] == [pytest.approx(2 * warps, rel=1e-5), warps]
    assert "units=4 " in loads[0]["means"]
    assert "dram_read=4 " in loads[0]["means"] + " "


def test_more_of_what_limits_takes_longer() -> None:
    ready = prepared("saxpy.cu")
    rows = list(counts.counted("saxpy", "a100", 1410, ready))
    double = dict.fromkeys(("blocks", "executions"), 2)
    twice = [row | {name: f"{by * float(row[name]):.0f}" for name, by in double.items()} for row in rows]
    assert counts.predicted_from(twice)[0] == pytest.approx(2 * counts.predicted_from(rows)[0], rel=0.02)


def test_kernels_for_reporting_alone_are_not_counted() -> None:
    assert {one["position"] % 2 for one in counts.launches()} == {1}
    names = {f"{one['file'].split('/')[0].removesuffix('-cuda')}: {one['kernel']}" for one in counts.launches()}
    assert set(KEPT) <= names
    assert len(KEPT) >= 25
