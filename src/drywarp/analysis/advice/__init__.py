"""Advice: what limits a kernel, which lines cause it, and what each fix gains.

Follows GPUPerf's advisor (Sim, Dasgupta, Kim, Vuduc, PPoPP 2012, §3), but each gain comes from resimulating the kernel
without its problem. `rules` detect problems, `whatif` changes what is simulated, `findings` combines both.
"""

from __future__ import annotations

from dataclasses import replace

from ...models.pipeline import Pipeline
from ..prepared import Prepared
from ..request import Options
from ..result import Analysis
from .case import Case, Setting
from .findings import findings


def add_findings(prepared: Prepared, answer: Analysis, options: Options) -> Analysis:
    """The answer with its findings, if it comes from a simulation."""
    if answer.model != Pipeline.name:
        return answer
    case = Case(Setting.of(prepared, options.warm_l2), answer.prediction)
    if options.advice:
        from .study import study  # imported here, because most answers do not need it

        found, advice = study(prepared, case, options)
        return replace(answer, findings=tuple(found), advice=advice, advised=True)
    return replace(answer, findings=tuple(findings(case, full=options.full_simulation)), advised=True)


__all__ = ["add_findings"]
