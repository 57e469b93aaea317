"""What a rule's documentation looks like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill, indent
from typing import Any

from .. import __version__
from ..finding import RuleText
from ..result import SCHEMA_VERSION
from .gpus import aligned

_WIDTH = 100


def render_rules(rules: Sequence[RuleText]) -> str:
    """All rules, a line each."""
    rows = [[rule.name, rule.title] for rule in rules]
    return "\n".join([*aligned(rows), "", "drywarp explain RULE prints one of them whole."])


def render_rule(rule: RuleText) -> str:
    """One rule with all that it documents."""
    parts = [f"{rule.name}: {rule.title}"]
    for heading, text in _sections(rule).items():
        is_code = heading in ("Before", "After")
        parts += ["", heading, indent(text if is_code else fill(text, _WIDTH - 4), "    ")]
    return "\n".join(parts)


def rules_dict(rules: Sequence[RuleText]) -> dict[str, Any]:
    """The documented JSON object of `drywarp explain --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "versions": {"drywarp": __version__},
        "rules": [
            {"name": rule.name, "title": rule.title, **{k.lower(): text for k, text in _sections(rule).items()}}
            for rule in rules
        ],
    }


def _sections(rule: RuleText) -> Mapping[str, str]:
    return {
        "What": rule.what,
        "Why": rule.why,
        "Evidence": rule.evidence,
        "Change": rule.change,
        "Before": rule.before,
        "After": rule.after,
    }
