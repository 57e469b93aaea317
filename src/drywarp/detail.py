"""What an answer holds beyond its figures when it is to be looked into: code, source, every curve, single issues.

Plain data, made by `in_detail/` and only where it is asked for. It is no part of the JSON object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .models.base import CurvePoint

Ticks = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One machine instruction and what it costs.

    `index` is its place in the kernel, `pc` its byte offset; `file` and `line` are ``""`` and 0 where it has no
    source line. `executions` are warp instructions of the whole grid; `stalls` warp-cycles of one SM by stall reason,
    time at a barrier at the barrier. `subsystem` is where it issues (``""``: it never ran), with λ and Λ in cycles.
    """

    index: int
    pc: int
    text: str
    class_: str
    file: str
    line: int
    executions: float
    stalls: Mapping[str, float]
    subsystem: str = ""
    lambda_cycles: float = 0.0
    latency_cycles: float = 0.0


@dataclass(frozen=True, slots=True)
class SourceText:
    """Lines of a source file: numbers, from 1, with their texts. `total` is how many it has, 0 where it was not found.

    A large file is there round the lines that have instructions.
    """

    file: str
    lines: tuple[tuple[int, str], ...]
    total: int


@dataclass(frozen=True, slots=True)
class Curve:
    """A model's curve, and what it says of this launch."""

    model: str
    summary: str
    points: tuple[CurvePoint, ...]
    time_s: float
    limiter: str


@dataclass(frozen=True, slots=True)
class Roof:
    """What one part of the machine allows for this kernel: warp instructions per cycle of one SM.

    `intensity` is warp instructions per byte that crosses it, None for what moves no bytes: there the roof is flat.
    """

    name: str
    instructions_per_cycle: float
    intensity: float | None


@dataclass(frozen=True, slots=True)
class Roofline:
    """The instruction roofline (Ding, Williams 2019): the kernel's rate under the roofs, per cycle of one SM."""

    instructions_per_cycle: float
    roofs: tuple[Roof, ...]


@dataclass(frozen=True, slots=True)
class EventNode:
    """What is issued: the instruction's index in the kernel, its subsystem's in `Events.lanes`, λ in ticks."""

    instruction: int
    lane: int
    lambda_ticks: int


@dataclass(frozen=True, slots=True)
class Lane:
    """A subsystem that instructions issue to; `instances` of it, one per partition, or 1 for the whole SM."""

    name: str
    instances: int


@dataclass(frozen=True)
class Events:
    """The first warp instructions that one SM issues, in the order of issue: one entry each in every array.

    `issue` and `completion` are ticks of 1/`ticks_per_cycle` cycle, `warp` the warp slot, `block` the block's number
    on the SM, `node` an index into `nodes`, `reason` one into `reasons`, `awaited` the entry that it waited for (-1:
    none). Warp w issues in partition w mod `partitions`. `total` is how many the SM issues in all.
    """

    issue: Ticks
    completion: Ticks
    warp: Ticks
    block: Ticks
    node: Ticks
    reason: Ticks
    awaited: Ticks
    nodes: tuple[EventNode, ...]
    lanes: tuple[Lane, ...]
    reasons: tuple[str, ...]
    partitions: int
    warps_per_block: int
    ticks_per_cycle: int
    total: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """How the subsystems that instructions issue to are busy at once, over the time of the events.

    `at_once[k]` is the share of the time in which k of them are busy, in any partition; `busy` and `alone` are by
    subsystem the share in which it is, and in which it is the only one.
    """

    at_once: tuple[float, ...]
    busy: Mapping[str, float]
    alone: Mapping[str, float]


@dataclass(frozen=True)
class Detail:
    """All of that; `missing` says of each part that is not there why not.

    `cut` says what was left out for size. `benefits` is GPUPerf's chart, cycles of one SM, under the paper's names.
    """

    code: tuple[CodeLine, ...]
    sources: tuple[SourceText, ...]
    curves: tuple[Curve, ...]
    not_applicable: Mapping[str, str]
    roofline: Roofline | None
    benefits: Mapping[str, float]
    events: Events | None
    overlap: Overlap | None
    missing: Mapping[str, str]
    cut: tuple[str, ...]
