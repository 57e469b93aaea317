"""The result of a comparison, and each of its sides under the names of the JSON object: plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from ...errors import DrywarpError, UsageError
from ...support.by_name import figures, notebook
from ...support.text import json_of, time_text
from ..result import SCHEMA_VERSION


class SideError(DrywarpError):
    """An answer that cannot be compared; the message gives the wrong key and what was expected."""


class Assumptions(msgspec.Struct, frozen=True):
    """The assumptions behind `time_s`; answers under different assumptions are not compared."""

    clock_hz: float
    l2: str
    scheduler: str


class Occupancy(msgspec.Struct, frozen=True):
    """Warps and blocks per SM, the fraction of the warp slots, and what limits it; achieved: the simulated average."""

    warps_per_sm: int
    blocks_per_sm: int
    fraction: float
    limited_by: str
    achieved_warps_per_sm: float | None = None


class Line(msgspec.Struct, frozen=True):
    """A source line with its warp-cycles of one SM and their share of the kernel's."""

    file: str
    line: int
    cycles: float
    share: float
    stall: str
    text: str


class Predicted(msgspec.Struct, frozen=True):
    """The primary model's answer."""

    time_s: float
    cycles: float
    model: str
    limiter: str
    verdict: str


class Launch(msgspec.Struct, frozen=True):
    """The launch: blocks and threads in x, y and z."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]


class Instructions(msgspec.Struct, frozen=True):
    """Warp instructions of the whole grid."""

    warp_instructions: float
    by_class: dict[str, float]


class Side(msgspec.Struct, frozen=True):
    """The keys of `analyze --json` that a comparison reads; other keys are allowed."""

    kernel: str
    source_file: str
    arch: str
    gpu: str
    gpu_title: str
    gpu_hash: str
    assumptions: Assumptions
    launch: Launch
    occupancy: Occupancy
    instructions: Instructions
    resources: dict[str, int | None]
    memory: dict[str, float | str | None]
    prediction: Predicted
    lines: tuple[Line, ...]
    versions: dict[str, str]
    notes: tuple[str, ...]
    counts: dict[str, float] = {}
    """Nsight Compute's metrics, if the kernel itself was available."""

    @property
    def time_s(self) -> float:
        """Predicted GPU time of the kernel in seconds."""
        return self.prediction.time_s

    def time_of(self, line: Line) -> float:
        """The part of the kernel's time spent at a line, in seconds; all lines add up to the total."""
        return line.share * self.time_s

    def figures(self) -> dict[str, float]:
        """Counts of the answer by their dotted JSON keys, without unknown ones."""
        found: dict[str, float] = {
            f"resources.{key}": value for key, value in self.resources.items() if value is not None
        }
        found["instructions.warp_instructions"] = self.instructions.warp_instructions
        found |= {f"instructions.by_class.{name}": value for name, value in self.instructions.by_class.items()}
        found |= {f"memory.{key}": v for key, v in self.memory.items() if isinstance(v, int | float)}
        return found


def side_of(content: Any) -> Side:
    """The side in a decoded JSON object. Raises SideError that names the wrong key."""
    try:
        side = msgspec.convert(content, Side)
    except (msgspec.ValidationError, RecursionError) as error:
        problem, _, place = str(error).partition(" - at `$")
        raise SideError(f"{place.rstrip('`').lstrip('.') or 'content'}: {_lower(problem)}") from None
    for name, value in (("time_s", side.time_s), ("cycles", side.prediction.cycles)):
        if not (math.isfinite(value) and value > 0):
            raise SideError(f"prediction.{name}: expected a positive number, got {value:g}")
    if not (math.isfinite(side.assumptions.clock_hz) and side.assumptions.clock_hz > 0):
        raise SideError(f"assumptions.clock_hz: expected a positive number, got {side.assumptions.clock_hz:g}")
    return side


def _lower(problem: str) -> str:
    return (problem[:1].lower() + problem[1:]).replace("`", "")


# Old and new on every GPU, complete before any report is written.

Match = Literal["same", "edited", "added", "removed"]


@dataclass(frozen=True, slots=True)
class LineChange:
    """A source line whose cost changed; `old` or `new` is None if the line exists on one side only.

    `match` tells whether its text is the same, was edited, or was added or removed. `old_s` and `new_s` are its parts
    of the kernel's time, so the changes of all lines add up to the change in time.
    """

    match: Match
    old: Line | None
    new: Line | None
    old_s: float
    new_s: float

    @property
    def change_s(self) -> float:
        """New minus old, in seconds."""
        return self.new_s - self.old_s

    def to_dict(self) -> dict[str, Any]:
        """One entry of `lines` of the documented JSON object."""
        return {
            "match": self.match,
            "change_s": self.change_s,
            "old": _line(self.old, self.old_s),
            "new": _line(self.new, self.new_s),
        }


