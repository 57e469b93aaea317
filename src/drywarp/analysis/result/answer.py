"""An analysis's answer as plain data, and what limits the kernel, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ...execution.symbolic.report import StaticReport
from ...kernel.kernel import Resources
from ...kernel.launch.launch import Dim3
from ...kernel.profile import Sampling
from ...models.base import UNKNOWN_LIMIT, Prediction
from ...support.text import json_of
from .detail import Advice, Detail, ExecutionTrace, Finding


@cache
def limit_names() -> dict[str, str]:
    """What may limit a kernel, subsystems of the GPU files included, in a CUDA programmer's words."""
    file = Path(__file__).parents[1] / "advice" / "limits.toml"
    rows = msgspec.toml.decode(file.read_bytes(), type=dict[str, dict[str, Any]])["limiters"]
    return {name: row.get("words", row["title"]) for name, row in rows.items()}


def limit_words(limit: str) -> str:
    """A limit in plain words: `DRAM bandwidth`, `the load-store unit`."""
    return limit_names().get(limit, f"the {limit} unit")


def unit_words(name: str) -> str:
    """A part of the GPU as a table names it, with its name in GPU files: `load-store unit (lsu)`, `DRAM`."""
    said = {"dram": "DRAM", "l2": "L2", "issue": "issue slots"}.get(name, limit_words(name).removeprefix("the "))
    return said if name in ("dram", "l2", "issue", said) else f"{said} ({name})"


MATTERS, _NEARLY_ALL = 0.05, 0.95
"""Shares of the time above which the kernel's start is mentioned, and above which it is all that matters."""


def verdict(prediction: Prediction, start: float = 0.0, why: str = "") -> str:
    """What limits the kernel, and by how much, in a sentence; `start` is the share of the time outside its execution.

    `why` is the reason if the limit is unknown.
    """
    said = _limit(prediction, why)
    if start < MATTERS:
        return said
    most = "Nearly all" if start > _NEARLY_ALL else f"{start:.0%}"
    return f"{most} of the time is the kernel's start; after it, {said[0].lower()}{said[1:]}"


def _limit(prediction: Prediction, why: str) -> str:
    limiter, busy = prediction.limiter, prediction.utilization
    if limiter == UNKNOWN_LIMIT:
        return "The limit is unknown" + (f": {why}." if why else ".")
    if limiter == "latency":
        if not busy:
            return "Latency-bound: too few warps are in flight to keep any unit busy."
        top = max(busy, key=lambda name: busy[name])
        return f"Latency-bound: no unit is saturated (busiest: {limit_words(top)}, {busy[top]:.0%} of the time)."
    share = busy.get(limiter)
    text = f"Limited by {limit_words(limiter)}"
    if share is not None:
        text += f": in use {share:.0%} of the time"
    only = {name: cycles for name, cycles in prediction.headroom.items() if cycles > 0}
    others = [(cycles, name) for name, cycles in only.items() if name not in (limiter, "latency")]
    if others:
        cycles, name = max(others)
        text += f"; the next limit, {limit_words(name)}, would allow {prediction.cycles / cycles:.1f}× the speed"
    return text + "."


# The result of an analysis: plain data, complete before any report is written.


@dataclass(frozen=True, slots=True)
class OccupancyResult:
    """Theoretical occupancy: warps and blocks per SM, fraction of the warp slots, and what limits it.

    `limits` maps each resource to the blocks per SM that it alone would allow (None: any number).
    """

    warps_per_sm: int
    blocks_per_sm: int
    fraction: float
    limited_by: str
    limits: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """Memory figures of the whole grid: sectors (32 bytes; on AMD GPUs as in the GPU file), bytes, and rates 0..1.

    A rate is None if nothing was accessed. `l2_method` is how the L2 and DRAM figures were found.
    """

    global_load_sectors: int
    global_store_sectors: int
    shared_wavefronts: int
    shared_conflict_degree: float | None
    l1_hit_rate: float | None
    l2_hit_rate: float | None
    dram_bytes: int
    dram_read_bytes: int
    dram_write_bytes: int
    l2_method: str


