"""A page for each rule of the advice, from what `drywarp explain` prints."""

from __future__ import annotations

from collections.abc import Iterator

from drywarp.analysis.advice.rules import rule_texts
from drywarp.analysis.result.detail import RuleText

from .escape import code, inline
from .page import Page

_PARTS = (
    ("What it finds", "what"),
    ("Why that costs time", "why"),
    ("How it is seen, and what the gain is", "evidence"),
    ("What to change", "change"),
)


def rule_pages() -> Iterator[Page]:
    """The list first."""
    rules = rule_texts()
    lines = [f"- [`{rule.name}`]({rule.name}.md): {inline(rule.title)}" for rule in rules]
    yield Page(
        "rules/index.md",
        "All rules",
        "# Rules of the advice\n\nEach looks at a kernel that has been predicted; where it sees its problem, the "
        "kernel is simulated again without it, and the gain is what that saves ([how](../advice.md)). "
        "`drywarp explain RULE` prints the same pages.\n\n" + "\n".join(lines) + "\n",
    )
    for rule in rules:
        yield Page(f"rules/{rule.name}.md", rule.name, _page(rule))


def _page(rule: RuleText) -> str:
    parts = [f"# {inline(rule.name)}", f"*{inline(rule.title)}*"]
    for heading, field in _PARTS:
        parts += [f"## {heading}", inline(getattr(rule, field))]
    parts += ["## Before", code(rule.before, "cuda"), "## After", code(rule.after, "cuda")]
    links = "[All rules](index.md), [how gains are computed](../advice.md)"
    parts += [f"`drywarp explain {rule.name}` prints this page. {links}."]
    return "\n\n".join(parts) + "\n"
