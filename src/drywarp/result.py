"""What an analysis answers: plain data, finished before any report is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .detail import Detail
from .execution_trace import ExecutionTrace
from .finding import Advice, Finding
from .kernel.kernel import Resources
from .kernel.launch import Dim3
from .kernel.sampling import Sampling
from .models.base import CurvePoint, Prediction
from .notebook import frame, summary_html
from .pipeline.occupancy import OccupancyTrace
from .static.report import StaticReport, static_dict

SCHEMA_VERSION = 1
"""Version of the JSON contract; raised when a key is renamed or changes its meaning."""


@dataclass(frozen=True, slots=True)
class OccupancyResult:
    """Theoretical occupancy: warps and blocks per SM, fraction of the warp slots, what limits it.

    `limits` maps each resource to the blocks per SM that it alone would allow (None: any number).
    """

    warps_per_sm: int
    blocks_per_sm: int
    fraction: float
    limited_by: str
    limits: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """Memory figures of the whole grid: counts of sectors (32 bytes; on AMD GPUs their file's), bytes, and rates 0..1.

    A rate is None where nothing was accessed. `l2_method` says how L2 and DRAM figures were found.
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
class Timing:
    """Where this answer's own time went, in seconds of wall time."""

    compile_s: float
    emulate_s: float
    memory_s: float
    simulate_s: float


@dataclass(frozen=True, slots=True)
class LineCost:
    """Warp-cycles of one SM spent at a source line, waiting included.

    `share` is the fraction of all warp-cycles, `stall` the reason that takes most of them there (Nsight
    Compute's name), `text` the line itself where its file can be read. Instructions without a line stand
    under file ``""`` and line 0.
    """

    file: str
    line: int
    cycles: float
    share: float
    stall: str
    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """A figure in which prediction and measurement differ, and the factor by which it changes the time."""

    name: str
    factor: float
    reason: str


@dataclass(frozen=True, slots=True)
class MeasuredComparison:
    """A measured time beside the predicted one, both in seconds; `ratio` is predicted over measured.

    The factors of all `terms` multiplied lead from the predicted to the measured time. `place` is where the
    measurement was read.
    """

    time_s: float
    predicted_s: float
    ratio: float
    terms: tuple[Term, ...]
    place: str


@dataclass(frozen=True, slots=True)
class BandPart:
    """One thing that the time is uncertain by: it may be `low` (at most 1) to `high` (at least 1) times as long."""

    name: str
    low: float
    high: float
    reason: str


@dataclass(frozen=True, slots=True)
class Band:
    """Between which times, in seconds, the truth lies with probability `level` (docs/accuracy.md).

    `low_s` and `high_s` hold whatever clock within `clock_hz` the GPU runs at (None: the clock was given); the two
    with `at_clock` hold at the analysis's own clock. `parts` stand widest first.
    """

    level: float
    low_s: float
    high_s: float
    low_at_clock_s: float
    high_at_clock_s: float
    clock_hz: tuple[float, float] | None
    parts: tuple[BandPart, ...]


@dataclass(frozen=True)
class Analysis:
    """The answer for one kernel, launch and GPU.

    `predictions` maps model name to its prediction; `model` is the one that is believed. `time_s` is
    the kernel's GPU time without launch overhead, at `clock_hz`, with the L2 as `l2_state` says, and `band` how far
    the truth may be from it. `static` is what was assumed where nothing was emulated, else None. `findings` are what
    costs time, most gain first; `advice` is what was asked for beyond that. `trace`, on request, is who issued what
    when (docs/trace.md), and `detail` what a report shows beyond all that; both are no part of `to_dict()`.
    """

    kernel: str
    source_file: str
    arch: str
    gpu: str
    gpu_title: str
    gpu_hash: str
    clock_hz: float
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
    measured: MeasuredComparison | None = None
    static: StaticReport | None = None
    trace: ExecutionTrace | None = None
    band: Band | None = None
    findings: tuple[Finding, ...] = ()
    advice: Advice | None = None
    detail: Detail | None = None

    @property
    def prediction(self) -> Prediction:
        """The prediction of the model that is believed."""
        return self.predictions[self.model]

    @property
    def time_s(self) -> float:
        """Predicted GPU time of the kernel in seconds."""
        return self.prediction.time_s

    @property
    def limiter(self) -> str:
        """What limits the kernel: a subsystem, ``issue`` or ``latency``."""
        return self.prediction.limiter

    @property
    def verdict(self) -> str:
        """What limits the kernel, and by how much, in one sentence."""
        return verdict(self.prediction)

    def _repr_html_(self) -> str:
        """What a notebook shows of the answer: compact, and without scripts."""
        return summary_html(self.to_dict(), self.verdict)

    def to_pandas(self, table: str = "lines") -> Any:
        """A table of the answer as a pandas DataFrame: `lines`, `curve`, `stalls`, `utilization` or `models`.

        Its columns are the keys of the JSON object. Raises UsageError for another name, or without pandas.
        """
        return frame(self.to_dict(), table)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md)."""
        believed = self.prediction
        return {
            "schema_version": SCHEMA_VERSION,
            "versions": dict(self.versions),
            "kernel": self.kernel,
            "source_file": self.source_file,
            "arch": self.arch,
            "gpu": self.gpu,
            "gpu_title": self.gpu_title,
            "gpu_hash": self.gpu_hash,
            "assumptions": {"clock_hz": self.clock_hz, "l2": self.l2_state, "scheduler": self.scheduler},
            "launch": {
                "grid": list(self.grid),
                "block": list(self.block),
                "dynamic_shared_bytes": self.dynamic_shared,
                "arguments": dict(self.arguments),
                "warps_per_block": self.warps_per_block,
                "waves": self.waves,
                "sampled_blocks": self.sampled_blocks,
            },
            "resources": {
                "registers": self.resources.registers,
                "shared_bytes": self.resources.shared_bytes + self.dynamic_shared,
                "static_shared_bytes": self.resources.shared_bytes,
                "local_bytes": self.resources.local_bytes,
                "spill_bytes": self.resources.spill_bytes,
            },
            "occupancy": {
                "warps_per_sm": self.occupancy.warps_per_sm,
                "blocks_per_sm": self.occupancy.blocks_per_sm,
                "fraction": self.occupancy.fraction,
                "limited_by": self.occupancy.limited_by,
                "limits": dict(self.occupancy.limits),
                "achieved_warps_per_sm": believed.achieved_occupancy_warps,
            },
            "instructions": {
                "warp_instructions": _count(self.warp_instructions),
                "by_class": {name: _count(value) for name, value in self.by_class.items()},
            },
            **({"sampling": _sampling(self.sampling)} if self.sampling else {}),
            "memory": {
                "global_load_sectors": self.memory.global_load_sectors,
                "global_store_sectors": self.memory.global_store_sectors,
                "shared_wavefronts": self.memory.shared_wavefronts,
                "shared_conflict_degree": self.memory.shared_conflict_degree,
                "l1_hit_rate": self.memory.l1_hit_rate,
                "l2_hit_rate": self.memory.l2_hit_rate,
                "dram_bytes": self.memory.dram_bytes,
                "dram_read_bytes": self.memory.dram_read_bytes,
                "dram_write_bytes": self.memory.dram_write_bytes,
                "l2_method": self.memory.l2_method,
            },
            "prediction": {
                "time_s": believed.time_s,
                "cycles": believed.cycles,
                "model": believed.model,
                "limiter": believed.limiter,
                "verdict": self.verdict,
                "utilization": dict(believed.utilization),
                "cycles_if_only_limit": dict(believed.headroom),
            },
            **({"band": _band(self.band)} if self.band else {}),
            "models": {
                name: {"time_s": p.time_s, "cycles": p.cycles, "limiter": p.limiter}
                for name, p in self.predictions.items()
            },
            "curve": {name: [_point(point) for point in p.curve] for name, p in self.predictions.items()},
            "stalls": dict(believed.stalls),
            "lines": [
                {"file": c.file, "line": c.line, "cycles": c.cycles, "share": c.share, "stall": c.stall, "text": c.text}
                for c in self.lines
            ],
            "findings": [finding.to_dict(self.source_file) for finding in self.findings],
            **({"advice": self.advice.to_dict()} if self.advice else {}),
            **({"measured": _measured(self.measured)} if self.measured else {}),
            **({"occupancy_trace": _trace(believed.occupancy_trace)} if believed.occupancy_trace else {}),
            **({"static": static_dict(self.static)} if self.static else {}),
            "timing": {
                "compile_s": self.timing.compile_s,
                "emulate_s": self.timing.emulate_s,
                "memory_s": self.timing.memory_s,
                "simulate_s": self.timing.simulate_s,
            },
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class LaunchAnswer:
    """One launch of a series: its name, how often it runs, and its answer."""

    name: str
    times: int
    analysis: Analysis


@dataclass(frozen=True)
class LaunchSeries:
    """The launches of a launches file, in their order."""

    launches: tuple[LaunchAnswer, ...]

    @property
    def time_s(self) -> float:
        """GPU time of all launches together, each as often as it runs, without launch overhead."""
        return sum(launch.times * launch.analysis.time_s for launch in self.launches)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md)."""
        first = self.launches[0].analysis
        return {
            "schema_version": SCHEMA_VERSION,
            "versions": dict(first.versions),
            "gpu": first.gpu,
            "gpu_hash": first.gpu_hash,
            "time_s": self.time_s,
            "launches": [{"name": a.name, "times": a.times, **a.analysis.to_dict()} for a in self.launches],
        }


