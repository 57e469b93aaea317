"""Findings with their simulated gains, and GPUPerf's benefit chart (Sim et al. 2012, §3, §4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...models.base import NotApplicable
from ...models.gpuperf import benefits_of
from ...models.gpuperf_terms import BenefitChart
from ...models.throughput import ISSUE
from ..every_model import with_producers
from ..prepared import Prepared
from ..result.detail import LEAST_GAIN, Finding
from .case import Case, Setting
from .resimulate import Outcome, affordable, baseline, budget_for, resimulate_all, reuse_by_buffer
from .rules import all_rules
from .rules.base import Suspicion
from .rules.collisions import conflict_free
from .rules.divergence import no_divergence
from .rules.redundant_loads import loaded_once
from .rules.uncoalesced_access import coalesced
from .rules.uneven_work import balanced_partitions, even_grid
from .whatif import (
    LEVELS,
    WhatIf,
    ideal_latency,
    ideal_level,
    ideal_rate,
    more_independent_instructions,
    more_loads_in_flight,
    no_barriers,
    no_fixed_latency,
    splits,
    used,
)


def benefit_chart(prepared: Prepared) -> BenefitChart:
    """The kernel's point in the chart, and the benefits that lead from it to the ideal."""
    try:
        return benefits_of(with_producers(prepared))
    except NotApplicable as reason:
        return BenefitChart(not_applicable=str(reason))


# What costs time in a kernel: every rule is run, and its suspicion is simulated.


def suspicions(case: Case) -> dict[str, Suspicion]:
    """The suspicion of each rule that has one."""
    if not case.prediction.node_stalls:
        return {}  # only a simulation shows where the time goes
    looked = ((name, rule.look(case)) for name, rule in all_rules().items())
    return {name: suspicion for name, suspicion in looked if suspicion is not None}


def simulated(case: Case, suspected: Mapping[str, Suspicion], budget: int, full: bool = False) -> list[Finding]:
    """The findings of at least `LEAST_GAIN`, largest gain first."""
    changed = {name: suspicion.what_if.apply(case.setting) for name, suspicion in suspected.items()}
    settings = {name: setting for name, setting in changed.items() if setting is not None}
    if not settings:
        return []
    base = baseline(case.setting, case.prediction, budget, full)
    outcomes = dict(zip(settings, resimulate_all(list(settings.values()), budget, full), strict=True))
    return ranked([finding_of(name, suspected[name], base, outcome) for name, outcome in outcomes.items()])


def finding_of(rule: str, suspicion: Suspicion, base: Outcome, outcome: Outcome) -> Finding:
    """A finding from a rule's suspicion and its simulated outcome."""
    gain = base.time_s / outcome.time_s if outcome.time_s > 0 else float("inf")
    return Finding(
        rule, gain, suspicion.places, suspicion.evidence, suspicion.remedy, suspicion.what_if.name, outcome.limiter
    )


def ranked(found: Sequence[Finding]) -> list[Finding]:
    """The findings with enough gain, largest first; ties by name."""
    return sorted((f for f in found if f.gain >= LEAST_GAIN), key=lambda f: (-f.gain, f.rule))


def findings(case: Case, full: bool = False) -> list[Finding]:
    """What costs time, and the gain of each fix; only the heaviest if the kernel takes long to simulate."""
    seen = suspicions(case)
    heaviest = sorted(seen, key=lambda name: -seen[name].weight)[: affordable(case.setting)]
    return simulated(case, {name: seen[name] for name in heaviest}, budget_for(case.setting), full)


# Every what-if of `--advice`, except those that recompile the kernel.


def ideals(setting: Setting) -> list[WhatIf]:
    """Each used part of the GPU at no cost: every λ, every pipe's Λ, and every memory level."""
    costed = setting.costed
    names = [s.name for s in costed.subsystems if used(costed, s.name)]
    pipes = [s.name for s in costed.subsystems if s.upstream and s.name in names and s.name != "lsu"]
    return [
        *(ideal_rate(name) for name in dict.fromkeys((*names, ISSUE))),
        no_fixed_latency(),
        *(ideal_latency(name) for name in pipes),
        *(ideal_level(level) for level in LEVELS),
    ]


def kernels(setting: Setting) -> list[WhatIf]:
    """Idealised code, the launch without a tail, and other L1 splits."""
    loads = {i: use.times for use in reuse_by_buffer(setting).values() if use.times > 1 for i in use.instructions}
    return [
        coalesced(),
        conflict_free(),
        no_divergence(),
        no_barriers(),
        loaded_once(loads),
        more_loads_in_flight(),
        more_independent_instructions(),
        balanced_partitions(),
        even_grid(),
        *splits(setting),
    ]


def what_ifs(case: Case) -> list[WhatIf]:
    """All what-ifs that do not recompile the kernel."""
    return [*ideals(case.setting), *kernels(case.setting)]
