"""Rules: one small class per file, each of which detects one problem and documents it.

Other packages add theirs under the entry point group ``drywarp.rules`` (docs/extending.md).

To add a rule, add one file with a class under `base.register`, together with its what-if unless other rules share that.
"""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from pkgutil import iter_modules

from ....errors import UsageError
from ....support.by_name import plugins
from ...result.finding import RuleText
from .base import Rule, registered

GROUP = "drywarp.rules"
"""Entry points: classes of rules, or modules that register some."""


def all_rules() -> dict[str, Rule]:
    """Every rule by name."""
    for file in iter_modules(__path__):
        import_module(f".{file.name}", __name__)
    plugins(GROUP)  # loading a rule registers it
    return dict(sorted(registered().items()))


def rule_named(name: str) -> Rule:
    """One rule by name. Raises UsageError that lists the known names."""
    rules = all_rules()
    if name not in rules:
        raise UsageError(f"no rule {name!r}: expected one of {', '.join(rules)}")
    return rules[name]


def rule_texts(name: str | None = None) -> list[RuleText]:
    """The documentation of every rule, or of one."""
    rules = all_rules().values() if name is None else [rule_named(name)]
    return [RuleText(rule.name, rule.title, **asdict(rule.documentation)) for rule in rules]