def _measured(found: MeasuredComparison) -> dict[str, Any]:
    return {
        "time_s": found.time_s,
        "predicted_s": found.predicted_s,
        "predicted_over_measured": found.ratio,
        "terms": [{"name": t.name, "factor": t.factor, "reason": t.reason} for t in found.terms],
        "place": found.place,
    }


def _band(band: Band) -> dict[str, Any]:
    return {
        "level": band.level,
        "low_s": band.low_s,
        "high_s": band.high_s,
        "at_clock": {"low_s": band.low_at_clock_s, "high_s": band.high_at_clock_s},
        "clock_hz": None if band.clock_hz is None else list(band.clock_hz),
        "parts": [{"name": p.name, "low": p.low, "high": p.high, "reason": p.reason} for p in band.parts],
    }


def _count(value: float) -> int | float:
    """Whole numbers as integers; a sampled estimate may have a fraction."""
    return round(value) if abs(value - round(value)) < 1e-6 * max(1.0, value) else value


def _sampling(sampling: Sampling) -> dict[str, Any]:
    return {
        "blocks": sampling.blocks,
        "of": sampling.of,
        "estimate": _count(sampling.estimate),
        "low": None if sampling.low is None else _count(sampling.low),
        "high": None if sampling.high is None else _count(sampling.high),
        "confidence": sampling.confidence,
        **({"extrapolated_loops": sampling.extrapolated_loops} if sampling.extrapolated_loops else {}),
        "basis": sampling.basis,
    }


