"""What costs time in a kernel: every rule is asked, and what it suspects is simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..finding import Finding
from .case import Case
from .resimulate import Outcome, affordable, baseline, budget_for, resimulate_all
from .rules import all_rules
from .rules.base import Suspicion

LEAST_GAIN = 1.02
"""A finding gains at least so much; less is within what the simulation can tell."""


def suspicions(case: Case) -> dict[str, Suspicion]:
    """By rule, what each sees."""
    if not case.prediction.node_stalls:
        return {}  # only a simulation says where the time goes
    looked = ((name, rule.look(case)) for name, rule in all_rules().items())
    return {name: suspicion for name, suspicion in looked if suspicion is not None}


def simulated(case: Case, suspected: Mapping[str, Suspicion], budget: int, full: bool = False) -> list[Finding]:
    """The findings, most gain first, those under `LEAST_GAIN` left out."""
    changed = {name: suspicion.what_if.apply(case.setting) for name, suspicion in suspected.items()}
    settings = {name: setting for name, setting in changed.items() if setting is not None}
    if not settings:
        return []
    base = baseline(case.setting, case.prediction, budget, full)
    outcomes = dict(zip(settings, resimulate_all(list(settings.values()), budget, full), strict=True))
    return ranked([finding_of(name, suspected[name], base, outcome) for name, outcome in outcomes.items()])


def finding_of(rule: str, suspicion: Suspicion, base: Outcome, outcome: Outcome) -> Finding:
    """A finding from what a rule suspects and what the simulation says of it."""
    gain = base.time_s / outcome.time_s if outcome.time_s > 0 else float("inf")
    return Finding(
        rule, gain, suspicion.places, suspicion.evidence, suspicion.remedy, suspicion.what_if.name, outcome.limiter
    )


def ranked(found: Sequence[Finding]) -> list[Finding]:
    """Those that pay, most gain first; equals by name."""
    return sorted((f for f in found if f.gain >= LEAST_GAIN), key=lambda f: (-f.gain, f.rule))


def findings(case: Case, full: bool = False) -> list[Finding]:
    """What costs time, and what each fix is worth: of a kernel that takes long to simulate only what weighs most."""
    seen = suspicions(case)
    heaviest = sorted(seen, key=lambda name: -seen[name].weight)[: affordable(case.setting)]
    return simulated(case, {name: seen[name] for name in heaviest}, budget_for(case.setting), full)
