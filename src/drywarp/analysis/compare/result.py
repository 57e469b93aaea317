"""The result of a comparison: plain data, complete before any report is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from ...errors import UsageError
from ...support.by_name import figures, frame_of, table_html
from ...support.text import json_of, time_text
from ..result import SCHEMA_VERSION
from .side import Line, Side

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
        return table_html(self.gpus[0].new.kernel if self.gpus else "", rows)

    def to_pandas(self, table: str = "gpus") -> Any:
        """`gpus`, `lines` or `counts` of all GPUs as a pandas DataFrame; the column `gpu` names the GPU.

        Raises UsageError for an unknown name, or without pandas.
        """
        return frame_of([{"gpu": found.gpu} | row for found in self.gpus for row in _rows(found, table)])

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
