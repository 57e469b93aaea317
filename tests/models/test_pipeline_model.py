"""The Pipeline model's answer from small simulations worked out by hand: time, limiter, curve, partial waves."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.round_gpu import ticks

from drywarp.errors import UsageError
from drywarp.models import get_model
from drywarp.models.base import Prediction
from drywarp.models.comparison import MOST_CURVE_POINTS, curve_occupancies
from drywarp.models.pipeline import limiter
from drywarp.models.throughput import demand, share_cycles
from drywarp.pipeline.blocks import Share, share_of
from drywarp.workload.cost import BlockType, CostedNode, CostedPath, CostedWorkload, Level, Subsystem


def workload(lambda_: float = 4, latency: float = 4, levels: tuple[Level, ...] = (), **others: Any) -> CostedWorkload:
    """Each warp issues one instruction. One SM of 10 takes a block of 8 warps at once."""
    node = CostedNode(0, "fp32", 0, ticks(lambda_), ticks(latency), stall_ticks=240, sets=0, levels=levels)
    values: dict[str, Any] = {
        "paths": (CostedPath((node,), (0,), 1),), "block_types": (BlockType((0,) * 8, 10.0),),
        "subsystems": (Subsystem("alu", "sm"), Subsystem("dram", "sm", False)), "partitions": 1, "issue_ticks": 240,
        "policy": "oldest_first", "in_order": True, "launch_ticks": 0, "blocks": 10, "warps_per_block": 8,
        "blocks_per_sm": 1, "max_blocks_per_sm": 4, "sm_count": 10, "clock_hz": 2e9,
    }  # fmt: skip
    return CostedWorkload(**{**values, **others})


def answer(made: CostedWorkload, *occupancies: int) -> Prediction:
    return get_model("pipeline").predict(made, occupancies)


@pytest.mark.parametrize(
    ("latency", "cycles", "limits"),
    [
        # 8 warps issue 4 cycles after one another, the last one's result takes Λ: 28 + Λ. The ALU is busy for 32.
        (4, 32, "alu"),
        (12, 40, "alu"),  # for four fifths of the time
        (13, 41, "latency"),
        (36, 64, "latency"),
    ],
)
def test_time_use_and_limiter(latency: float, cycles: float, limits: str) -> None:
    found = answer(workload(latency=latency))
    assert found.cycles == cycles
    assert found.time_s == pytest.approx(cycles / 2e9)
    assert found.limiter == limits
    assert found.utilization == pytest.approx({"alu": 32 / cycles, "dram": 0, "issue": 8 / cycles})
    # All 8 warps are there from the beginning; each ends Λ after its turn.
    assert found.achieved_occupancy_warps == pytest.approx((8 * latency + 4 * 28) / cycles)
    assert sum(found.stalls.values()) == pytest.approx(8 * latency + 4 * 28)
    assert found.headroom == pytest.approx({"alu": 32, "dram": 0, "issue": 8, "latency": latency})


def test_the_busiest_is_the_limiter_from_four_fifths_on() -> None:
    assert limiter({"alu": 0.81, "dram": 0.95}) == "dram"
    assert limiter({"alu": 0.8, "dram": 0.2}) == "alu"
    assert limiter({"alu": 0.79, "dram": 0.2}) == "latency"
    assert limiter({}) == "latency"


@pytest.mark.parametrize(
    ("blocks", "resident", "cycles"),
    [
        # A block alone takes 28 + 36 = 64 cycles; two at once 16 · 4 - 4 + 36 = 96.
        (10, 1, 64),
        (1, 1, 64),
        (11, 1, 128),  # one SM has two, one after the other
        (20, 1, 128),
        (21, 1, 192),
        (20, 2, 96),
        # The third takes the place of the first, which ends at 64: 28 cycles for the 7 warps before its last, and 36.
        # The second's warps have issued by then (from 32 to 60).
        (21, 2, 128),
    ],
)
def test_blocks_that_take_their_turn(blocks: int, resident: int, cycles: float) -> None:
    assert answer(workload(latency=36, blocks=blocks, blocks_per_sm=resident)).cycles == cycles


def test_a_block_starts_some_time_after_the_one_whose_place_it_takes() -> None:
    found = answer(workload(latency=36, blocks=30, launch_ticks=ticks(7)))
    # Three blocks, with 7 cycles in between.
    assert found.cycles == 3 * 64 + 2 * 7


def test_blocks_start_one_after_the_other() -> None:
    """Three blocks fit at once: they start 50 cycles apart, and the first ends before the third has started."""
    work = workload(latency=36, blocks=30, blocks_per_sm=3, launch_interval_ticks=ticks(50))
    found = answer(work)
    assert found.cycles == 2 * 50 + 64
    assert found.tail_s == pytest.approx(50 / work.clock_hz)  # from the end of the second to that of the third
    assert (found.limiter, "launch" in found.utilization) == ("latency", True)
    assert found.utilization["launch"] * found.cycles == pytest.approx(2 * 50)
    few = answer(replace(work, launch_interval_ticks=ticks(10)))
    assert few.cycles == 23 * 4 + 36  # 24 warps keep the ALU busy throughout
    assert "launch" not in few.utilization
    many = answer(replace(work, blocks=3000))
    assert (many.limiter, many.cycles) == ("launch", 299 * 50 + 64)
    assert many.headroom["launch"] == pytest.approx(299 * 50)


@pytest.mark.parametrize(
    ("blocks", "dram", "cycles"),
    [
        # A warp's transfer takes 20 cycles of DRAM while all SMs are active, 5 while only those of the last wave are.
        # The last of 8 begins when the 7 before it are over, and its result is there Λ later.
        (10, 160, 7 * 20 + 100),
        # 11 blocks: one SM has a second one, alone with DRAM: 8 · 5.
        (11, 200, None),
        (20, 320, None),
    ],
)
def test_the_partial_last_wave_has_more_bandwidth_for_each(blocks: int, dram: float, cycles: float | None) -> None:
    made = workload(1, 100, (Level(1, ticks(20), ticks(5)),), blocks=blocks)
    found = answer(made)
    # What DRAM is busy with, and the roofline's time of it.
    assert found.utilization["dram"] * found.cycles == pytest.approx(dram)
    assert found.headroom["dram"] == pytest.approx(dram)
    share = share_of(made, 1)
    assert share == Share(1, -(-blocks // 10), blocks // 10)
    assert share_cycles(made, demand(made), share)["dram"] == dram
    if cycles is None:
        assert found.cycles > dram
    else:
        assert found.cycles == pytest.approx(cycles, abs=1)


def test_the_curve_has_wpc_and_cpr() -> None:
    found = answer(workload(latency=36, blocks=40), 8, 16, 32)
    alone, two, four = found.curve
    # One block at a time: 4 · 64 cycles for 32 warps. Two: 2 · 96 at most. All four at once: 4 · 32 - 4 + 36.
    assert (alone.occupancy_warps, alone.cycles_per_run, alone.warps_per_cycle) == (8, None, 32 / 256)
    assert alone.time_s == pytest.approx(256 / 2e9)
    assert (four.cycles_per_run, four.warps_per_cycle, four.bound) == (160, 32 / 160, "alu")
    assert alone.warps_per_cycle < two.warps_per_cycle <= four.warps_per_cycle
    assert (alone.bound, two.cycles_per_run) == ("latency", None)
    # An abstract workload is repeated: a run is so many times shorter.
    (runs,) = answer(workload(latency=36, runs=3), 8).curve
    assert (runs.cycles_per_run, runs.warps_per_cycle) == (64, 24 / 192)


def test_an_issue_limit_and_partitions() -> None:
    # 8 warps on 4 partitions, each with an ALU of its own: two each, 4 + Λ.
    parts = replace(
        workload(latency=36), partitions=4, subsystems=(Subsystem("alu", "partition"), Subsystem("dram", "sm"))
    )
    assert answer(parts).cycles == 4 + 36
    # An issue every 10 cycles in a partition is what then limits: 10 + 36, with all 8 in one partition 70 + 36.
    assert answer(replace(parts, issue_ticks=ticks(10))).cycles == 10 + 36
    assert answer(workload(latency=36, issue_ticks=ticks(10))).cycles == 7 * 10 + 36


# The occupancies that are asked for -------------------------------------------------------------------------------


def test_the_points_of_a_curve() -> None:
    made = workload(max_blocks_per_sm=6, blocks_per_sm=2)
    assert curve_occupancies(made, None) == [8, 16, 24, 32, 40, 48]
    # Whole blocks of a range, up to the most; the launch's own besides.
    assert curve_occupancies(made, range(0)) == [16]
    assert curve_occupancies(made, range(1, 33)) == [8, 16, 24, 32]
    assert curve_occupancies(made, range(40, 200)) == [16, 40, 48]
    assert curve_occupancies(made, [48, 8]) == [8, 16, 48]
    for wrong in (12, 0, -8, 56):
        with pytest.raises(UsageError, match=f"occupancy {wrong}: expected a multiple of 8 warps .* up to 48"):
            curve_occupancies(made, [wrong])
    # Of 64 blocks no more than so many are tried, from one to all.
    many = curve_occupancies(workload(max_blocks_per_sm=64, blocks_per_sm=1), None)
    assert len(many) == MOST_CURVE_POINTS
    assert (many[0], many[-1]) == (8, 512)
    steps = [b - a for a, b in pairwise(many)]
    assert max(steps) - min(steps) <= 8
    # A point that takes a million instructions leaves room for five, one of which is the launch's own.
    heavy = workload(max_blocks_per_sm=61, blocks_per_sm=1, blocks=10 * 125_000)
    assert curve_occupancies(heavy, None) == [8 * b for b in (1, 16, 31, 46, 61)]
    assert curve_occupancies(replace(heavy, blocks_per_sm=7), None) == [8 * b for b in (1, 7, 16, 31, 46, 61)]
