"""An execution, and a program's timeline, in the Trace Event Format, which Perfetto and Chrome's tracing page read.

The format is specified in Google's document "Trace Event Format": an object whose `traceEvents` are slices (``X``: `ts`
and `dur`), counters (``C``), and names of processes and threads (``M``). Processes are the SM and its partitions,
threads the warp slots. Times are integers: the format's microsecond represents a thousandth of an SM cycle. In real
time, a cycle is shorter than a nanosecond; readers truncate below that, and the truncated slices would overlap and be
dropped. The events come first in the file, without `displayTimeUnit`: older readers mistake it for the unit of `ts`,
and stop at the first unknown key.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from .._version import __version__
from ..analysis.result import SCHEMA_VERSION, Analysis
from ..analysis.result.detail import ExecutionTrace
from ..errors import UsageError
from ..pipeline.execution import Execution
from ..pipeline.reasons import REASONS
from ..program.result import ProgramRun
from ..program.timeline import Span
from ..support.folders import write_file
from ..support.text import plain
from ..workload.cost import TICKS_PER_CYCLE
from .program import stream_name

INTERVALS = 240
"""Intervals of the utilization counters."""
THOUSAND = 1000
SM_PROCESS = 1
FIRST_THREAD = 100
"""Thread ids differ from process ids: readers treat a thread whose id equals its process's as the main one."""

Event = dict[str, Any]


def write_trace(analysis: Analysis, path: str | Path) -> int:
    """Write a result's trace; a name ending in ``.gz`` compresses it. Returns the number of events.

    Raises UsageError if the file cannot be written.
    """
    content = trace_dict(analysis)
    data = msgspec.json.encode(content)
    write_file(Path(path), gzip.compress(data, 5, mtime=0) if str(path).endswith(".gz") else data)
    return len(content["traceEvents"])


def trace_dict(analysis: Analysis) -> dict[str, Any]:
    """The trace as the file's JSON object: events in time order, each slice before the slices nested in it."""
    trace = analysis.trace
    if trace is None:
        raise UsageError("the result has no trace (request it with the option trace)")
    events = [*_warps(trace), *_instructions(trace), *_active(trace.execution), *_utilisation(trace)]
    events.sort(key=lambda event: (event["ts"], -event.get("dur", 0)))
    return {
        "traceEvents": [*_names(analysis, trace), *events],
        "otherData": {
            "schema_version": str(SCHEMA_VERSION),
            "drywarp": __version__,
            "kernel": plain(analysis.kernel),
            "source_file": plain(analysis.source_file),
            "gpu": plain(analysis.gpu_title),
            "clock_hz": f"{analysis.clock_hz:.0f}",
            "time_unit": "1 ms is 1 SM cycle",
            "notes": "; ".join(map(plain, trace.notes)),
        },
    }


