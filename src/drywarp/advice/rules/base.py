"""What a rule is: it looks at a case, and where it sees its problem it says what to simulate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...finding import Place
from ..case import Case
from ..whatifs.base import WhatIf


@dataclass(frozen=True, slots=True)
class Documentation:
    """What `drywarp explain` prints. `before` and `after` are code; the rest sentences."""

    what: str
    why: str
    evidence: str
    change: str
    before: str
    after: str


@dataclass(frozen=True)
class Suspicion:
    """A problem that a rule sees. What it costs is what the kernel gains in `what_if`.

    `weight` is a rough guess of the share of the time that it takes, 0..1: where a kernel takes long to simulate, the
    heaviest are simulated first.
    """

    what_if: WhatIf
    places: tuple[Place, ...]
    evidence: str
    remedy: str
    weight: float


class Rule(Protocol):
    """`name` is what findings, documents and the command line call it; `title` says it in a few words.

    `rebuilds` says that its gain is only an estimate until the kernel has been compiled again.
    """

    name: str
    title: str
    documentation: Documentation

    def look(self, case: Case) -> Suspicion | None:
        """The problem, where the case has it. Cheap: no simulation."""
        ...


_RULES: dict[str, Rule] = {}


def register(rule: type[Rule]) -> type[Rule]:
    """Class decorator: makes a rule known under its name."""
    made = rule()
    if made.name in _RULES:
        raise ValueError(f"a rule named {made.name} is registered already")
    _RULES[made.name] = made
    return rule


def registered() -> dict[str, Rule]:
    """All rules by name."""
    return dict(_RULES)