@dataclass(frozen=True, slots=True)
class Rate:
    """What the kernel achieves of one rate of the GPU, both in `unit` per second, over its whole duration.

    `name` is a kind of operation (`fp32`, `tensor f16`), ``dram`` or ``l2``. `peak` is that of the GPU: what its units
    issue, the memory's theoretical bandwidth, the L2's bandwidth in the GPU file.
    """

    name: str
    unit: str
    achieved: float
    peak: float


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall time spent on this answer, in seconds per step."""

    compile_s: float
    emulate_s: float
    memory_s: float
    simulate_s: float


@dataclass(frozen=True, slots=True)
class LineCost:
    """Warp-cycles of one SM spent at a source line, including waiting.

    `share` is the fraction of all warp-cycles, `stall` the largest stall reason there (Nsight Compute's name), `text`
    the line itself if its file can be read. Instructions without a line are listed under file ``""`` and line 0.
    """

    file: str
    line: int
    cycles: float
    share: float
    stall: str
    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """A figure that differs between prediction and measurement, and the factor by which it changes the time."""

    name: str
    factor: float
    reason: str


@dataclass(frozen=True, slots=True)
class MeasuredComparison:
    """A measured and a predicted time, both in seconds; `ratio` is predicted over measured.

    The product of all `terms`' factors leads from the predicted to the measured time. `place` is where the measurement
    was read.
    """

    time_s: float
    predicted_s: float
    ratio: float
    terms: tuple[Term, ...]
    place: str

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        own = json_of(self, "time_s predicted_s")
        return {**own, "predicted_over_measured": self.ratio, **json_of(self, "terms place")}


@dataclass(frozen=True, slots=True)
class BandPart:
    """One source of uncertainty: the time may be `low` (at most 1) to `high` (at least 1) times as long."""

    name: str
    low: float
    high: float
    reason: str


@dataclass(frozen=True, slots=True)
class Band:
    """The interval, in seconds, that contains the true time with probability `level` (docs/accuracy.md).

    `low_s` and `high_s` hold for any GPU clock within `clock_hz` (None: the clock was given); the two with `at_clock`
    hold at the analysis's own clock. `parts` are sorted widest first.
    """

    level: float
    low_s: float
    high_s: float
    low_at_clock_s: float
    high_at_clock_s: float
    clock_hz: tuple[float, float] | None
    parts: tuple[BandPart, ...]

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        at_clock = {"low_s": self.low_at_clock_s, "high_s": self.high_at_clock_s}
        return {**json_of(self, "level low_s high_s"), "at_clock": at_clock, **json_of(self, "clock_hz parts")}


@dataclass(frozen=True, slots=True)
class GpuBeside:
    """The same launch on another GPU, at `clock_hz`; `ratio` is its time over that of the answer.

    `low_s` and `high_s` are the ends of its band (None: unknown), `occupancy` a fraction of the warp slots.
    """

    gpu: str
    gpu_title: str
    gpu_hash: str
    arch: str
    clock_hz: float
    time_s: float
    low_s: float | None
    high_s: float | None
    ratio: float
    limiter: str
    warps_per_sm: int
    occupancy: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryBounds:
    """The range of DRAM reads, in bytes, if sharing between blocks in the L2 could not be simulated in full.

    With maximal sharing the kernel takes `fastest_s`, with none `slowest_s`; `limiters` are its limits at the fast end,
    at the answer's own figure and at the slow end, without duplicates.
    """

    least_read_bytes: float
    most_read_bytes: float
    fastest_s: float
    slowest_s: float
    limiters: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        return {
            "dram_read_bytes": [round(self.least_read_bytes), round(self.most_read_bytes)],
            "time_s": [self.fastest_s, self.slowest_s],
            "limiters": list(self.limiters),
        }


_WHY = "it differs between the least and the most that DRAM may have to read"


@dataclass(frozen=True)
class Answer:
    """The answer for one kernel, launch and GPU, as plain data (`Analysis` adds JSON, figures and tables).

    `predictions` maps model names to predictions; `model` is the primary model. `time_s` is the kernel's duration as a
    profiler reports it, at `clock_hz` and with the L2 in `l2_state`; `start_s` of it is before the first and after the
    last instruction. `band` is its uncertainty; `bounds` is set if memory traffic is only known as a range; `doubts`
    are reasons not to trust the answer as a whole. `static` holds the assumptions if nothing was emulated, else None.
    `findings` are what costs time, largest gain first; `advice` holds the further what-ifs if requested. `trace`, on
    request, records each warp's issues over time (docs/trace.md), and `detail` is what a report shows beyond that;
    neither is part of the JSON object. `compared` has the same launch on other GPUs, `throughput` the rates
    achieved. `advised` tells whether fixes were tried, so that no findings means that no fix pays off.
    """

    kernel: str
    source_file: str
    arch: str
    gpu: str
    gpu_title: str
    gpu_hash: str
    clock_hz: float
    start_s: float
    l2_state: str
    scheduler: str
    grid: Dim3
    block: Dim3
    dynamic_shared: int
    arguments: Mapping[str, str]
    resources: Resources
    occupancy: OccupancyResult
    warps_per_block: int
    waves: float
    warp_instructions: float
    by_class: Mapping[str, float]
    memory: MemoryResult
    predictions: Mapping[str, Prediction]
    model: str
    sampled_blocks: int
    timing: Timing
    versions: Mapping[str, str]
    lines: tuple[LineCost, ...] = ()
    notes: tuple[str, ...] = field(default=())
    sampling: Sampling | None = None
    cluster: Dim3 = (1, 1, 1)
    measured: MeasuredComparison | None = None
    static: StaticReport | None = None
    trace: ExecutionTrace | None = None
    band: Band | None = None
    bounds: MemoryBounds | None = None
    doubts: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    advice: Advice | None = None
    detail: Detail | None = None
    compared: tuple[GpuBeside, ...] = ()
    throughput: tuple[Rate, ...] = ()
    advised: bool = False

    @property
    def prediction(self) -> Prediction:
        """The primary model's prediction."""
        return self.predictions[self.model]

    @property
    def time_s(self) -> float:
        """Predicted duration of the kernel in seconds."""
        return self.prediction.time_s

    @property
    def limiter(self) -> str:
        """What limits the kernel: a subsystem, ``issue`` or ``latency``."""
        return self.prediction.limiter

    @property
    def verdict(self) -> str:
        """What limits the kernel, and by how much, in one sentence."""
        return verdict(self.prediction, self.start_s / self.time_s if self.time_s else 0.0, _WHY if self.bounds else "")
