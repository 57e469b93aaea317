"""Advice that pays: what limits a kernel, which lines cause it, and what each fix is worth.

As GPUPerf's advisor (Sim, Dasgupta, Kim, Vuduc, PPoPP 2012, §3), but each gain comes from simulating the kernel again
without its problem. `rules` see problems, `whatifs` change what is simulated, `findings` puts both together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import ParamSpec, TypeVar

from .. import api
from ..models.pipeline import Pipeline
from ..ready import BoundKernel, Options
from ..result import Analysis
from .case import Case
from .findings import findings
from .setting import Setting

P = ParamSpec("P")
R = TypeVar("R")


def add_findings(ready: BoundKernel, answer: Analysis, options: Options) -> Analysis:
    """The answer with its findings, where it stands on a simulation."""
    if answer.model != Pipeline.name:
        return answer
    case = Case(Setting.of(ready, options.warm_l2), answer.prediction)
    if options.advice:
        from .study import study  # here, because most answers do without

        found, advice = study(ready, case, options)
        return replace(answer, findings=tuple(found), advice=advice)
    return replace(answer, findings=tuple(findings(case, full=options.full_simulation)))


def _advised(plain: Callable[P, R]) -> Callable[P, R]:
    """The same function of the API, whose answers have findings."""

    @wraps(plain)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        options = kwargs.get("options")
        chosen = options if isinstance(options, Options) else Options()
        kwargs["options"] = chosen if chosen.advise else replace(chosen, advise=add_findings)
        return plain(*args, **kwargs)

    return run


analyze = _advised(api.analyze)

__all__ = ["add_findings", "analyze"]