def _trace(trace: OccupancyTrace) -> dict[str, Any]:
    """Bounds of the intervals in cycles (one more than intervals), and active warps in each."""
    return {
        "cycles": trace.cycles.tolist(),
        "active_warps": trace.active.tolist(),
        "active_warps_by_partition": trace.by_partition.tolist(),
        "mean_warps": trace.mean,
        "peak_warps": trace.peak,
        "imbalance": trace.imbalance,
        "extrapolated": trace.extrapolated,
    }


def _point(point: CurvePoint) -> dict[str, Any]:
    return {
        "occupancy_warps": point.occupancy_warps,
        "warps_per_cycle": point.warps_per_cycle,
        "time_s": point.time_s,
        "bound": point.bound,
        "cycles_per_run": point.cycles_per_run,
    }


SUBSYSTEM_WORDS = {
    "dram": "DRAM bandwidth",
    "l2": "L2 bandwidth",
    "issue": "the issue rate of the warp schedulers",
    "latency": "latency",
}
"""What a reader calls a limit; pipes go by their own names."""


def limit_words(limit: str) -> str:
    """A limit as a reader calls it: `DRAM bandwidth`, `the fma pipe`."""
    return SUBSYSTEM_WORDS.get(limit, f"the {limit} pipe")


def verdict(prediction: Prediction) -> str:
    """What limits the kernel, and by how much, in one sentence."""
    limiter, busy = prediction.limiter, prediction.utilization
    only = {name: cycles for name, cycles in prediction.headroom.items() if cycles > 0}
    if limiter == "latency":
        if not busy:
            return "Limited by latency: too few warps are in flight to keep any pipe busy."
        top = max(busy, key=lambda name: busy[name])
        gain = f", which alone would take {only[top] / prediction.cycles:.0%} of the time" if top in only else ""
        return (
            f"Limited by latency: waits are not hidden, and the busiest part, {limit_words(top)}, "
            f"is in use {busy[top]:.0%} of the time{gain}."
        )
    share = busy.get(limiter)
    text = f"Limited by {limit_words(limiter)}"
    if share is not None:
        text += f": in use {share:.0%} of the time"
    others = [(cycles, name) for name, cycles in only.items() if name not in (limiter, "latency")]
    if others and others[-1]:
        cycles, name = max(others)
        text += f"; the next limit, {limit_words(name)}, would allow {prediction.cycles / cycles:.1f} times the speed"
    return text + "."
