"""A comparison as Markdown, for a pull request comment: one row per GPU, with collapsed lines and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..analysis.compare.result import Comparison, GpuComparison, LineChange
from .comparison import (
    HEADS,
    changed_counts,
    changed_lines,
    count_change,
    notes,
    number_text,
    place,
    row,
    signed_time,
    speed_text,
)
from .text import markdown_cell, markdown_code

MOST_LINES = 20


def comparison_markdown(comparison: Comparison) -> str:
    """The comment. Names and source lines are escaped as code, so that nothing in them acts as markup."""
    parts = [f"### {_headline(comparison)}", _sides(comparison.gpus[0])]
    parts.append(_table(HEADS, [[_bold(gpu, cell, at) for at, cell in enumerate(row(gpu))] for gpu in comparison.gpus]))
    for gpu in comparison.gpus:
        parts += _details(gpu)
    found = notes(comparison)
    if found:
        parts.append(_folded("Notes", "\n".join(f"- {markdown_code(note, 400)}" for note in found)))
    version = markdown_code(comparison.versions.get("drywarp", ""))
    parts.append(f"<sub>Predicted by drywarp {version} without a GPU.</sub>")
    return "\n\n".join(parts) + "\n"


def _headline(comparison: Comparison) -> str:
    worst = max(comparison.gpus, key=lambda gpu: gpu.ratio)
    mark = {True: "🔴", False: "🟢" if comparison.fail_above is not None else "⚪"}[comparison.regressed]
    name = markdown_code(worst.new.kernel)
    several = len(comparison.gpus) > 1
    if worst.ratio == 1:
        said = "same time" + (" or less on every GPU" if several else "")
    else:
        said = f"{speed_text(worst)} on {markdown_code(worst.gpu)}"
        said += " at worst" if several else ""
    limit = "" if comparison.fail_above is None else f" (limit {comparison.fail_above * 100:g}%)"
    return f"{mark} {name}: {said}{limit}"


def _sides(gpu: GpuComparison) -> str:
    old, new = gpu.old, gpu.new
    return f"{markdown_code(old.kernel)} in {markdown_code(old.source_file)} → {markdown_code(new.kernel)} in " + (
        markdown_code(new.source_file)
    )


def _bold(gpu: GpuComparison, cell: str, column: int) -> str:
    if column == 0:
        return markdown_code(cell)
    if HEADS[column] == "change":
        return f"**{cell.rstrip(' !')}** 🔴" if gpu.regressed else cell
    # Times and occupancy are drywarp's own numbers; the limiter may come from a saved (untrusted) result.
    return markdown_cell(cell) if HEADS[column] == "limited by" else cell


def _details(gpu: GpuComparison) -> Iterator[str]:
    shown, rest = changed_lines(gpu, MOST_LINES)
    if shown:
        rows = [_line_row(line) for line in shown]
        table = _table(["change", "", "line", "old", "new", "stall reason"], rows)
        more = f"\n\nand {rest} more lines with smaller changes" if rest else ""
        yield _folded(f"Lines whose cost changed on {markdown_code(gpu.gpu)}", table + more)
    counts = changed_counts(gpu)
    if counts:
        rows = [[markdown_code(words), number_text(c.old), number_text(c.new), count_change(c)] for words, c in counts]
        yield _folded(f"Counts that changed on {markdown_code(gpu.gpu)}", _table(["", "old", "new", "change"], rows))


def _line_row(line: LineChange) -> list[str]:
    was = markdown_code(line.old.text) if line.old and line.match != "same" else ""
    now = markdown_code(line.new.text) if line.new else ""
    stalls = [markdown_code(side.stall) for side in (line.old, line.new) if side is not None]
    return [signed_time(line.change_s), line.match, place(line), was, now, " → ".join(dict.fromkeys(stalls))]


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
