"""What a program did on its device: the finished result that reports render, and what it is collected from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..analysis.result import Analysis
from ..kernel.launch.launch import Dim3
from .launches import Outcome
from .timeline import Span, Timeline

MOST_NAMED = 20
"""Most launches or copies that a note names."""


@dataclass(frozen=True)
class LaunchDone:
    """One launch; `reads_lost` names the launches whose missing results it was given."""

    number: int
    kernel: str
    grid: Dim3
    block: Dim3
    shared: int
    stream: int
    outcome: Outcome
    reads_lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class CopyDone:
    """One copy or fill; `lost` is the launch whose missing results it moves, `unset` the allocation nobody wrote."""

    kind: str
    size: int
    lost: str
    unset: str


@dataclass(frozen=True)
class Fault:
    """What went wrong in a kernel."""

    launch: int
    kernel: str
    text: str


@dataclass
class ProcessRun:
    """Everything that one process did so far."""

    timeline: Timeline
    launches: list[LaunchDone] = field(default_factory=list)
    copies: list[CopyDone] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unmodelled: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class KernelTotal:
    """All launches of one kernel: predicted seconds in total, and the analysis of the longest launch."""

    kernel: str
    launches: int
    computed: int
    unpredicted: int
    total_s: float
    share: float
    longest: Analysis | None

    @property
    def mean_s(self) -> float:
        """Predicted seconds of a launch that has a prediction."""
        return self.total_s / max(self.launches - self.unpredicted, 1)


@dataclass(frozen=True)
class CopyTotal:
    """All copies of one kind: how many, bytes and predicted seconds."""

    kind: str
    count: int
    bytes: int
    total_s: float


@dataclass(frozen=True)
class ProgramRun:
    """The finished run of a program, over all its processes; `status` is the program's own exit status.

    `time_s` is from the first call to the end of all work on the device, without what the host computes between its
    calls; `busy_s` is the part of it in which the device works, `critical` are the spans that the end waited for.
    """

    command: tuple[str, ...]
    gpu: str
    gpu_title: str
    clock_hz: float
    status: int
    time_s: float
    busy_s: float
    kernels: tuple[KernelTotal, ...]
    copies: tuple[CopyTotal, ...]
    critical: tuple[tuple[str, float], ...]
    spans: tuple[Span, ...]
    faults: tuple[Fault, ...]
    findings: tuple[str, ...]
    unmodelled: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]
    launches: tuple[LaunchDone, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the documented keys (docs/run.md)."""
        return {
            "command": list(self.command),
            "gpu": self.gpu,
            "gpu_title": self.gpu_title,
            "clock_hz": self.clock_hz,
            "exit_status": self.status,
            "time_s": self.time_s,
            "busy_s": self.busy_s,
            "kernels": [
                {
                    "kernel": one.kernel,
                    "launches": one.launches,
                    "computed": one.computed,
                    "without_prediction": one.unpredicted,
                    "time_s": one.total_s,
                    "mean_s": one.mean_s,
                    "share": one.share,
                    **_of_analysis(one.longest),
                }
                for one in self.kernels
            ],
            "copies": [
                {"kind": one.kind, "count": one.count, "bytes": one.bytes, "time_s": one.total_s} for one in self.copies
            ],
            "critical_path": [{"name": name, "time_s": seconds} for name, seconds in self.critical],
            "launches": [
                {
                    "number": one.number,
                    "kernel": one.kernel,
                    "grid": list(one.grid),
                    "block": list(one.block),
                    "dynamic_shared_bytes": one.shared,
                    "stream": one.stream,
                    "time_s": one.outcome.analysis.time_s if one.outcome.analysis else None,
                    "computed": one.outcome.computed,
                    "warp_instructions": one.outcome.warp_instructions,
                }
                for one in self.launches
            ],
            "faults": [{"launch": one.launch, "kernel": one.kernel, "text": one.text} for one in self.faults],
            "findings": list(self.findings),
            "not_modelled": dict(self.unmodelled),
            "notes": list(self.notes),
        }


def _of_analysis(found: Analysis | None) -> dict[str, Any]:
    if found is None:
        return {"limiter": None, "occupancy": None}
    return {"limiter": found.limiter, "occupancy": found.occupancy.fraction}


