"""The potential benefits of a swept space: its variants, its steps, and each optimisation where it applies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..benefits import Agreement, Choice, Step, Variant, variant_of
from ..rows.row_file import text_of
from ..validate.statistics import spearman
from .prune import competing
from .row import SweepRow
from .space import Cell, Optimisation, optimisations_of

BASELINE = "baseline"


@dataclass(frozen=True)
class Study:
    """The variants of one GPU and problem, by GPUPerf's benefits.

    The baseline has the first value of every parameter. `steps` lead from it along the space's `steps`, one after the
    other, as far as these have a time; `applied` holds each optimisation wherever it changes one variant into another.
    """

    gpu: str
    problem: Mapping[str, Cell]
    variants: tuple[Variant, ...]
    steps: tuple[Step, ...]
    applied: Mapping[str, tuple[Step, ...]]

    @property
    def baseline(self) -> Variant:
        """The variant without any optimisation."""
        return next(variant for variant in self.variants if variant.name == BASELINE)

    @property
    def alone(self) -> tuple[Step, ...]:
        """Each optimisation of the baseline, where it is in the space."""
        return tuple(step for steps in self.applied.values() for step in steps if step.before.name == BASELINE)

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """Every single optimisation of every variant."""
        return tuple(step for steps in self.applied.values() for step in steps)

    @cached_property
    def choice(self) -> Choice:
        """Whether the best next optimisation aims at the largest benefit."""
        return Choice.among(self.all_steps)

    @cached_property
    def models(self) -> dict[str, tuple[float | None, float]]:
        """By further model: Spearman's ρ of its times with the primary one's, and the regret of its best variant."""
        found = {}
        for model in self.baseline.times:
            held = [one for one in self.variants if one.times.get(model)]
            own, primary = [one.times[model] for one in held], [one.time_s for one in held]
            if own != primary and held:
                found[model] = (spearman(own, primary), primary[own.index(min(own))] / min(primary) - 1)
        return found

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        return {
            "gpu": self.gpu,
            "problem": dict(self.problem),
            "baseline": self.baseline.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            "optimisations": {name: Agreement(steps).to_dict() for name, steps in self.applied.items()},
            "agreement": Agreement(self.all_steps).to_dict(),
            "choice": self.choice.to_dict(),
            "models": {name: {"rank_correlation": rho, "regret": lost} for name, (rho, lost) in self.models.items()},
        }


def studies(
    rows: Sequence[SweepRow], problem: Sequence[str], given: Mapping[str, Optimisation], steps: Sequence[str]
) -> tuple[tuple[Study, ...], dict[str, str]]:
    """One study for each GPU and problem, and by GPU and problem the reason why there is none."""
    values: dict[str, Sequence[Cell]] = {
        name: list({text_of(row.parameters[name]): row.parameters[name] for row in rows}.values())
        for name in rows[0].parameters
    }
    changes = optimisations_of(values, given, problem)
    base = {name: text_of(listed[0]) for name, listed in values.items() if name not in problem}
    made, missing = [], {}
    for group in competing(rows, problem):
        if study := _study(group, problem, base, changes, steps):
            made.append(study)
            continue
        where = " ".join([group[0].gpu, *(f"{name}={text_of(group[0].parameters[name])}" for name in problem)])
        said = " ".join(f"{name}={value}" for name, value in base.items())
        missing[where] = f"the baseline, {said}, has no time, so that nothing can be compared with it"
    return tuple(made), missing


def _study(
    rows: Sequence[SweepRow],
    problem: Sequence[str],
    base: Mapping[str, str],
    changes: Mapping[str, Optimisation],
    steps: Sequence[str],
) -> Study | None:
    def chosen(row: SweepRow) -> tuple[str, ...]:
        return tuple(text_of(row.parameters[name]) for name in base)

    found: dict[tuple[str, ...], Variant] = {}
    for row in rows:
        if row.time_s is not None:
            name = name_of(dict(zip(base, chosen(row), strict=True)), base, changes)
            found[chosen(row)] = variant_of(name, row.time_s, row.times, row.limiter, row.facts)
    where = {name: rows[0].parameters[name] for name in problem}
    if tuple(base.values()) not in found:
        return None

    def path() -> Iterator[Step]:
        now = dict(base)
        for name in steps:
            before = tuple(now.values())
            now |= {parameter: text_of(value) for parameter, value in changes[name].set.items()}
            if tuple(now.values()) not in found:
                return
            yield Step(name, found[before], found[tuple(now.values())], tuple(changes[name].benefits))

    return Study(
        gpu=rows[0].gpu,
        problem=where,
        variants=tuple(found.values()),
        steps=tuple(path()),
        applied={name: tuple(_everywhere(name, change, found, base)) for name, change in changes.items()},
    )


def _everywhere(
    name: str, change: Optimisation, found: Mapping[tuple[str, ...], Variant], base: Mapping[str, str]
) -> Iterator[Step]:
    """The optimisation from each variant that has the baseline's values where it sets others."""
    wanted = {parameter: text_of(value) for parameter, value in change.set.items()}
    for key, before in found.items():
        held = dict(zip(base, key, strict=True))
        after = tuple((held | wanted).values())
        if all(held[parameter] == base[parameter] for parameter in wanted) and after in found:
            yield Step(name, before, found[after], tuple(change.benefits))


def name_of(held: Mapping[str, str], base: Mapping[str, str], changes: Mapping[str, Optimisation]) -> str:
    """A variant's name: its optimisations, then other values that differ from the baseline's."""
    left = {parameter: value for parameter, value in held.items() if value != base[parameter]}
    said = []
    for name, change in changes.items():
        wanted = {parameter: text_of(value) for parameter, value in change.set.items()}
        if all(left.get(parameter) == value for parameter, value in wanted.items()):
            said.append(name)
            left = {parameter: value for parameter, value in left.items() if parameter not in wanted}
    return "+".join([*said, *(f"{parameter}={value}" for parameter, value in left.items())]) or BASELINE
