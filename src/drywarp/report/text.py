"""Counters as a table like a profiler's; JSON and Markdown text."""

from __future__ import annotations

from typing import Any

import msgspec

from ..analysis.counters.metrics import Counts, describe
from ..support.text import LONGEST, bytes_text, count_text, energy_text, percent_text, plain, range_text, time_text
from .gpus import aligned


def render_counts(result: Counts) -> str:
    """A table of metrics and values, with all digits of whole numbers."""
    grid, block = ("×".join(map(str, extents)) for extents in (result.grid, result.block))
    head = f"{result.kernel}  on {result.gpu_title}\n{result.source_file}, {result.arch}, grid {grid}, block {block}"
    rows = [[name, _text(value)] for name, value in sorted(result.counts.items()) if value or name in _ALWAYS]
    width = max(len(value) for _, value in rows)
    table = "\n".join(aligned([[name, value.rjust(width)] for name, value in rows]))
    absent = "Metrics not listed are zero."
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
