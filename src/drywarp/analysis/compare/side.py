"""One side of a comparison: the compared fields of one answer, new or saved, under their JSON names."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ...errors import DrywarpError


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