def _times(ticks: npt.NDArray[np.int64]) -> list[int]:
    """Ticks in thousandths of a cycle, rounded down; different ticks remain different."""
    thousandths: list[int] = (ticks * THOUSAND // TICKS_PER_CYCLE).tolist()
    return thousandths


def _process(partition: int) -> int:
    return SM_PROCESS + 1 + partition


def _names(analysis: Analysis, trace: ExecutionTrace) -> Iterator[Event]:
    done = trace.execution
    yield _meta("process_name", SM_PROCESS, f"SM: {plain(analysis.kernel)} on {plain(analysis.gpu_title)}")
    yield _meta("process_sort_index", SM_PROCESS, 0)
    for partition in range(done.partitions):
        yield _meta("process_name", _process(partition), f"partition {partition}")
        yield _meta("process_sort_index", _process(partition), partition + 1)
    for slot in np.unique(done.launches[:, 0]).tolist():
        process = _process(slot % done.partitions)
        yield {**_meta("thread_name", process, f"warp slot {slot}"), "tid": FIRST_THREAD + slot}
        yield {**_meta("thread_sort_index", process, slot), "tid": FIRST_THREAD + slot}


def _meta(what: str, process: int, value: str | int) -> Event:
    key = "name" if isinstance(value, str) else "sort_index"
    return {"ph": "M", "name": what, "pid": process, "args": {key: value}}


def _warps(trace: ExecutionTrace) -> Iterator[Event]:
    """One slice per warp for its lifetime, enclosing its other slices; plus its final wait for results."""
    done = trace.execution
    launches = done.launches
    last = _last_issued(done)
    starts, ends = _times(launches[:, 3]), _times(np.minimum(launches[:, 4], done.end))
    for row, start, end in zip(launches.tolist(), starts, ends, strict=True):
        slot, block, warp = row[:3]
        place = {"pid": _process(slot % done.partitions), "tid": FIRST_THREAD + slot}
        name, life = f"block {block} warp {warp}", end - start
        yield {"ph": "X", "cat": "warp", "name": name, "ts": start, "dur": life, **place}
        left = last.get((block, slot))
        if left is not None and left < row[4] <= done.end:
            (begun,) = _times(np.array([left], dtype=np.int64))
            yield {"ph": "X", "cat": "stall", "name": "drain", "ts": begun, "dur": end - begun, **place}


def _last_issued(done: Execution) -> dict[tuple[int, int], int]:
    """The time when each warp's last instruction left the issue slot."""
    return dict(zip(zip(done.block.tolist(), done.slot.tolist(), strict=True), done.left.tolist(), strict=True))


def _instructions(trace: ExecutionTrace) -> Iterator[Event]:
    """One issue slice per instruction, preceded by a slice named after the stall reason if it had to wait."""
    done = trace.execution
    known = [_arguments(trace, node) for node in range(len(done.nodes))]
    process = (done.slot % done.partitions + SM_PROCESS + 1).tolist()
    thread = (done.slot + FIRST_THREAD).tolist()
    issued, left = _times(done.issue), _times(done.left)
    waited, latency = _times(done.waited_from), _times(done.completion - done.issue)
    columns = zip(process, thread, waited, issued, left, latency, done.node.tolist(), done.reason.tolist(), strict=True)
    for pid, tid, begun, at, until, cycles, node, reason in columns:
        if begun < at:
            yield {
                "ph": "X", "cat": "stall", "name": REASONS[reason], "ts": begun, "dur": at - begun,
                "pid": pid, "tid": tid,
            }  # fmt: skip
        name, arguments = known[node]
        yield {
            "ph": "X", "cat": "issue", "name": name, "ts": at, "dur": until - at, "pid": pid, "tid": tid,
            "args": {**arguments, "latency": cycles / THOUSAND},
        }  # fmt: skip


def _arguments(trace: ExecutionTrace, node: int) -> tuple[str, dict[str, str]]:
    words, costed = trace.instructions[node], trace.execution.nodes[node]
    line = f"{Path(words.file).name}:{words.line}" if words.file else ""
    pipe = trace.subsystems[costed.subsystem].name
    return plain(words.opcode), {"sass": plain(words.text), "line": plain(line), "pipe": plain(pipe)}


def _active(done: Execution) -> Iterator[Event]:
    """Active warps of the SM and of each partition, at every change."""
    slots, launched, ended = done.launches[:, 0], done.launches[:, 3], np.minimum(done.launches[:, 4], done.end)
    everywhere = [(_process(q), slots % done.partitions == q) for q in range(done.partitions)]
    for process, here in [(SM_PROCESS, np.ones(len(slots), dtype=np.bool_)), *everywhere]:
        ticks, place = np.unique(np.concatenate([launched[here], ended[here]]), return_inverse=True)
        change = np.zeros(len(ticks), dtype=np.int64)
        np.add.at(change, place, np.repeat([1, -1], here.sum()))
        for at, warps in zip(_times(ticks), np.cumsum(change).tolist(), strict=True):
            yield _counter("active", process, at, "warps", warps)


def _utilisation(trace: ExecutionTrace) -> Iterator[Event]:
    """The fraction of each interval in which a pipe or the issue slots are busy, per partition or for the SM."""
    done = trace.execution
    bounds = np.unique(np.array([done.end * k // INTERVALS for k in range(INTERVALS + 1)], dtype=np.int64))
    pipe = np.array([node.subsystem for node in done.nodes], dtype=np.int64)[done.node]
    holds = np.array([node.lambda_ticks for node in done.nodes], dtype=np.int64)[done.node]
    partition = done.slot % done.partitions
    for q in range(done.partitions):
        here = partition == q
        if done.issue_ticks:
            yield from _busy("issue slots", _process(q), done.issue[here], (done.left - done.issue)[here], bounds)
    for number, subsystem in enumerate(trace.subsystems):
        here = pipe == number
        if not here.any():
            continue
        if subsystem.scope != "partition":
            yield from _busy(subsystem.name, SM_PROCESS, done.issue[here], holds[here], bounds)
            continue
        for q in range(done.partitions):
            both = here & (partition == q)
            yield from _busy(subsystem.name, _process(q), done.issue[both], holds[both], bounds)


def _busy(
    name: str, process: int, issue: npt.NDArray[np.int64], holds: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]
) -> Iterator[Event]:
    if not len(issue):
        return
    # Instructions are sequential, so the busy time up to any moment is linear between issues and ends.
    before = np.concatenate([[0], np.cumsum(holds)])
    at = np.searchsorted(issue, bounds, side="right") - 1
    taken = np.where(at >= 0, before[at] + np.minimum(bounds - issue[at], holds[at]), 0)
    shares = np.diff(taken) / np.diff(bounds)
    times = _times(bounds)
    for start, share in zip(times[:-1], shares.tolist(), strict=True):
        yield _counter(plain(name), process, start, "in use", round(share, 6))
    yield _counter(plain(name), process, times[-1], "in use", 0.0)


def _counter(name: str, process: int, at: int, key: str, value: float) -> Event:
    return {"ph": "C", "name": name, "pid": process, "ts": at, "args": {key: value}}


# The timeline of a whole program, with its streams as tracks.

_PROGRAM, _MICROSECONDS = 1, 1e6


def write_program_trace(run: ProgramRun, path: Path) -> None:
    """Write the timeline in the Trace Event Format, with a track for each stream. Raises UsageError if it cannot be."""
    streams = run.streams()
    events: list[dict[str, Any]] = [_named("process_name", 0, run.gpu_title)]
    for track, (key, spans) in enumerate(streams.items(), 100):
        events.append(_named("thread_name", track, stream_name(key, len(run.processes), run.devices)))
        events += [_slice(span, track) for span in spans]
    write_file(path, msgspec.json.encode({"traceEvents": events, "otherData": {"gpu": run.gpu_title}}))


def _named(what: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROGRAM, "tid": track, "args": {"name": plain(name)}}


def _slice(span: Span, track: int) -> dict[str, Any]:
    given: dict[str, Any] = {"launch": span.launch, "count": span.count} if span.launch >= 0 else {"bytes": span.size}
    start, end = span.start_s * _MICROSECONDS, span.end_s * _MICROSECONDS
    return {
        "ph": "X", "name": plain(span.name), "cat": span.kind, "pid": _PROGRAM, "tid": track, "ts": round(start, 3),
        "dur": round(end - start, 3), "args": given,
    }  # fmt: skip
