"""What advice holds: findings, what-ifs and the four potential benefits. Plain data, no machinery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """A source line; `line` counts from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule's documentation: what it finds, why that costs, the evidence, what to change, code before and after."""

    name: str
    title: str
    what: str
    why: str
    evidence: str
    change: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that costs time, and what the kernel would gain without it.

    `rule` is a name that `drywarp explain` knows. `gain` is the predicted speed-up as a factor: 1.25 is 25 % faster;
    it comes from simulating the kernel again as `what_if` says, which would then be limited by `limiter`. `places`
    are the source lines that cause it, the costliest first. `evidence` is what was seen in this kernel, `remedy`
    what to do, one sentence each.
    """

    rule: str
    gain: float
    places: tuple[Place, ...]
    evidence: str
    remedy: str
    what_if: str
    limiter: str

    def lines_of(self, file: str) -> list[int]:
        """The lines that lie in `file`; where none does, all of them."""
        own = [place.line for place in self.places if place.file == file]
        return own or [place.line for place in self.places]

    def to_dict(self, source_file: str) -> dict[str, Any]:
        """As in JSON."""
        return {
            "rule": self.rule,
            "gain": self.gain,
            "lines": self.lines_of(source_file),
            "places": [{"file": place.file, "line": place.line} for place in self.places],
            "evidence": self.evidence,
            "remedy": self.remedy,
            "what_if": self.what_if,
            "limiter": self.limiter,
        }


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """One change of kernel or machine, simulated: time in seconds, speed-up as a factor, the limiter then.

    `kind` is ``ideal`` (a part of the machine that costs nothing), ``code`` (an idealised kernel), ``build`` (compiled
    again), ``launch`` or ``gpu``. Where it was not possible, `time_s`, `gain` and `limiter` are None and `note` says
    why; else `note` holds what is to be known with it.
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

    A is the kernel without overlap: x is T_mem, y T_comp. A' is it with overlap: x is T_mem less T_overlap; x + y is
    T_exec. From there B_itilp, B_fp and B_serial lead down and B_memlp to the left, to the ideal (T_mem_min, T_fp).
    Where the paper's inputs are missing, `not_applicable` says why and all numbers are 0.
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
        """Of which side of the diagonal A lies: ``compute`` or ``memory``."""
        return "compute" if self.t_comp >= self.t_mem else "memory"

    def to_dict(self) -> dict[str, Any]:
        """As in JSON: cycles."""
        if self.not_applicable:
            return {"not_applicable": self.not_applicable}
        return {
            "bound": self.bound,
            "t_exec_cycles": self.t_exec,
            "t_comp_cycles": self.t_comp,
            "t_mem_cycles": self.t_mem,
            "t_overlap_cycles": self.t_overlap,
            "t_fp_cycles": self.t_fp,
            "t_mem_min_cycles": self.t_mem_min,
            "b_itilp_cycles": self.b_itilp,
            "b_memlp_cycles": self.b_memlp,
            "b_fp_cycles": self.b_fp,
            "b_serial_cycles": self.b_serial,
        }


@dataclass(frozen=True)
class Advice:
    """What was asked for with `--advice`: all what-ifs, most gain first, and the benefit chart."""

    what_ifs: tuple[WhatIfAnswer, ...]
    chart: BenefitChart

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        return {
            "what_ifs": [
                {
                    "name": answer.name,
                    "kind": answer.kind,
                    "time_s": answer.time_s,
                    "gain": answer.gain,
                    "limiter": answer.limiter,
                    "note": answer.note,
                }
                for answer in self.what_ifs
            ],
            "benefits": self.chart.to_dict(),
        }
