"""What a program did on its device: what a process leaves, and the finished result that reports render."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..analysis.result import Analysis, headed
from ..execution.emulator.watch import Problem
from ..kernel.launch.launch import Dim3
from ..support.text import json_of
from .asked import Outcome
from .timeline import Span, Timeline


@dataclass(frozen=True)
class LaunchDone:
    """One launch, or `count` in a row that found and left the same; the first has this number.

    `reads_lost` names the launches whose missing results it was given, `device` is where it ran.
    """

    number: int
    kernel: str
    grid: Dim3
    block: Dim3
    shared: int
    stream: int
    outcome: Outcome
    reads_lost: tuple[str, ...] = ()
    count: int = 1
    device: int = 0


@dataclass(frozen=True)
class CopyDone:
    """One copy or fill; `lost` is the launch whose missing results it moves, `unset` the allocation nobody wrote."""

    kind: str
    size: int
    lost: str
    unset: str


@dataclass(frozen=True)
class Fault:
    """The error of a kernel."""

    launch: int
    kernel: str
    text: str


@dataclass
class ProcessRun:
    """Everything that one process did so far; `launched` counts its launches."""

    timeline: Timeline
    behind: Mapping[str, Analysis] = field(default_factory=dict)
    """The longest launch of each kernel with its findings, if asked for."""
    launched: int = 0
    launches: list[LaunchDone] = field(default_factory=list)
    copies: list[CopyDone] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    modules: int = 0
    """Fat binaries and other images that it registered."""
    tables: int = 0
    """How often it asked for tables of the driver, as the runtime does that is linked in."""
    unmodelled: Counter[str] = field(default_factory=Counter)
    problems: dict[tuple[str, ...], tuple[int, Problem]] = field(default_factory=dict)
    """What a check found, each once, with the first launch in which it was found."""
    checks: bool = False

    def found(self, problem: Problem, launch: int = -1) -> None:
        """A check found something, perhaps again."""
        first, known = self.problems.get(problem.place, (launch, replace(problem, count=0)))
        self.problems[problem.place] = first, replace(known, count=known.count + problem.count)


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
    estimated: int = 0
    predictions: int = 0
    """Different launches that were predicted."""
    band_s: tuple[float, float] = (0.0, 0.0)
    """`total_s` if each estimated launch took the least or the most that predictions of others suggest."""
    pace_s: tuple[float, float] | None = None
    """The least and the most seconds per warp instruction of the predictions that estimates may come from."""

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
class Check:
    """Faults that a GPU would not show: each with the first launch in which it was found, or -1 for a call.

    `unchecked` launches were not emulated in full.
    """

    problems: tuple[tuple[int, Problem], ...]
    unchecked: int = 0


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
    left_out: tuple[tuple[str, int], ...] = ()
    """Launches that the user did not choose, by kernel: computed, but not predicted, and without a place in time."""
    behind: Mapping[str, Analysis] = field(default_factory=dict)
    """The longest launch of each kernel with its findings, if asked for."""
    check: Check | None = None
    processes: tuple[int, ...] = ()
    """How many of the spans, which are listed process by process, belong to each process."""
    devices: int = 1
    """How many GPUs each process sees."""

    @property
    def band_s(self) -> tuple[float, float]:
        """`time_s` if each estimated launch took the least or the most, and all waited for it."""
        less, more = (sum(one.band_s[end] - one.total_s for one in self.kernels if one.estimated) for end in (0, 1))
        return max(0.0, self.time_s + less), self.time_s + more

    @property
    def problems(self) -> int:
        """Different faults that a check found, those that ended a launch among them; 0 without one."""
        return len(self.check.problems) + len(self.faults) if self.check else 0

    @property
    def exit_status(self) -> int:
        """The program's own status, but 1 if a check found something and the program succeeded."""
        return self.status or int(self.problems > 0)

    def streams(self) -> dict[tuple[int, int, int], list[Span]]:
        """The spans of each stream in order, by process, device and handle."""
        owners = [number for number, count in enumerate(self.processes) for _ in range(count)]
        found: dict[tuple[int, int, int], list[Span]] = {}
        for process, span in zip(owners, self.spans, strict=True):
            found.setdefault((process, span.device, span.stream), []).append(span)
        return {key: sorted(found[key], key=lambda one: one.start_s) for key in sorted(found)}

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the documented keys (docs/run.md)."""
        return {
            **headed(),
            **json_of(self, "command gpu gpu_title devices clock_hz"),
            "exit_status": self.status,
            "time_s": self.time_s,
            "time_low_s": self.band_s[0],
            "time_high_s": self.band_s[1],
            "busy_s": self.busy_s,
            "kernels": [
                {
                    **json_of(one, "kernel launches computed"),
                    "without_prediction": one.unpredicted,
                    "time_s": one.total_s,
                    **json_of(one, "mean_s share estimated predictions"),
                    "time_low_s": one.band_s[0],
                    "time_high_s": one.band_s[1],
                    "warp_instruction_low_s": one.pace_s[0] if one.pace_s else None,
                    "warp_instruction_high_s": one.pace_s[1] if one.pace_s else None,
                    **_of_analysis(one.longest),
                }
                for one in self.kernels
            ],
            "copies": [{**json_of(one, "kind count bytes"), "time_s": one.total_s} for one in self.copies],
            "critical_path": [{"name": name, "time_s": seconds} for name, seconds in self.critical],
            "launches": [
                {
                    **json_of(one, "number count kernel grid block"),
                    "dynamic_shared_bytes": one.shared,
                    **json_of(one, "device stream"),
                    "time_s": one.outcome.time_s,
                    "estimated": one.outcome.estimate is not None,
                    "computed": one.outcome.computed,
                    "sampled": one.outcome.waits,
                    "warp_instructions": one.outcome.warp_instructions,
                    "kept": one.outcome.kept or None,
                }
                for one in self.launches
            ],
            "faults": json_of(self.faults),
            "left_out": dict(self.left_out),
            "findings": list(self.findings),
            "not_modelled": dict(self.unmodelled),
            "notes": list(self.notes),
            "check": self._check_dict(),
        }

    def _check_dict(self) -> dict[str, Any] | None:
        if self.check is None:
            return None
        return {
            "count": self.problems,
            "unchecked_launches": self.check.unchecked,
            "problems": [
                {
                    "kind": one.kind,
                    "launch": launch if launch >= 0 else None,
                    "kernel": one.kernel or None,
                    "where": one.where,
                    "block": list(one.block) if one.block else None,
                    "thread": list(one.thread) if one.thread else None,
                    "text": one.text,
                    "times": one.count,
                }
                for launch, one in self.check.problems
            ],
        }


def _of_analysis(found: Analysis | None) -> dict[str, Any]:
    if found is None:
        return {"limiter": None, "occupancy": None}
    return {"limiter": found.limiter, "occupancy": found.occupancy.fraction}
