"""Traces: what the format demands, every instruction once, and counters that agree with the answer."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import drywarp
from drywarp.analysis.prepare import prepare_kernel
from drywarp.errors import UsageError
from drywarp.pipeline import execution
from drywarp.report.trace import FIRST_THREAD, SM_PROCESS, trace_dict, write_trace
from tests.effort import first

from .test_golden import ROOT
from .trace_format import check_format

EVERYTHING = 10_000_000
SMALL = {"grid": 540, "args": {"n": 138_240}}
"""Five blocks on each SM of an A100, less than one wave."""


@cache
def traced(example: str, most: int = EVERYTHING) -> drywarp.Analysis:
    settings: dict[str, Any] = SMALL if example == "saxpy" else {}
    return drywarp.analyze(ROOT / "examples" / f"{example}.cu", trace=most, **settings)


@cache
def events_of(example: str, most: int = EVERYTHING) -> list[dict[str, Any]]:
    content: dict[str, Any] = trace_dict(traced(example, most))
    found: list[dict[str, Any]] = content["traceEvents"]
    return found


def slices(events: list[dict[str, Any]], category: str) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and event["cat"] == category]


def counters(events: list[dict[str, Any]], process: int, name: str) -> list[tuple[int, float]]:
    return [
        (event["ts"], *event["args"].values())
        for event in events
        if event["ph"] == "C" and event["pid"] == process and event["name"] == name
    ]


def mean(steps: list[tuple[int, float]], cycles: float) -> float:
    """The mean over time of a counter that holds each value until the next."""
    bounds = [*(at for at, _ in steps), cycles * 1000]
    return sum(value * (b - a) for (_, value), a, b in zip(steps, bounds, bounds[1:], strict=False)) / cycles / 1000


def warps(events: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The life of each warp with all that lies in it, in the order of time."""
    inside: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["cat"] != "warp":
            inside[event["tid"]].append(event)
    for life in slices(events, "warp"):
        end = life["ts"] + life["dur"]
        yield life, [e for e in inside[life["tid"]] if life["ts"] <= e["ts"] and e["ts"] + e["dur"] <= end]


@pytest.mark.parametrize("example", first(["reduction", "saxpy"]))
def test_the_format_is_kept(example: str) -> None:
    check_format(json.loads(json.dumps(trace_dict(traced(example)))))


def test_every_instruction_of_a_wave_is_there_exactly_once() -> None:
    """Warp by warp, in the order of the program that the workload states."""
    bound = prepare_kernel(ROOT / "examples" / "saxpy.cu", **SMALL)
    expected = {}
    for number, path in enumerate(bound.costed.paths):
        texts = [bound.kernel.instructions[path.nodes[place].instruction].text for place in path.expand()]
        expected[number] = texts
    (kind,) = bound.costed.block_types
    seen = set()
    for life, inside in warps(events_of("saxpy")):
        _, block, _, warp = life["name"].split()
        seen.add((int(block), int(warp)))
        issued = [event["args"]["sass"] for event in inside if event["cat"] == "issue"]
        assert issued == expected[kind.paths[int(warp)]]
    assert seen == {(block, warp) for block in range(5) for warp in range(8)}
    assert len(slices(events_of("saxpy"), "issue")) == sum(len(expected[path]) for path in kind.paths) * 5


@pytest.mark.parametrize("example", first(["reduction", "saxpy"]))
def test_a_warps_life_is_filled_without_gap_or_overlap(example: str) -> None:
    count = 0
    for life, inside in warps(events_of(example)):
        at = life["ts"]
        for event in inside:
            assert event["ts"] == at
            at = event["ts"] + event["dur"]
        assert at == life["ts"] + life["dur"]
        count += len(inside)
    assert count == len(slices(events_of(example), "issue")) + len(slices(events_of(example), "stall"))


@pytest.mark.parametrize("example", first(["reduction", "saxpy", "tiled_matmul"]))
def test_issue_slots_of_a_partition_do_not_overlap(example: str) -> None:
    by_partition = defaultdict(list)
    for event in slices(events_of(example, 100_000), "issue"):
        by_partition[event["pid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert len(by_partition) == 4
    for spans in by_partition.values():
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))


