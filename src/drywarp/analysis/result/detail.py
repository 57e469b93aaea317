"""The contents of advice: findings, what-ifs and the four potential benefits, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernel.instruction import Instruction
from ...kernel.kernel import Kernel
from ...models.base import CurvePoint
from ...models.gpuperf_terms import BenefitChart
from ...pipeline.execution import Execution, execution
from ...support.text import json_of
from ...workload.cost import CostedWorkload, Subsystem


@dataclass(frozen=True, slots=True)
class Place:
    """A source line; `line` counts from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule's documentation: what it finds, why that costs time, the evidence, what to change, and example code."""

    name: str
    title: str
    what: str
    why: str
    evidence: str
    change: str
    before: str
    after: str


LEAST_GAIN = 1.02  # of a finding; smaller gains are below the simulation's resolution


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that costs time, and the kernel's gain without it.

    `rule` is a name for `drywarp explain`. `gain` is the predicted speed-up as a factor: 1.25 is 25 % faster. It comes
    from simulating the kernel with `what_if` applied; the kernel would then be limited by `limiter`. `places` are the
    source lines that cause it, costliest first. `evidence` is what was observed in this kernel, `remedy` what to do,
    one sentence each.
    """

    rule: str
    gain: float
    places: tuple[Place, ...]
    evidence: str
    remedy: str
    what_if: str
    limiter: str

    def lines_of(self, file: str) -> list[int]:
        """The lines in `file`; if there are none, all lines."""
        own = [place.line for place in self.places if place.file == file]
        return own or [place.line for place in self.places]

    def to_dict(self, source_file: str) -> dict[str, Any]:
        """As in JSON."""
        rest = json_of(self, "places evidence remedy what_if limiter")
        return {**json_of(self, "rule gain"), "lines": self.lines_of(source_file), **rest}


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """One simulated change of kernel or GPU: time in seconds, speed-up as a factor, and the resulting limiter.

    `kind` is ``ideal`` (a part of the GPU that costs nothing), ``code`` (an idealised kernel), ``build`` (recompiled),
    ``launch`` or ``gpu``. If the change was impossible, `time_s`, `gain` and `limiter` are None and `note` is the
    reason; otherwise `note` holds remarks.
    """

    name: str
    kind: str
    time_s: float | None
    gain: float | None
    limiter: str | None
    note: str = ""


@dataclass(frozen=True)
class Advice:
    """The result of `--advice`: all what-ifs, largest gain first, and the benefit chart."""

    what_ifs: tuple[WhatIfAnswer, ...]
    chart: BenefitChart

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        return {"what_ifs": json_of(self.what_ifs), "benefits": self.chart.to_dict()}


# The detail of an answer beyond its figures: code, source, every model's curve, single issues.
#
# Plain data, built by `drywarp.analysis.detail` on request only. It is not part of the JSON object.

Ticks = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One machine instruction and what it costs.

    `index` is its position in the kernel, `pc` its byte offset; `file` and `line` are ``""`` and 0 if it has no source
    line. `executions` are warp instructions of the whole grid; `stalls` are warp-cycles of one SM by stall reason, with
    time at a barrier shown at the barrier. `subsystem` is where it issues (``""``: never ran), with λ and Λ in cycles.
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
    """Lines of a source file: numbers, from 1, with their texts. `total` is its line count, 0 if it was not found.

    A large file is reduced to the lines near instructions.
    """

    file: str
    lines: tuple[tuple[int, str], ...]
    total: int


@dataclass(frozen=True, slots=True)
class Curve:
    """A model's curve, and its prediction of this launch."""

    model: str
    summary: str
    points: tuple[CurvePoint, ...]
    time_s: float
    limiter: str


@dataclass(frozen=True, slots=True)
class Roof:
    """What one part of the GPU allows for this kernel, in the units of its roofline.

    `intensity` is work per byte moved through it; None if it moves no bytes, which makes the roof flat.
    """

    name: str
    rate: float
    intensity: float | None


