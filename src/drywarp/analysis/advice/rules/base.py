"""Shared by the rules: whether latency limits the kernel, where warps wait, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ....hardware import Occupancy
from ...result.detail import Place
from ..case import Case
from ..whatif import WhatIf

FULL = 0.98
"""Above this utilization of any unit, hiding latency gains less than a finding must."""


def can_be_hidden(case: Case) -> bool:
    """Whether no unit is fully utilized, so that shorter waits would help."""
    return max(case.prediction.utilization.values(), default=0.0) < FULL


def dependent_on(case: Case, *reasons: str) -> tuple[Place, ...]:
    """The lines that wait longest for these reasons; together they cover most of that time."""
    waits = {index: case.waiting(index, *reasons) for index in case.prediction.node_stalls}
    total = sum(waits.values())
    order, covered = [], 0.0
    for index in sorted(waits, key=lambda index: -waits[index]):
        if covered >= 0.9 * total or not waits[index]:
            break
        order.append(index)
        covered += waits[index]
    return case.setting.places(order)


# Shared by the occupancy rules: the blocks that would fit if one resource were unlimited.

WAITING = ("long_scoreboard", "short_scoreboard", "wait", "barrier")
"""Stall reasons that more warps could hide."""


def without_limit(fits: Occupancy, resource: str) -> int:
    """Blocks per SM that the other resources allow."""
    return min(blocks for name, blocks in fits.limits.items() if name != resource and blocks is not None)


def lone_limit(case: Case, resource: str) -> int | None:
    """Blocks per SM without this limit, where it is the only one and the kernel could use more warps."""
    fits = case.setting.fits
    if fits.limiting != (resource,) or not can_be_hidden(case):
        return None
    target = without_limit(fits, resource)
    waiting = -(-case.setting.costed.blocks // case.setting.costed.sm_count)
    target = min(target, waiting)
    return target if target > fits.blocks_per_sm else None


# A rule looks at a case; where it sees its problem, it returns what to simulate.


@dataclass(frozen=True, slots=True)
class Documentation:
    """What `drywarp explain` prints of another package's rule: sentences; `before` and `after` are code."""

    what: str
    why: str
    evidence: str
    change: str
    before: str
    after: str


@dataclass(frozen=True)
class Suspicion:
    """A problem that a rule suspects. Simulating `what_if` gives its cost.

    `weight` is a rough estimate of its share of the run time, 0..1: where a kernel takes long to simulate, the heaviest
    suspicions are simulated first.
    """

    what_if: WhatIf
    places: tuple[Place, ...]
    evidence: str
    remedy: str
    weight: float


class Rule(Protocol):
    """`name` identifies it in findings, documents and on the command line; `rules.toml` has its texts.

    A rule of another package brings them: `title`, which describes it in a few words, and `documentation`.
    """

    name: str

    def look(self, case: Case) -> Suspicion | None:
        """The problem if the case has it, else None. Cheap: no simulation."""
        ...


Look = Callable[[Case], Suspicion | None]
_RULES: dict[str, Rule] = {}


def register(made: type[Rule]) -> type[Rule]:
    """Class decorator: register a rule under its name."""
    _add(made())
    return made


def _add(rule: Rule) -> None:
    if rule.name in _RULES:
        raise ValueError(f"a rule named {rule.name} is already registered")
    _RULES[rule.name] = rule


@dataclass
class Simple:
    """A rule that is a function, with its texts in `rules.toml`."""

    name: str
    look: Look


def rule(name: str) -> Callable[[Look], Look]:
    """Decorator: register a function as a rule, whose texts are in `rules.toml`. Other packages `register` classes."""

    def add(look: Look) -> Look:
        _add(Simple(name, look))
        return look

    return add


def registered() -> dict[str, Rule]:
    """All rules by name."""
    return dict(_RULES)