@pytest.mark.parametrize("example", first(["reduction", "saxpy"]))
def test_counters_agree_with_the_answer(example: str) -> None:
    answer, events = traced(example), events_of(example)
    end = answer.prediction.cycles
    achieved = mean(counters(events, SM_PROCESS, "active"), end)
    assert achieved == pytest.approx(answer.prediction.achieved_occupancy_warps, rel=1e-4)
    partitions = [SM_PROCESS + 1 + q for q in range(4)]
    assert sum(mean(counters(events, q, "active"), end) for q in partitions) == pytest.approx(achieved, rel=1e-4)
    busy = answer.prediction.utilization
    slots = [mean(counters(events, q, "issue slots"), end) for q in partitions]
    assert sum(slots) / 4 == pytest.approx(busy["issue"], rel=1e-3)
    for pipe in ("fma", "alu"):
        used = [mean(counters(events, q, pipe), end) for q in partitions if counters(events, q, pipe)]
        assert sum(used) / 4 == pytest.approx(busy[pipe], rel=1e-3)
    assert mean(counters(events, SM_PROCESS, "lsu"), end) == pytest.approx(busy["lsu"], rel=1e-3)


def test_a_cut_trace_is_the_beginning_of_the_whole_one() -> None:
    most = 20_000
    short, whole = events_of("reduction", most), events_of("reduction")
    done = traced("reduction", most).trace
    assert done is not None
    end = done.execution.end * 1000 // 240
    expected = [event for event in slices(whole, "issue") if event["ts"] < end]
    assert slices(short, "issue") == expected
    assert 0 < len(expected) < len(slices(whole, "issue"))
    assert len([e for e in short if e["ph"] == "X" or e["name"] == "active"]) <= most
    assert any("the trace ends after" in note for note in traced("reduction", most).notes)
    assert not any("the trace" in note for note in traced("reduction").notes)
    check_format({"traceEvents": short})


def test_of_a_long_share_whole_waves_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "MOST_SIMULATED", 30_000)
    answer = drywarp.analyze(ROOT / "examples" / "reduction.cu", trace=EVERYTHING)
    assert answer.trace is not None
    done = answer.trace.execution
    assert 0 < done.blocks < done.of
    assert done.blocks % answer.occupancy.blocks_per_sm == 0
    assert any(f"first {done.blocks} of {done.of} blocks" in note for note in answer.notes)
    whole = slices(events_of("reduction"), "issue")
    first = slices(trace_dict(answer)["traceEvents"], "issue")
    # As long as blocks follow one another it is the same run.
    assert first[:1000] == whole[:1000]


def test_a_wave_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "MOST_SIMULATED", 30)
    monkeypatch.setattr(execution, "LARGEST_WAVE", 60)
    with pytest.raises(UsageError, match=r"\(one wave on one SM\) is too large"):
        drywarp.analyze(ROOT / "examples" / "reduction.cu", trace=EVERYTHING)


def test_a_trace_changes_nothing_else_of_the_answer() -> None:
    plain = drywarp.analyze(ROOT / "examples" / "saxpy.cu", **SMALL).to_dict()
    with_trace = traced("saxpy").to_dict()
    assert {**plain, "timing": None} == {**with_trace, "timing": None}


def test_names_are_harmless(tmp_path: Path) -> None:
    nasty = '"}],\n\x1b[31m<script>\u202e\\'
    answer = traced("saxpy")
    assert answer.trace is not None
    words = tuple(replace(w, opcode=nasty, text=nasty, file=nasty) for w in answer.trace.instructions)
    named = replace(
        answer, kernel=nasty, source_file=nasty, gpu_title=nasty, trace=replace(answer.trace, instructions=words)
    )
    path = tmp_path / "trace.json"
    count = write_trace(named, path)
    read = json.loads(path.read_text(encoding="utf-8"))
    check_format(read)
    assert len(read["traceEvents"]) == count
    assert not {"\x1b", "\u202e"} & set(path.read_text(encoding="utf-8"))
    assert "\\u001b" not in path.read_text(encoding="utf-8")


def test_a_name_that_ends_in_gz_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    write_trace(traced("saxpy"), path)
    assert json.loads(gzip.decompress(path.read_bytes())) == json.loads(json.dumps(trace_dict(traced("saxpy"))))


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no trace"):
        trace_dict(drywarp.analyze(ROOT / "examples" / "saxpy.cu", **SMALL))
    with pytest.raises(UsageError, match="cannot be written"):
        write_trace(traced("saxpy"), tmp_path / "none" / "trace.json")
    with pytest.raises(UsageError, match="expected 1000 or more"):
        drywarp.analyze(ROOT / "examples" / "saxpy.cu", trace=10, **SMALL)


def test_threads_are_the_warp_slots() -> None:
    names = {
        event["tid"]: (event["pid"], event["args"]["name"])
        for event in events_of("saxpy")
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    assert names == {FIRST_THREAD + s: (SM_PROCESS + 1 + s % 4, f"warp slot {s}") for s in range(40)}
