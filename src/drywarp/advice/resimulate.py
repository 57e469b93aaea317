"""A setting simulated at the launch's occupancy: its time and what limits it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..models.base import Prediction
from ..models.pipeline import limiter, utilization
from ..pipeline.blocks import share_of
from ..pipeline.extrapolate import CURVE_BUDGET, instructions, simulate
from .setting import Setting

BUDGET, ESTIMATED = CURVE_BUDGET, 1_000_000
"""Warp instructions that one what-if may simulate, as a point of the curve; and where it takes more: estimates do
with fewer."""

ALL_TOGETHER, AT_LEAST = 4_000_000, 3
"""Warp instructions that all what-ifs of an answer may simulate where nobody asked for advice, and how many of them are
simulated in any case."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Time in SM cycles and in seconds, and the limiter."""

    cycles: float
    time_s: float
    limiter: str


def budget_for(setting: Setting) -> int:
    """What a what-if of this kernel may simulate."""
    return BUDGET if _total(setting) <= BUDGET else ESTIMATED


def affordable(setting: Setting) -> int:
    """How many what-ifs an answer may simulate that was not asked for advice."""
    return max(AT_LEAST, ALL_TOGETHER // max(1, min(_total(setting), budget_for(setting))))


def _total(setting: Setting) -> int:
    bound = setting.bound
    return instructions(bound, share_of(bound, bound.blocks_per_sm).blocks)


def resimulate(setting: Setting, budget: int = BUDGET, full: bool = False) -> Outcome:
    """One simulation of the launch's own point, without stall reasons."""
    bound = setting.bound
    result = simulate(bound, share_of(bound, bound.blocks_per_sm), budget, stalls=False, full=full)
    cycles = result.cycles * setting.part
    return Outcome(cycles, bound.duration_s(cycles), limiter(utilization(bound, result)))


def baseline(setting: Setting, prediction: Prediction, budget: int = BUDGET, full: bool = False) -> Outcome:
    """The kernel as it is: the prediction itself where what-ifs are simulated as closely, else simulated like them."""
    if full or _total(setting) <= budget:
        return Outcome(prediction.cycles, prediction.time_s, prediction.limiter)
    return resimulate(setting, budget)


def resimulate_all(settings: Sequence[Setting], budget: int = BUDGET, full: bool = False) -> list[Outcome]:
    """Each setting's outcome; the compiled loop runs on all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        outcomes: Iterable[Outcome] = threads.map(lambda setting: resimulate(setting, budget, full), settings)
        return list(outcomes)
