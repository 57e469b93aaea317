"""Rules: each a small class in a file of its own, which sees one problem and documents it.

A new rule is one file with a class under `base.register`, and its name in `_FILES`.
"""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module

from ...errors import UsageError
from ...finding import RuleText
from .base import Rule, registered

_FILES = (
    *("uncoalesced_access", "bank_conflicts", "redundant_loads", "atomics", "latency_bound", "barrier_waits"),
    *("idle_threads", "divergence", "issue_bound", "occupancy_registers", "occupancy_shared_memory"),
    *("occupancy_block_size", "tail_effect", "scheduler_imbalance", "fp64", "integer_division", "sfu_bound"),
    *("register_spills", "unrolling"),
)
"""The files, in the order in which `drywarp explain` lists their rules."""


def all_rules() -> dict[str, Rule]:
    """Every rule by name."""
    for file in _FILES:
        import_module(f".{file}", __name__)
    return registered()


def rule_named(name: str) -> Rule:
    """One rule. Raises UsageError naming those that there are."""
    rules = all_rules()
    if name not in rules:
        raise UsageError(f"no rule {name!r}: expected one of {', '.join(rules)}")
    return rules[name]


def rule_texts(name: str | None = None) -> list[RuleText]:
    """The documentation of every rule, or of one."""
    rules = all_rules().values() if name is None else [rule_named(name)]
    return [RuleText(rule.name, rule.title, **asdict(rule.documentation)) for rule in rules]
