"""The detail of an answer: code and costs add up to the answer's own figures, roofs and overlap to what they mean."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drywarp
from drywarp.analysis.counters import operations_of
from drywarp.analysis.detail import overlap_of
from drywarp.analysis.result.detail import Detail, EventNode, Events, Lane
from tests.listing import code

ROOT = Path(__file__).parents[1]
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@cache
def answer(example: str, gpu: str = "a100", **settings: bool) -> drywarp.Analysis:
    return drywarp.analyze(ROOT / "examples" / f"{example}.cu", gpu=gpu, detail=5000, **settings)


def detail_of(analysis: drywarp.Analysis) -> Detail:
    assert analysis.detail is not None
    return analysis.detail


@pytest.mark.parametrize("example", ["tiled_matmul", "saxpy", "reduction"])
def test_code_adds_up_to_the_answer(example: str) -> None:
    result = answer(example)
    detail = detail_of(result)
    assert sum(line.executions for line in detail.code) == pytest.approx(result.warp_instructions)
    for reason, cycles in result.prediction.stalls.items():
        assert sum(line.stalls.get(reason, 0.0) for line in detail.code) == pytest.approx(cycles)
    for cost in result.lines:
        own = [line for line in detail.code if (line.file, line.line) == (cost.file, cost.line)]
        assert sum(sum(line.stalls.values()) for line in own) == pytest.approx(cost.cycles)


def test_the_source_is_there_as_it_stands_in_the_file() -> None:
    result = answer("tiled_matmul")
    source = detail_of(result).sources[0]
    text = Path(source.file).read_text().splitlines()
    assert source.lines == tuple(enumerate(text, 1))
    given_as_text = drywarp.analyze(Path(source.file).read_text(), gpu="a100", detail=0)
    assert detail_of(given_as_text).sources[0].lines == source.lines
    assert detail_of(given_as_text).events is None


def test_every_model_has_a_curve_or_a_reason() -> None:
    from drywarp.models import model_names

    detail = detail_of(answer("saxpy"))
    curves = {curve.model for curve in detail.curves}
    assert curves | set(detail.not_applicable) == set(model_names())
    assert not curves & set(detail.not_applicable)
    assert detail.curves[0].points == answer("saxpy").prediction.curve


def test_no_roof_is_exceeded_and_the_limiters_is_reached() -> None:
    result = answer("saxpy")
    roofline = detail_of(result).instruction_roofline
    assert roofline is not None
    assert all(roof.rate >= 0.999 * roofline.rate for roof in roofline.roofs)
    dram = next(roof for roof in roofline.roofs if roof.name == "dram")
    assert roofline.rate / dram.rate == pytest.approx(result.prediction.utilization["dram"], rel=0.02)
    assert dram.intensity
    assert dram.intensity == pytest.approx(result.warp_instructions / result.memory.dram_bytes)
    # The slope is the bandwidth: that of the GPU file, by SM and cycle.
    gpu = drywarp.load_gpu("a100")
    slope = dram.rate / dram.intensity * gpu.device.sm_count
    levels = gpu.memory.dram
    assert 0.97 * gpu.bytes_per_cycle(min(levels.copy_gbs, levels.read_gbs, levels.write_gbs)) < slope
    assert slope < gpu.bytes_per_cycle(levels.peak_gbs)


def test_floating_point_operations_are_those_of_the_algorithm() -> None:
    """A product of n by n matrices takes 2n³ of them; the roofs are the GPU file's rates."""
    result, gpu = answer("tiled_matmul"), drywarp.load_gpu("a100")
    found = detail_of(result).roofline
    assert found is not None
    assert found.work == "FLOP"
    assert found.total == {"fp32": 2 * 1024**3}
    assert found.rate == pytest.approx(2 * 1024**3 / result.time_s)
    roofs = {roof.name: roof for roof in found.roofs}
    pipe = 32 * 2 / gpu.classes["fp32"].lambda_ * gpu.scheduler.partitions
    assert roofs["fp32"].rate == pytest.approx(pipe * gpu.device.sm_count * result.clock_hz)
    assert roofs["l2"].intensity
    assert roofs["l2"].rate / roofs["l2"].intensity == gpu.memory.l2.bytes_per_cycle * result.clock_hz
    assert all(roof.rate > found.rate for roof in found.roofs)
    dram = roofs["dram"]
    assert dram.intensity == pytest.approx(2 * 1024**3 / result.memory.dram_bytes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FFMA R0, R1, R2, R3", ("fp32", 2, 2)),
        ("FADD R0, R1, R2", ("fp32", 1, 2)),
        ("FADD R0, -RZ, R2", None),
        ("HFMA2 R0, R1, R2, R3", ("fp16", 4, 4)),
        ("HFMA2.MMA R0, -RZ, RZ, 0, 1.5", None),
        ("HADD2.F32 R0, -RZ, R1.H0_H0", None),
        ("FFMA2 R0, R2.F32x2.HI_LO, R4.F32x2.HI_LO, R6.F32x2.HI_LO", ("fp32", 4, 4)),
        ("DMUL R0, R2, R4", ("fp64", 1, 2)),
        ("MUFU.RCP R0, R1", None),
        ("FMNMX R0, R1, R2, PT", None),
        ("IMAD R0, R1, R2, R3", ("imad", 1, 1)),
    ],
)
def test_operations_of_an_instruction(text: str, expected: tuple[str, int, int] | None) -> None:
    assert operations_of(code(text)[0]) == expected


