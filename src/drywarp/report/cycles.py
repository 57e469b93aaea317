"""Where the cycles go: stall reasons, the costliest lines, and active warps over time, as text."""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from ..result import Analysis, LineCost
from .gpus import aligned

_LINES_SHOWN, _LEAST_SHARE = 6, 0.02


def render_cycles(analysis: Analysis) -> list[RenderableType]:
    """Stall reasons, and the source lines that cost most with their text."""
    stalls = analysis.prediction.stalls
    total = sum(stalls.values())
    if not total:
        return []
    top = [(r, c) for r, c in sorted(stalls.items(), key=lambda item: -item[1]) if c / total >= _LEAST_SHARE]
    reasons = ", ".join(f"{reason} {cycles / total:.0%}" for reason, cycles in top)
    shown = [cost for cost in analysis.lines[:_LINES_SHOWN] if cost.share >= _LEAST_SHARE]
    rows = [[f"{cost.share:4.0%}", cost.stall, _place(cost, analysis), cost.text] for cost in shown]
    lines = Text("\n".join(aligned(rows)) if rows else "", no_wrap=True, overflow="ellipsis")
    heading = Text.assemble(("Where the cycles go", "bold"), f": {reasons}")
    return [heading, lines, Text("")]


def _place(cost: LineCost, analysis: Analysis) -> str:
    """The line number, with its file where that is another than the kernel's own."""
    return str(cost.line) if cost.file in ("", analysis.source_file) else f"{Path(cost.file).name}:{cost.line}"


_TRACE_ROWS, _TRACE_COLUMNS = 8, 60


def render_trace(analysis: Analysis) -> list[RenderableType]:
    """Active warps over time, one column a stretch of it."""
    trace = analysis.prediction.occupancy_trace
    if trace is None or not len(trace.active):
        return []
    cycles, active = trace.cycles, trace.active
    edges = [cycles[0] + (cycles[-1] - cycles[0]) * (k + 0.5) / _TRACE_COLUMNS for k in range(_TRACE_COLUMNS)]
    at = [max(0, sum(1 for c in cycles[1:-1] if c <= edge)) for edge in edges]
    heights = [active[i] / max(1, trace.peak) * _TRACE_ROWS for i in at]
    rows = []
    for row in range(_TRACE_ROWS, 0, -1):
        cells = "".join(
            "█" if h >= row else " ▁▂▃▄▅▆▇"[int((h - row + 1) * 8)] if h > row - 1 else " " for h in heights
        )
        label = f"{trace.peak * row / _TRACE_ROWS:5.0f} "
        rows.append(label + cells.rstrip())
    rows.append("    0 └" + "─" * (_TRACE_COLUMNS - 1))
    rows.append("      0" + f"{cycles[-1]:,.0f} cycles".rjust(_TRACE_COLUMNS - 1))
    heading = Text.assemble(
        ("Active warps over time", "bold"),
        f": {trace.mean:.1f} in the mean, {trace.imbalance:.0%} imbalance over partitions",
    )
    return [heading, Text("\n".join(rows)), Text("")]
