"""Counters as a table, in the manner of a profiler's."""

from __future__ import annotations

from ..counters.metrics import describe
from ..counters.result import Counts
from .gpus import aligned


def render_counts(result: Counts) -> str:
    """Metric and value, all digits of whole numbers, in the order of `METRICS`."""
    grid, block = ("×".join(map(str, extents)) for extents in (result.grid, result.block))
    head = f"{result.kernel}  on {result.gpu_title}\n{result.source_file}, {result.arch}, grid {grid}, block {block}"
    rows = [[name, _text(value)] for name, value in sorted(result.counts.items()) if value or name in _ALWAYS]
    width = max(len(value) for _, value in rows)
    table = "\n".join(aligned([[name, value.rjust(width)] for name, value in rows]))
    absent = "Metrics that are not listed are zero."
    sample = f"Emulated blocks: {result.sampled_blocks}. L2 and DRAM: {result.method}, L2 {result.l2_state}."
    return "\n\n".join([head, table, "\n".join([absent, sample, *(f"note: {note}" for note in result.notes)])])


def render_meanings(result: Counts) -> str:
    """Each metric with its meaning."""
    return "\n".join(f"{name}\n    {describe(name)}" for name in sorted(result.counts))


_ALWAYS = frozenset({"smsp__inst_executed.sum"})


def _text(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
