"""A run over a folder as text: one line for each module, then the totals and what failed how often."""

from __future__ import annotations

from collections import Counter

from ..corpus.result import COMPILE_FAILED, FAILED, NO_KERNELS, PART, CorpusReport, Row
from .gpus import aligned

_MOST_REASON = 110
"""Characters of a reason in a line; the JSON has it whole."""
_WORDS = {COMPILE_FAILED: "not compiled", NO_KERNELS: "no kernels", PART: "part of another"}


def print_corpus(report: CorpusReport) -> None:
    """Print the report to standard output."""
    print("\n".join(corpus_lines(report)))


def corpus_lines(report: CorpusReport) -> list[str]:
    """The report's lines."""
    head = ["module", "result", "stage", "kernels", "seconds", "MiB", "reason"]
    lines = aligned([head, *map(_cells, report.rows)])
    totals = report.totals
    compiled = totals.modules - totals.compile_failed
    lines += [
        "",
        f"{totals.modules} modules for {report.gpu}: {totals.analysed} analysed, {totals.failed} failed, "
        f"of which {totals.compile_failed} did not compile; {totals.analysed} of {compiled} that compile analysed",
        f"{totals.kernels} kernels, {totals.instructions} instructions, "
        f"{totals.unclassified_opcodes} unclassified opcodes, {report.seconds:.0f} s",
    ]
    if totals.no_kernels or totals.parts:
        lines.append(f"no modules: {totals.no_kernels} files without kernels, {totals.parts} parts of other files")
    unclassified = sorted({opcode for row in report.rows for opcode in row.unclassified})
    if unclassified:
        lines.append(f"unclassified: {', '.join(unclassified)}")
    broken = Counter(row.stage for row in report.rows if row.status == FAILED)
    lines += [f"compiled and not analysed: {count} at stage {stage}" for stage, count in broken.most_common()]
    return lines


def _cells(row: Row) -> list[str]:
    reason = row.reason if len(row.reason) <= _MOST_REASON else row.reason[: _MOST_REASON - 1] + "…"
    return [
        row.file,
        _WORDS.get(row.status, row.status),
        row.stage,
        str(len(row.kernels)),
        f"{row.seconds:.1f}",
        str(row.peak_rss_bytes >> 20),
        " ".join(reason.split()),
    ]