def test_events_are_bounded_and_in_the_order_of_issue() -> None:
    events = detail_of(answer("tiled_matmul")).events
    assert events is not None
    assert len(events.issue) == 5000 < events.total
    assert (np.diff(events.issue) >= 0).all()
    assert (events.awaited < np.arange(5000)).all()
    kernel = {line.index: line for line in detail_of(answer("tiled_matmul")).code}
    for node in events.nodes:
        assert events.lanes[node.lane].name == kernel[node.instruction].subsystem or node not in {
            events.nodes[number] for number in set(events.node.tolist())
        }


def test_lanes_stand_in_the_order_of_how_busy_one_of_each_is() -> None:
    """A pipe that every partition has is as busy as one of them."""
    events = detail_of(answer("tiled_matmul")).events
    assert events is not None
    assert len({lane.instances for lane in events.lanes}) > 1
    busy = [0.0] * len(events.lanes)
    for number in events.node.tolist():
        node = events.nodes[number]
        busy[node.lane] += node.lambda_ticks / events.lanes[node.lane].instances
    assert busy == sorted(busy, reverse=True)


def test_static_answers_have_it_too() -> None:
    result = answer("saxpy", "h100", static=True)
    assert detail_of(result).events is not None
    assert sum(line.executions for line in detail_of(result).code) == pytest.approx(result.warp_instructions)


def test_it_is_no_part_of_the_json_object() -> None:
    plain = drywarp.analyze(ROOT / "examples" / "saxpy.cu", gpu="a100")
    assert plain.detail is None
    assert answer("saxpy").to_dict().keys() == plain.to_dict().keys()


def events_of(issues: list[tuple[int, int, int]], lanes: int) -> Events:
    """Events from (gap to the one before, lane, λ)."""
    ticks = np.cumsum([gap for gap, _, _ in issues], dtype=np.int64)
    zeros = np.zeros(len(issues), dtype=np.int64)
    nodes = tuple(EventNode(0, lane, cost) for _, lane, cost in issues)
    return Events(
        issue=ticks,
        completion=ticks,
        warp=zeros,
        block=zeros,
        node=np.arange(len(issues)),
        reason=zeros,
        awaited=zeros - 1,
        nodes=nodes,
        lanes=tuple(Lane(f"s{lane}", 1) for lane in range(lanes)),
        reasons=("selected",),
        partitions=1,
        warps_per_block=1,
        ticks_per_cycle=1,
        total=len(issues),
    )


@UNHURRIED
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=30))
def test_overlap_is_what_counting_tick_by_tick_gives(issues: list[tuple[int, int, int]]) -> None:
    events = events_of(issues, 3)
    found = overlap_of(events)
    first, last = int(events.issue[0]), int(events.issue[-1])
    if first == last:
        assert found is None
        return
    assert found is not None
    busy = np.zeros((3, last - first), dtype=np.bool_)
    for tick, (_, lane, cost) in zip(events.issue.tolist(), issues, strict=True):
        busy[lane, tick - first : tick - first + cost] = True
    at_once = np.bincount(busy.sum(axis=0), minlength=len(found.at_once)) / (last - first)
    assert found.at_once == pytest.approx(at_once[: len(found.at_once)])
    for lane in range(3):
        assert found.busy[f"s{lane}"] == pytest.approx(busy[lane].mean())
        assert found.alone[f"s{lane}"] == pytest.approx((busy[lane] & (busy.sum(axis=0) == 1)).mean())


@pytest.mark.exhaustive
def test_a_large_file_is_there_round_its_instructions(tmp_path: Path) -> None:
    filler = "\n".join(f"// {n}" for n in range(6000))
    path = tmp_path / "long.cu"
    path.write_text(
        "// drywarp: --grid 64 --block 64\n// drywarp: --arg p=f32[4096]\n"
        + filler
        + "\n__global__ void f(float* p) {\n  p[blockIdx.x * 64 + threadIdx.x] = 1.0f;\n}\n"
    )
    detail = detail_of(drywarp.analyze(path, gpu="a100", detail=10))
    numbers = [number for number, _ in detail.sources[0].lines]
    assert len(numbers) < 40
    assert detail.sources[0].total == 6005
    assert all(a < b for a, b in pairwise(numbers))
    assert any("long.cu" in cut for cut in detail.cut)