def finished(command: tuple[str, ...], status: int, processes: list[ProcessRun], clock_hz: float) -> ProgramRun:
    """Sum up what all processes of a program did. Processes run at the same time, each on a device of its own."""
    spans = tuple(span for one in processes for span in one.timeline.spans)
    launches = tuple(launch for one in processes for launch in one.launches)
    longest = max(processes, key=lambda one: one.timeline.end)
    copies = [copy for one in processes for copy in one.copies]
    unmodelled = sum((one.unmodelled for one in processes), Counter[str]())
    gpu = longest.timeline.gpu
    return ProgramRun(
        command=command,
        gpu=gpu.name,
        gpu_title=gpu.title,
        clock_hz=clock_hz,
        status=status,
        time_s=longest.timeline.end,
        busy_s=_busy(longest.timeline.spans),
        kernels=_kernels(launches),
        copies=_copies(spans),
        critical=_critical(longest.timeline.spans),
        spans=spans,
        faults=tuple(fault for one in processes for fault in one.faults),
        findings=tuple(_findings(launches, copies)),
        unmodelled=tuple(sorted(unmodelled.items())),
        notes=tuple(dict.fromkeys(note for one in processes for note in one.notes)),
        launches=launches,
    )


def _kernels(launches: tuple[LaunchDone, ...]) -> tuple[KernelTotal, ...]:
    by_name: dict[str, list[LaunchDone]] = {}
    for launch in launches:
        by_name.setdefault(launch.kernel, []).append(launch)
    totals = {
        name: sum(one.outcome.analysis.time_s for one in some if one.outcome.analysis) for name, some in by_name.items()
    }
    whole = sum(totals.values())
    found = []
    for name, some in by_name.items():
        predicted = [one.outcome.analysis for one in some if one.outcome.analysis]
        found.append(
            KernelTotal(
                name,
                len(some),
                sum(one.outcome.computed for one in some),
                len(some) - len(predicted),
                totals[name],
                totals[name] / whole if whole else 0.0,
                max(predicted, key=lambda one: one.time_s, default=None),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.total_s, one.kernel)))


def _copies(spans: tuple[Span, ...]) -> tuple[CopyTotal, ...]:
    kinds: dict[str, list[Span]] = {}
    for span in spans:
        if span.kind != "kernel":
            kinds.setdefault(span.kind, []).append(span)
    return tuple(
        CopyTotal(kind, len(some), sum(one.size for one in some), sum(one.end_s - one.start_s for one in some))
        for kind, some in sorted(kinds.items())
    )


def _busy(spans: list[Span]) -> float:
    """Seconds in which at least one span runs."""
    total = until = 0.0
    for span in sorted(spans, key=lambda one: one.start_s):
        total += max(0.0, span.end_s - max(span.start_s, until))
        until = max(until, span.end_s)
    return total


def _critical(spans: list[Span]) -> tuple[tuple[str, float], ...]:
    """Seconds by name of the spans that the end waited for, one after the other; the rest is the host's calls."""
    if not spans:
        return ()
    at, found = max(range(len(spans)), key=lambda n: spans[n].end_s), dict[str, float]()
    while at >= 0:
        span = spans[at]
        found[span.name] = found.get(span.name, 0.0) + span.end_s - span.start_s
        before = spans[span.after].end_s if span.after >= 0 else 0.0
        idle = span.start_s - before
        if idle > 0:
            found["host"] = found.get("host", 0.0) + idle
        if span.after >= 0:
            at = span.after
            continue
        # The host was busy with earlier calls; what it waited for is the latest span that had ended by then.
        earlier = [n for n in range(at) if spans[n].end_s <= span.start_s]
        at = max(earlier, key=lambda n: spans[n].end_s, default=-1)
        if at >= 0:
            found["host"] = found.get("host", 0.0) - spans[at].end_s
    return tuple(sorted(found.items(), key=lambda one: -one[1]))


def _findings(launches: tuple[LaunchDone, ...], copies: list[CopyDone]) -> list[str]:
    found = []
    missing = [one for one in launches if not one.outcome.computed and not one.outcome.fault]
    if missing:
        found.append(f"not computed: {_some([f'launch {one.number} ({one.kernel})' for one in missing])}")
    read = [one for one in launches if one.reads_lost]
    if read:
        found.append(
            f"given results that were not computed: {_some([f'launch {o.number} ({o.kernel})' for o in read])}"
        )
    lost = [copy.lost for copy in copies if copy.lost and copy.kind == "copy to host"]
    if lost:
        found.append(f"{len(lost)} copies to the host of results that were not computed: {_some(lost)}")
    unset = [copy.unset for copy in copies if copy.unset and copy.kind != "fill"]
    if unset:
        found.append(f"{len(unset)} copies from memory that nothing was ever written to: {_some(unset)}")
    return found


def _some(names: list[str]) -> str:
    different = list(dict.fromkeys(names))
    rest = len(different) - MOST_NAMED
    return ", ".join(different[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