@dataclass(frozen=True, slots=True)
class Roofline:
    """The kernel's rate under the roofs of the GPU's parts.

    `work` is ``warp instructions``, per cycle of one SM (Ding, Williams 2019), or ``FLOP`` or ``integer operations``,
    per second of the whole GPU (Williams et al. 2009). `total` is the work of the grid by kind; `uncounted` are opcodes
    whose operations are unknown.
    """

    work: str
    rate: float
    roofs: tuple[Roof, ...]
    total: Mapping[str, float] = field(default_factory=dict)
    uncounted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventNode:
    """An issued node: the instruction's index in the kernel, its subsystem's index in `Events.lanes`, λ in ticks."""

    instruction: int
    lane: int
    lambda_ticks: int


@dataclass(frozen=True, slots=True)
class Lane:
    """A subsystem that instructions issue to, with its `instances`: one per partition, or 1 for the whole SM."""

    name: str
    instances: int


@dataclass(frozen=True)
class Events:
    """The first warp instructions that one SM issues, in issue order: one entry each in every array.

    `issue` and `completion` are in ticks of 1/`ticks_per_cycle` cycle, `warp` is the warp slot, `block` the block's
    number on the SM, `node` an index into `nodes`, `reason` an index into `reasons`, `awaited` the entry that it waited
    for (-1: none). Warp w issues in partition w mod `partitions`. `total` is how many the SM issues in total.
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
    """How the subsystems that instructions issue to overlap, over the time of the events.

    `at_once[k]` is the share of the time in which k of them are busy, in any partition. `busy` and `alone` map each
    subsystem to the share in which it is busy, and in which it is the only busy one.
    """

    at_once: tuple[float, ...]
    busy: Mapping[str, float]
    alone: Mapping[str, float]


@dataclass(frozen=True)
class Detail:
    """The complete detail; `missing` maps each missing part to the reason.

    `cut` lists what was omitted for size. `benefits` is GPUPerf's chart in cycles of one SM, under the paper's names.
    """

    code: tuple[CodeLine, ...]
    sources: tuple[SourceText, ...]
    curves: tuple[Curve, ...]
    not_applicable: Mapping[str, str]
    roofline: Roofline | None
    instruction_roofline: Roofline | None
    benefits: Mapping[str, float]
    events: Events | None
    overlap: Overlap | None
    missing: Mapping[str, str]
    cut: tuple[str, ...]


# An execution annotated with each instruction's opcode, source line, and pipe.

DEFAULT_EVENTS = 500_000
"""Default number of events in a trace: some 60 MB of JSON."""


@dataclass(frozen=True, slots=True)
class TracedInstruction:
    """An instruction's opcode with modifiers, its text, and its source line (empty file and 0: none)."""

    opcode: str
    text: str
    file: str
    line: int


@dataclass(frozen=True)
class ExecutionTrace:
    """An execution; `instructions` describes each of its nodes, `notes` what was left out."""

    execution: Execution
    instructions: tuple[TracedInstruction, ...]
    subsystems: tuple[Subsystem, ...]
    notes: tuple[str, ...]


def trace_execution(kernel: Kernel, workload: CostedWorkload, most_events: int) -> ExecutionTrace:
    """Simulate a launch again and record what its warps did, up to `most_events` events."""
    found = execution(workload, most_events)
    words = tuple(_words(kernel.instructions[node.instruction]) for node in found.nodes)
    return ExecutionTrace(found, words, workload.subsystems, tuple(_notes(found)))


def _words(instruction: Instruction) -> TracedInstruction:
    place = instruction.source
    file, line = (place.file, place.line) if place else ("", 0)
    return TracedInstruction(instruction.full_opcode, instruction.text, file, line)


def _notes(found: Execution) -> list[str]:
    notes = []
    if found.blocks < found.of:
        notes.append(f"the trace covers the SM's first {found.blocks} of {found.of} blocks, simulated in isolation")
    kept = len(found.issue)
    if kept < found.issued:
        notes.append(
            f"the trace ends after {kept:,} of {found.issued:,} warp instructions, {found.end / found.total:.0%} "
            "of the time (--events allows more)"
        )
    return notes
