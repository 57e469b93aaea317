"""A page for each rule of the advice, from what `drywarp explain` prints."""

from __future__ import annotations

from collections.abc import Iterator

from drywarp.analysis.advice.rules import all_rules
from drywarp.analysis.advice.rules.base import Rule

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
    rules = all_rules()
    lines = [f"- [`{name}`]({name}.md): {inline(rule.title)}" for name, rule in rules.items()]
    yield Page(
        "rules/index.md",
        "All rules",
        "# Rules of the advice\n\nEach looks at a kernel that has been predicted; where it sees its problem, the "
        "kernel is simulated again without it, and the gain is what that saves ([how](../advice.md)). "
        "`drywarp explain RULE` prints the same pages.\n\n" + "\n".join(lines) + "\n",
    )
    for name, rule in rules.items():
        yield Page(f"rules/{name}.md", name, _page(name, rule))


def _page(name: str, rule: Rule) -> str:
    document = rule.documentation
    parts = [f"# {inline(name)}", f"*{inline(rule.title)}*"]
    for heading, field in _PARTS:
        parts += [f"## {heading}", inline(getattr(document, field))]
    parts += ["## Before", code(document.before, "cuda"), "## After", code(document.after, "cuda")]
    links = "[All rules](index.md), [how gains are computed](../advice.md)"
    parts += [f"`drywarp explain {name}` prints this page. {links}."]
    return "\n\n".join(parts) + "\n"
