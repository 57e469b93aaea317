"""What an analysis answers: plain data, finished before any report is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..detail import Detail
from ..execution_trace import ExecutionTrace
from ..figures import figure
from ..finding import Advice, Finding
from ..kernel.kernel import Resources
from ..kernel.launch import Dim3
from ..kernel.sampling import Sampling
from ..models.base import Prediction
from ..notebook import frame, summary_html
from ..static.report import StaticReport
from .to_json import analysis_dict
from .verdict import verdict


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


@dataclass(frozen=True, slots=True)
class MemoryBounds:
    """Between which bytes DRAM reads lie where what blocks share in the L2 could not be followed to the end.

    With all that blocks may share the kernel takes `fastest_s`, with nothing `slowest_s`; `limiters` are what limits
    it at the one end, by the answer's own figure and at the other, without repetition.
    """

    least_read_bytes: float
    most_read_bytes: float
    fastest_s: float
    slowest_s: float
    limiters: tuple[str, ...]


_WHY = "the extremes of what DRAM may have to read differ in that"


@dataclass(frozen=True)
class Analysis:
    """The answer for one kernel, launch and GPU.

    `predictions` maps model name to its prediction; `model` is the one that is believed. `time_s` is
    the kernel's duration as a profiler states it, `start_s` of it before its first and behind its last instruction,
    at `clock_hz`, with the L2 as `l2_state` says, and `band` how far the truth may be from it; `bounds` is there where
    memory traffic is known only between extremes, and `doubts` say why the answer as a whole is not to be trusted.
    `static` is what was assumed where nothing was emulated, else None. `findings` are what costs time, most gain first;
    `advice` is what was asked for beyond that. `trace`, on request, is who issued what when (docs/trace.md), and
    `detail` what a report shows beyond all that; both are no part of `to_dict()`.
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
    measured: MeasuredComparison | None = None
    static: StaticReport | None = None
    trace: ExecutionTrace | None = None
    band: Band | None = None
    bounds: MemoryBounds | None = None
    doubts: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    advice: Advice | None = None
    detail: Detail | None = None

    @property
    def prediction(self) -> Prediction:
        """The prediction of the model that is believed."""
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

    def _repr_html_(self) -> str:
        """What a notebook shows of the answer: compact, and without scripts."""
        return summary_html(self.to_dict(), self.verdict)

    def figure(self, name: str, **settings: Any) -> Any:
        """A Matplotlib figure of the answer, such as ``"occupancy"`` (docs/figures.md names all).

        `settings` are `theme` ("light" or "dark"), `width` in inches, and those of each figure's function in
        `drywarp.figures`. Raises UsageError for another name, what the answer does not hold, or without Matplotlib.
        """
        return figure(self, name, **settings)

    def to_pandas(self, table: str = "lines") -> Any:
        """A table of the answer as a pandas DataFrame: `lines`, `curve`, `stalls`, `utilization` or `models`.

        Its columns are the keys of the JSON object. Raises UsageError for another name, or without pandas.
        """
        return frame(self.to_dict(), table)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md)."""
        return analysis_dict(self)
