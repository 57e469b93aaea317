"""The contents of advice: findings, what-ifs and the four potential benefits, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, slots=True)
class BenefitChart:
    """GPUPerf's benefit chart (Sim et al. 2012, §3, Fig. 4), in cycles of an SM.

    A is the kernel without overlap: x is T_mem, y is T_comp. A' is the kernel with overlap: x is T_mem − T_overlap, so
    x + y is T_exec. From A', B_itilp, B_fp and B_serial lead down and B_memlp leads left to the ideal (T_mem_min,
    T_fp). If the paper's inputs are missing, `not_applicable` is the reason and all numbers are 0.
    """

    t_comp: float = 0.0
    t_mem: float = 0.0
    t_overlap: float = 0.0
    t_fp: float = 0.0
    t_mem_min: float = 0.0
    b_itilp: float = 0.0
    b_memlp: float = 0.0
    b_fp: float = 0.0
    b_serial: float = 0.0
    not_applicable: str = ""

    @property
    def t_exec(self) -> float:
        """T_exec = T_comp + T_mem − T_overlap (Eq. 1)."""
        return self.t_comp + self.t_mem - self.t_overlap

    @property
    def bound(self) -> str:
        """The side of the diagonal that A lies on: ``compute`` or ``memory``."""
        return "compute" if self.t_comp >= self.t_mem else "memory"

    def to_dict(self) -> dict[str, Any]:
        """As in JSON, in cycles."""
        if self.not_applicable:
            return {"not_applicable": self.not_applicable}
        terms = {f"{name}_cycles": value for name, value in json_of(self).items() if name != "not_applicable"}
        return {"bound": self.bound, "t_exec_cycles": self.t_exec, **terms}


@dataclass(frozen=True)
class Advice:
    """The result of `--advice`: all what-ifs, largest gain first, and the benefit chart."""

    what_ifs: tuple[WhatIfAnswer, ...]
    chart: BenefitChart

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        return {"what_ifs": json_of(self.what_ifs), "benefits": self.chart.to_dict()}
