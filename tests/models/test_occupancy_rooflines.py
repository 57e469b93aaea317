"""Roofline, Volkov and Pipeline on the papers' examples, and against each other."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from drywarp.errors import UsageError
from drywarp.models import get_model
from drywarp.models.roofline import ipc_roof
from drywarp.models.throughput import demand, path_weights
from drywarp.models.volkov import latency_bound, wpc_volkov
from drywarp.workload.cost import BlockType, CostedNode, CostedPath, CostedWorkload, Level, Subsystem

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))
from pipeline_cases import random_workload
from pipeline_kernels import chain, example, workload


def test_the_equations_on_the_example() -> None:
    assert ipc_roof(ipc_comp=1, bw=0.5, ci=2) == 1  # exactly at the ridge point
    assert wpc_volkov(1, 25, 1 / 4) == 1 / 25
    assert wpc_volkov(7, 25, 1 / 4) == 1 / 4


@pytest.mark.parametrize("in_order", [True, False])
def test_the_example_kernel(in_order: bool) -> None:
    work = example(in_order)
    assert demand(work).cycles == {"comp": 4, "mem": 4}
    assert latency_bound(work) == 25
    roof = get_model("roofline").predict(work, (1, 7))
    assert [point.warps_per_cycle for point in roof.curve] == [1 / 4, 1 / 4]
    volkov = get_model("volkov").predict(work, range(1, 11))
    assert [point.warps_per_cycle for point in volkov.curve] == [min(w / 25, 1 / 4) for w in range(1, 11)]
    assert [point.bound for point in volkov.curve] == ["latency"] * 6 + ["comp"] * 4
    pipeline = get_model("pipeline").predict(work, range(1, 11))
    assert (pipeline.cycles, pipeline.limiter) == (25, "latency")
    assert [point.occupancy_warps for point in pipeline.curve] == list(range(1, 11))
    for mine, bound in zip(pipeline.curve, volkov.curve, strict=True):
        assert mine.warps_per_cycle <= bound.warps_per_cycle
        assert mine.cycles_per_run == pytest.approx(mine.occupancy_warps / mine.warps_per_cycle)
    assert pipeline.headroom == {"comp": 4, "mem": 4, "latency": 25}
    assert pipeline.utilization == {"comp": 4 / 25, "mem": 4 / 25}


def test_volkovs_vector_addition_takes_544_cycles() -> None:
    """Listing 3.5 and Fig. 3.5: ILP latency 3 (0 in a dual-issued pair), 9 for ALU, 301 for loads, 201 to replace."""
    slots = {name: index for index, name in enumerate(("R0", "R1", "R2", "R3"))}

    def line(sets: str, waits: str, latency: int, stall: int, store: bool = False) -> CostedNode:
        return CostedNode(
            0, "int", 0, 0, latency * 240, stall * 240, tuple(slots[w] for w in waits.split()),
            slots[sets] if sets else -1, async_result=store,
        )  # fmt: skip

    nodes = (
        line("R1", "", 9, 0),
        line("R3", "", 9, 3),
        line("R0", "", 9, 3),
        line("R2", "R0 R3", 9, 3),
        line("R3", "R2", 9, 3),
        line("R0", "R2", 9, 0),
        line("R3", "R3", 301, 3),
        line("R0", "R0", 301, 0),
        line("R2", "R2", 9, 3),
        line("R3", "R3 R0", 9, 3),
        line("", "R2 R3", 0, 0, store=True),
        line("", "", 0, 0),
    )
    work = workload(CostedPath(nodes, tuple(range(12)), 4), launch_cycles=201)
    # Issue at 0, 0, 3, 12, 21, 21, 30, 33, 33, 334, 343, 343; 201 to replace the block.
    assert latency_bound(work) == 544


def test_partitions_levels_and_weights_in_the_sums() -> None:
    load = CostedNode(0, "global_load", 1, 480, 2400, levels=(Level(2, 1200, 240),))
    alu = CostedNode(1, "fp32", 0, 480, 960)
    work = replace(
        workload(chain(1, 240, 960), partitions=4, issue_limit=1),
        paths=(CostedPath((load, alu), (0, 1, 1), 0), CostedPath((alu,), (0,), 0)),
        block_types=(BlockType((0, 1), 3.0), BlockType((1, 1), 1.0)),
        subsystems=(Subsystem("fma", "partition"), Subsystem("lsu", "sm"), Subsystem("dram", "sm", False)),
        warps_per_block=2,
        runs=0,
        sm_count=2,
        blocks=5,
        blocks_per_sm=2,
    )
    assert path_weights(work) == [3 / 8, 5 / 8]
    needs = demand(work)
    assert needs.instructions == pytest.approx(3 * 3 / 8 + 5 / 8)
    assert needs.cycles == pytest.approx(
        {"fma": (6 / 8 + 5 / 8) * 2 / 4, "lsu": 2 * 3 / 8, "dram": 5 * 3 / 8, "issue": needs.instructions / 4}
    )
    assert needs.tail["dram"] == pytest.approx(3 / 8)
    # Three blocks on the fuller SM, the last of them in the tail.
    prediction = get_model("roofline").predict(work, (2, 4))
    assert prediction.limiter == "dram"
    assert prediction.cycles == pytest.approx(4 * 5 * 3 / 8 + 2 * 3 / 8)
    assert prediction.time_s == pytest.approx(prediction.cycles / 1e9)


def test_barriers_and_longest_warps_in_the_latency_bound() -> None:
    work = workload(chain(1, 240, 960), warps_per_block=2)
    slow, quick = chain(5, 240, 960), chain(1, 240, 960)
    work = replace(
        work, paths=(slow, quick), block_types=(BlockType((0, 1), 1.0), BlockType((1, 1), 3.0)), launch_ticks=2400
    )
    assert latency_bound(work) == (20 + 3 * 4) / 4 + 10


def test_volkov_counts_waves() -> None:
    work = replace(workload(chain(10, 240, 960), launch_cycles=10), runs=0, blocks=5, blocks_per_sm=2)
    prediction = get_model("volkov").predict(work, (1, 2, 4))
    assert prediction.limiter == "latency"
    assert prediction.cycles == 3 * 50 - 10
    assert [point.time_s for point in prediction.curve] == pytest.approx([240e-9, 140e-9, 90e-9])


@pytest.mark.parametrize("seed", range(60))
def test_a_lone_block_takes_at_least_the_latency_and_throughput_bounds(seed: int) -> None:
    work = random_workload(seed)
    work = replace(work, block_types=work.block_types[:1], launch_ticks=0)
    prediction = get_model("pipeline").predict(work, (work.warps_per_block,))
    assert prediction.cycles >= prediction.headroom["latency"] / (-(-work.blocks // work.sm_count)) - 1e-9
    assert set(prediction.headroom) - {"latency"} == set(prediction.utilization)
    assert all(0 <= fraction <= 1 for fraction in prediction.utilization.values())


def test_a_saturated_subsystem_limits() -> None:
    work = replace(workload(chain(100, 240, 960)), runs=0, blocks=64, blocks_per_sm=16)
    prediction = get_model("pipeline").predict(work, (1, 16))
    assert prediction.limiter == "comp"
    assert prediction.utilization["comp"] > 0.99
    assert [point.bound for point in prediction.curve] == ["latency", "comp"]
    assert prediction.curve[1].time_s == prediction.time_s


def test_an_occupancy_must_be_whole_blocks() -> None:
    work: CostedWorkload = workload(chain(1, 1, 1), warps_per_block=4)
    for model in ("roofline", "volkov", "pipeline"):
        with pytest.raises(UsageError, match="6 warps is not a whole number of blocks of 4 warps"):
            get_model(model).predict(work, (6,))
