"""Counters as a table like a profiler's; what `explain` prints; JSON and Markdown text."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any

import msgspec

from ..analysis.counters import Counts, describe
from ..analysis.result import headed
from ..analysis.result.detail import RuleText
from ..support.text import LONGEST, plain
from .tables import aligned

if TYPE_CHECKING:
    from ..analysis.advice.rules import Meaning


def render_counts(result: Counts) -> str:
    """A table of metrics and values, with all digits of whole numbers."""
    grid, block = ("×".join(map(str, extents)) for extents in (result.grid, result.block))
    head = f"{result.kernel}  on {result.gpu_title}\n{result.source_file}, {result.arch}, grid {grid}, block {block}"
    rows = [[name, _text(value)] for name, value in sorted(result.counts.items()) if value or name in _ALWAYS]
    width = max(len(value) for _, value in rows)
    table = "\n".join(aligned([[name, value.rjust(width)] for name, value in rows]))
    absent = "Metrics not listed are zero; --explain says what each one means."
    sample = (
        f"Emulated blocks: {result.sampled_blocks}. L2 and DRAM: {result.method}, L2 {result.l2_state}. "
        f"SM clock: {result.clock_hz / 1e6:.0f} MHz."
    )
    return "\n\n".join([head, table, "\n".join([absent, sample, *(f"note: {note}" for note in result.notes)])])


def render_meanings(result: Counts) -> str:
    """Each metric with its meaning."""
    return "\n".join(f"{name}\n    {describe(name)}" for name in sorted(result.counts))


_ALWAYS = frozenset({"smsp__inst_executed.sum"})


def _text(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


# A result as one JSON object.


def json_text(value: dict[str, Any]) -> str:
    """Indented JSON with a trailing newline; NaN and infinity become null."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


# Escaping for Markdown: names and source lines are untrusted.

_SAFE = frozenset(" ,;()=+/%")


def markdown_cell(text: str) -> str:
    """The text unchanged if it holds only letters, digits and a few safe characters, otherwise as code."""
    return text if all(c.isalnum() or c in _SAFE or c == "→" for c in text) else markdown_code(text)


def markdown_code(text: str, longest: int = LONGEST) -> str:
    """The text as Markdown code, also inside tables: nothing in it acts as markup, mention, link or reference.

    Everything except letters, digits and a few safe characters becomes a character reference, which is never markup.
    """
    letters = (c if c.isalnum() or c in _SAFE else f"&#{ord(c)};" for c in plain(text, longest))
    return f"<code>{''.join(letters)}</code>"


# What `drywarp explain` says of rules, stall reasons and limiters.

_WIDTH = 100


def render_explained(found: Sequence[RuleText | Meaning]) -> str:
    """Each in full."""
    return "\n\n".join(_in_full(each) for each in found)


def _in_full(found: RuleText | Meaning) -> str:
    parts = [
        f"{found.name}: {found.title}" if isinstance(found, RuleText) else f"{found.name} ({found.kind}): {found.title}"
    ]
    for heading, text in _sections(found).items():
        is_code = heading in ("Before", "After")
        parts += ["", heading, indent(text if is_code else fill(text, _WIDTH - 4), "    ")]
    return "\n".join(parts)


def render_names(rules: Sequence[RuleText], meanings: Sequence[Meaning]) -> str:
    """All names, one line each: rules, then stall reasons and limiters."""
    groups = {"Rules": rules} | {
        heading: [each for each in meanings if each.kind == kind]
        for heading, kind in (("Stall reasons", "stall reason"), ("Limiters", "limiter"))
    }
    parts = []
    for heading, known in groups.items():
        parts += [heading, *aligned([[each.name, each.title] for each in known]), ""]
    return "\n".join([*parts, "drywarp explain NAME shows one in full; the beginning of a name is enough."])


def explained_dict(found: Sequence[RuleText | Meaning]) -> dict[str, Any]:
    """The documented JSON object of `drywarp explain --json`."""
    rules = [each for each in found if isinstance(each, RuleText)]
    others = [each for each in found if not isinstance(each, RuleText)]
    return {
        **headed(),
        "rules": [
            {"name": rule.name, "title": rule.title, **{k.lower(): text for k, text in _sections(rule).items()}}
            for rule in rules
        ],
        "stall_reasons": [each.to_dict() for each in others if each.kind == "stall reason"],
        "limiters": [each.to_dict() for each in others if each.kind == "limiter"],
    }


def _sections(found: RuleText | Meaning) -> dict[str, str]:
    if isinstance(found, RuleText):
        parts = ("what", "why", "evidence", "change", "before", "after")
        return {name.capitalize(): getattr(found, name) for name in parts}
    return {
        "What": found.what,
        "What helps": found.helps,
        "Rules that look for it": ", ".join(found.rules) or "none; drywarp analyze --advice tries every change",
    }