@dataclass(frozen=True, slots=True)
class CountChange:
    """A count on both sides; None if a side does not have it."""

    name: str
    old: float | None
    new: float | None

    @property
    def change(self) -> float | None:
        """New over old, minus one; None if that is undefined."""
        if self.old is None or self.new is None or (self.old == 0 and self.new != 0):
            return None
        return self.new / self.old - 1 if self.old else 0.0


@dataclass(frozen=True, slots=True)
class GpuComparison:
    """Old and new on one GPU. `counts` has all counts, `lines` only lines whose cost changed, largest change first."""

    old: Side
    new: Side
    counts: tuple[CountChange, ...]
    lines: tuple[LineChange, ...]
    regressed: bool
    notes: tuple[str, ...] = ()

    @property
    def gpu(self) -> str:
        """Name of the GPU."""
        return self.new.gpu

    @property
    def ratio(self) -> float:
        """New time over old time."""
        return self.new.time_s / self.old.time_s

    @property
    def change(self) -> float:
        """`ratio` minus one: 0.05 is 5 % slower."""
        return self.ratio - 1

    def to_dict(self) -> dict[str, Any]:
        """One entry of `gpus` of the documented JSON object."""
        return {
            "gpu": self.gpu,
            "gpu_title": self.new.gpu_title,
            "assumptions": msgspec.structs.asdict(self.new.assumptions),
            "ratio": self.ratio,
            "change": self.change,
            "regressed": self.regressed,
            "old": _side(self.old),
            "new": _side(self.new),
            "counts": [{**json_of(count), "change": count.change} for count in self.counts],
            "lines": [line.to_dict() for line in self.lines],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Comparison:
    """Old and new on every requested GPU. `fail_above` is the slowdown that counts as a regression (None: none does).

    `left_out` maps GPUs of ``all`` that neither side can run on to the reason.
    """

    gpus: tuple[GpuComparison, ...]
    fail_above: float | None
    versions: Mapping[str, str]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def regressed(self) -> bool:
        """Whether the new kernel is slower than allowed on any GPU."""
        return any(gpu.regressed for gpu in self.gpus)

    def _repr_html_(self) -> str:
        """Notebook view: old and new time on each GPU."""
        rows = [
            {
                "GPU": found.gpu, "old": time_text(found.old.time_s), "new": time_text(found.new.time_s),
                "change": f"{found.change:+.1%}", "limited by": found.new.prediction.limiter,
            }
            for found in self.gpus
        ]  # fmt: skip
        return str(notebook().table_html(self.gpus[0].new.kernel if self.gpus else "", rows))

    def to_pandas(self, table: str = "gpus") -> Any:
        """`gpus`, `lines` or `counts` of all GPUs as a pandas DataFrame; the column `gpu` names the GPU.

        Raises UsageError for an unknown name, or without pandas.
        """
        return notebook().frame_of([{"gpu": found.gpu} | row for found in self.gpus for row in _rows(found, table)])

    def figure(self, **settings: Any) -> Any:
        """Old and new time on every GPU as a Matplotlib figure (docs/figures.md): `theme`, and `width` in inches."""
        rows = [
            figures().Bar(found.gpu, side.time_s, note=side.prediction.limiter + change, group=group)
            for found in self.gpus
            for group, side, change in (("old", found.old, ""), ("new", found.new, f", {found.change:+.1%}"))
        ]
        return figures().bars(rows, self.gpus[0].new.kernel if self.gpus else "", **settings)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/compare.md)."""
        return {
            "schema_version": SCHEMA_VERSION,
            "versions": dict(self.versions),
            "fail_above": self.fail_above,
            "regressed": self.regressed,
            "gpus": [gpu.to_dict() for gpu in self.gpus],
            "left_out": dict(self.left_out),
        }


def _rows(found: GpuComparison, table: str) -> list[dict[str, Any]]:
    if table == "gpus":
        return [{"old_s": found.old.time_s, "new_s": found.new.time_s, "change": found.change}]
    if table == "counts":
        return [{**json_of(count), "change": count.change} for count in found.counts]
    if table == "lines":
        sides = [(change, change.new or change.old) for change in found.lines]
        return [
            {"match": c.match, "line": line.line, "text": line.text, "old_s": c.old_s, "new_s": c.new_s}
            for c, line in sides
            if line is not None
        ]
    raise UsageError(f"table {table!r}: expected gpus, lines or counts")


def _line(line: Line | None, time_s: float) -> dict[str, Any] | None:
    return None if line is None else {**msgspec.structs.asdict(line), "time_s": time_s}


def _side(side: Side) -> dict[str, Any]:
    return {
        **json_of(side, "kernel source_file arch gpu_hash versions"),
        "launch": json_of(msgspec.structs.asdict(side.launch)),
        "time_s": side.time_s,
        "cycles": side.prediction.cycles,
        "model": side.prediction.model,
        "limiter": side.prediction.limiter,
        "verdict": side.prediction.verdict,
        "occupancy": msgspec.structs.asdict(side.occupancy),
        "notes": list(side.notes),
    }
