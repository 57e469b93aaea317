<<<<<<< HEAD
"""Counters as a table like a profiler's; what `explain` prints; JSON and Markdown text."""
=======
"""Counters as a table like a profiler's; the kernels of a file; JSON and Markdown text."""
>>>>>>> 00a6d7a (Launches that a file states itself, and drywarp list)

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any

import msgspec

from .._version import __version__
from ..analysis.counters.metrics import Counts, describe
<<<<<<< HEAD
from ..analysis.result import SCHEMA_VERSION
from ..analysis.result.finding import RuleText
=======
from ..analysis.listing import ListedKernel, Listing
from ..analysis.result import SCHEMA_VERSION
>>>>>>> 00a6d7a (Launches that a file states itself, and drywarp list)
from ..support.text import LONGEST, bytes_text, count_text, energy_text, percent_text, plain, range_text, time_text
from .gpus import aligned

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


# The kernels of a file.

_MOST_SHOWN, _WIDEST_NAME = 12, 48


def render_listing(listing: Listing) -> str:
    """A row for each kernel; for few of them also signature and command."""
    count = len(listing.kernels)
    lines = [f"{listing.file}: {count} kernel{'s' if count != 1 else ''} for {listing.gpu} ({listing.arch})", ""]
    rows = [["kernel", "registers", "shared", "spills", "launch"]]
    for kernel in listing.kernels:
        held = kernel.resources
        spills = "" if held is None or held.spill_bytes is None else bytes_text(held.spill_bytes)
        numbers = [str(held.registers), bytes_text(held.shared_bytes), spills] if held else ["–", "–", "–"]
        rows.append([plain(kernel.name, _WIDEST_NAME), *numbers, _launch_text(kernel)])
    lines += aligned(rows)
    for kernel in listing.kernels if count <= _MOST_SHOWN else ():
        reason = [f"    {kernel.reason}"] if kernel.reason else []
        if kernel.command:
            lines += ["", f"{plain(kernel.name)}({kernel.signature})", *reason, f"    {kernel.command}"]
        else:
            lines += ["", plain(kernel.name), *reason]
    if count > _MOST_SHOWN:
        lines += ["", f"drywarp list {listing.file} --entry NAME shows the signature and a command of one of them."]
    if any(kernel.placeholders for kernel in listing.kernels):
        lines += ["", "Placeholders stand for what the file does not state: replace them by values of your own."]
    return "\n".join([*lines, *(f"note: {note}" for note in listing.notes)])


def _launch_text(kernel: ListedKernel) -> str:
    if not kernel.command:
        return "not compiled"
    where = "launch comment" if kernel.launch == "comment" else kernel.launch.rpartition("/")[2]
    stand_ins = f"placeholders: {', '.join(kernel.placeholders)}" if kernel.placeholders else ""
    return "; ".join(part for part in (where, plain(stand_ins, 60)) if part) or "no arguments"


def listing_dict(listing: Listing) -> dict[str, Any]:
    """The documented JSON object of `drywarp list --json`."""
    rows = []
    for kernel in listing.kernels:
        held = kernel.resources
        rows.append(
            {
                "name": kernel.name,
                "signature": kernel.signature or None,
                "registers": held.registers if held else None,
                "shared_bytes": held.shared_bytes if held else None,
                "spill_bytes": held.spill_bytes if held else None,
                "command": kernel.command or None,
                "launch": kernel.launch or None,
                "placeholders": list(kernel.placeholders),
                "reason": kernel.reason or None,
            }
        )
    head = {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__}}
    named = {"file": listing.file, "gpu": listing.gpu, "arch": listing.arch}
    return {**head, **named, "kernels": rows, "notes": list(listing.notes)}


# Numbers with units come from support.text, so that results can use them too.


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
        "schema_version": SCHEMA_VERSION,
        "versions": {"drywarp": __version__},
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


__all__ = [
    "LONGEST",
    "bytes_text",
    "count_text",
    "energy_text",
    "markdown_cell",
    "markdown_code",
    "percent_text",
    "plain",
    "range_text",
    "time_text",
]
