"""Sums up what the processes of a program did."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from ..analysis.result import Analysis
from ..support.text import some_text
from .estimates import band, pace
from .result import Check, CopyDone, CopyTotal, KernelTotal, LaunchDone, ProcessRun, ProgramRun
from .timeline import Span

MOST_NAMED = 20
"""Most launches or copies that a finding names."""


def finished(command: tuple[str, ...], status: int, processes: list[ProcessRun], clock_hz: float) -> ProgramRun:
    """Sum up what all processes of a program did. Processes run at the same time, each on a device of its own."""
    spans = tuple(span for one in processes for span in one.timeline.spans)
    launches = tuple(launch for one in processes for launch in one.launches)
    counted = tuple(one for one in launches if not one.outcome.left_out)
    longest = max(processes, key=lambda one: one.timeline.end)
    unmodelled = sum((one.unmodelled for one in processes), Counter[str]())
    left_out = sum((Counter({one.kernel: one.count}) for one in launches if one.outcome.left_out), Counter[str]())
    gpu = longest.timeline.gpu
    return ProgramRun(
        command=command,
        gpu=gpu.name,
        gpu_title=gpu.title,
        clock_hz=clock_hz,
        status=status,
        time_s=longest.timeline.end,
        busy_s=_busy(longest.timeline.spans),
        kernels=_kernels(counted),
        copies=_copies(spans),
        critical=_critical(longest.timeline.spans),
        spans=spans,
        faults=tuple(fault for one in processes for fault in one.faults),
        findings=tuple(_findings(launches, [copy for one in processes for copy in one.copies])),
        unmodelled=tuple(sorted(unmodelled.items())),
        notes=tuple(dict.fromkeys(note for one in processes for note in one.notes)),
        launches=counted,
        left_out=tuple(sorted(left_out.items())),
        behind=_longest(processes),
        processes=tuple(len(one.timeline.spans) for one in processes),
        check=_check(processes),
        devices=longest.timeline.devices,
    )


def _check(processes: list[ProcessRun]) -> Check | None:
    if not any(one.checks for one in processes):
        return None
    found = tuple(problem for one in processes for problem in one.problems.values())
    return Check(found, sum(one.count for run in processes for one in run.launches if not one.outcome.checked))


def _longest(processes: list[ProcessRun]) -> dict[str, Analysis]:
    """The longest launch of each kernel in any process."""
    found: dict[str, Analysis] = {}
    for one in processes:
        for name, answer in one.behind.items():
            if name not in found or answer.time_s > found[name].time_s:
                found[name] = answer
    return found


def _kernels(launches: tuple[LaunchDone, ...]) -> tuple[KernelTotal, ...]:
    by_name: dict[str, list[LaunchDone]] = {}
    for launch in launches:
        by_name.setdefault(launch.kernel, []).append(launch)
    totals = {name: sum(one.count * (one.outcome.time_s or 0.0) for one in some) for name, some in by_name.items()}
    whole = sum(totals.values())
    found = []
    for name, some in by_name.items():
        predicted = [one.outcome.analysis for one in some if one.outcome.analysis and not one.outcome.estimate]
        found.append(
            KernelTotal(
                name,
                sum(one.count for one in some),
                sum(one.count for one in some if one.outcome.computed),
                sum(one.count for one in some if not one.outcome.analysis),
                totals[name],
                totals[name] / whole if whole else 0.0,
                max(predicted, key=lambda one: one.time_s, default=None),
                sum(one.count for one in some if one.outcome.estimate),
                len({id(one) for one in predicted}),
                band((one.count, one.outcome.time_s or 0.0, one.outcome.estimate) for one in some),
                pace([one.outcome.estimate for one in some if one.outcome.estimate]),
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
    ends = sorted((span.end_s, number) for number, span in enumerate(spans))
    at, found = max(range(len(spans)), key=lambda n: spans[n].end_s), dict[str, float]()
    while at >= 0:
        span = spans[at]
        found[span.name] = found.get(span.name, 0.0) + span.end_s - span.start_s
        before = spans[span.after].end_s if span.after >= 0 else 0.0
        if (idle := span.start_s - before) > 0:
            found["host"] = found.get("host", 0.0) + idle
        if span.after >= 0:
            at = span.after
            continue
        # The host was busy with earlier calls; what it waited for is the latest span that had ended by then.
        place = bisect_right(ends, (span.start_s, len(spans))) - 1
        while place >= 0 and ends[place][1] >= at:
            place -= 1
        at = ends[place][1] if place >= 0 else -1
        if at >= 0:
            found["host"] = found.get("host", 0.0) - spans[at].end_s
    return tuple(sorted(found.items(), key=lambda one: -one[1]))


def _findings(launches: tuple[LaunchDone, ...], copies: list[CopyDone]) -> list[str]:
    found = []
    if missing := [o for o in launches if not (o.outcome.computed or o.outcome.fault or o.outcome.waits)]:
        found.append(f"not computed: {_some([f'launch {one.number} ({one.kernel})' for one in missing])}")
    if read := [f"launch {one.number} ({one.kernel})" for one in launches if one.reads_lost]:
        found.append(f"given results that were not computed: {_some(read)}")
    lost = [copy.lost for copy in copies if copy.lost and copy.kind == "copy to host"]
    unset = [copy.unset for copy in copies if copy.unset and copy.kind != "fill"]
    for some, what in (
        (lost, "to the host of results that were not computed"),
        (unset, "from memory that was never written"),
    ):
        if some:
            found.append(f"{len(some)} {'copy' if len(some) == 1 else 'copies'} {what}: {_some(some)}")
    return found


def _some(names: list[str]) -> str:
    return some_text(list(dict.fromkeys(names)), MOST_NAMED)
