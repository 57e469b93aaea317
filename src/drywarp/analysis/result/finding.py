"""The contents of advice: findings, what-ifs and the four potential benefits, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...models.gpuperf_terms import BenefitChart
from ...support.text import json_of


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
