"""Energy, cost and order of GPUs worked out by hand, and how they read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drywarp.analysis.rank import ORDERS, RankedGpu, Ranking, by_figure
from drywarp.report.ranking import render_ranking

MILLISECOND = 1e-3


def ranked(
    name: str, time_s: float, tdp: float | None = None, price: float | None = None, **others: object
) -> RankedGpu:
    gpu = RankedGpu(
        gpu=name, gpu_title=name.upper(), gpu_hash="", arch="sm_80", time_s=time_s, low_s=None, high_s=None,
        start_s=0.0, cycles=1.0,
        clock_hz=1e9, limiter="dram", warps_per_sm=24, occupancy=0.375, waves=2.0, mode="emulated", tdp_w=tdp,
        price_per_hour=price, notes=(),
    )  # fmt: skip
    return replace(gpu, **others)  # type: ignore[arg-type]


def ranking(by: str, *gpus: RankedGpu, failed: dict[str, str] | None = None) -> Ranking:
    return Ranking("k", "k.cu", by, "cold", gpus, failed or {}, {})  # type: ignore[arg-type]


def rows(found: Ranking) -> list[str]:
    return render_ranking(found).plain.splitlines()


def test_energy_is_power_times_time_and_cost_price_times_hours() -> None:
    # 300 W for 2 ms are 0.6 J. 7.2 an hour are 0.002 a second, 4e-6 for 2 ms.
    gpu = ranked("a", 2 * MILLISECOND, tdp=300, price=7.2)
    assert gpu.energy_j == pytest.approx(0.6)
    assert gpu.cost == pytest.approx(4e-6)
    assert [gpu.by(order) for order in ORDERS] == [2 * MILLISECOND, gpu.energy_j, gpu.cost]
    # A whole hour costs the price, and an hour of a kilowatt is 3.6 MJ.
    hour = ranked("b", 3600.0, tdp=1000, price=7.2)
    assert (hour.energy_j, hour.cost) == (3.6e6, 7.2)
    unknown = ranked("c", 1.0)
    assert (unknown.energy_j, unknown.cost) == (None, None)
    said = gpu.to_dict()
    assert (said["time_s"], said["energy_at_tdp_j"], said["cost"]) == (gpu.time_s, gpu.energy_j, gpu.cost)
    free = ranked("d", 1.0, tdp=5, price=0.0)
    assert free.cost == 0


def test_the_order_is_by_the_figure_then_time_then_name_and_the_unknown_last() -> None:
    gpus = [
        ranked("slow", 4.0, tdp=50, price=1.0),  # 200 J
        ranked("quick", 1.0, tdp=400, price=8.0),  # 400 J
        ranked("unknown", 0.5),
        ranked("even", 2.0, tdp=100, price=2.0),  # 200 J
        ranked("also", 2.0, tdp=100, price=2.0),
    ]

    def order(by: str) -> list[str]:
        return [gpu.gpu for gpu in sorted(gpus, key=lambda gpu: by_figure(gpu, by))]  # type: ignore[arg-type]

    assert order("time") == ["unknown", "quick", "also", "even", "slow"]
    assert order("energy") == ["also", "even", "slow", "quick", "unknown"]
    assert order("cost") == ["also", "even", "slow", "quick", "unknown"]


def test_a_row_has_the_ratio_to_the_best_and_the_price_of_a_million_runs() -> None:
    best = ranked("a", 2 * MILLISECOND, tdp=300, price=7.2, low_s=1.5 * MILLISECOND, high_s=2.5 * MILLISECOND)
    other = ranked("b", 3 * MILLISECOND, tdp=100)
    text = rows(ranking("time", best, other))
    assert text[0] == "k: fastest on A, 2.00 ms"
    head, first, second = (next(line for line in text if line.split()[:1] == [name]) for name in ("GPU", "a", "b"))
    assert "a million runs" in head
    # 4e-6 for one run are 4 for a million.
    for word in ("2.00 ms", "1.50 ms to 2.50 ms", "1.00", "24 (38%)", "300 W", "600 mJ"):
        assert word in first
    assert first.split()[-1] == "4"
    for word in ("3.00 ms", "1.50", "100 W", "300 mJ"):
        assert word in second
    assert second.split()[-1] == "–"
    # Without prices there is no such column. By energy the second is the better one: 0.3 J, the first has twice that.
    text = rows(ranking("energy", other, replace(best, price_per_hour=None)))
    assert text[0] == "k: least energy at TDP on B, 3.00 ms"
    head, first = (next(line for line in text if line.split()[:1] == [name]) for name in ("GPU", "a"))
    assert "a million runs" not in head
    assert "2.00" in first.replace("2.00 ms", "")


def test_notes_name_their_gpus_where_not_all_have_them() -> None:
    a, b = ranked("a", 1.0, notes=("shared", "own")), ranked("b", 2.0, notes=("shared",))
    text = rows(ranking("time", a, b, failed={"c": "too small"}))
    assert "note: shared" in text
    assert "note: own (a)" in text
    assert "not on c: too small" in text
    # Followed without data on some GPUs alone: those are named.
    mixed = rows(ranking("time", a, replace(b, mode="static")))
    assert any(line.endswith("with more assumptions: b") for line in mixed)
    for modes in (("static", "static"), ("emulated", "emulated")):
        alike = rows(ranking("time", replace(a, mode=modes[0]), replace(b, mode=modes[1])))
        assert not any("with more assumptions" in line for line in alike)
