"""Parts of the terminal report: advice, where the cycles go, and the assumptions of a static analysis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..analysis.result import Analysis, LineCost, MeasuredComparison, headed, limit_words
from ..analysis.result.detail import LEAST_GAIN, Advice, Finding, WhatIfAnswer
from ..execution.symbolic.report import AccessReport, LoopReport, StaticReport, loop_dict
from ..models.gpuperf_terms import BenefitChart
from ..support.text import factor_text, plain, time_text
from .tables import aligned, columns

if TYPE_CHECKING:
    from ..frontends.profiles import Imported

_SHOWN, _SHOWN_IN_SHORT, _LINES_SHOWN = 6, 2, 4


def render_findings(analysis: Analysis, short: bool = False) -> list[RenderableType]:
    """Gain, rule, lines and remedy of each finding, or that there is none; with --advice also the evidence."""
    space = [] if short else [Text("")]
    if not analysis.findings:
        none = f": none of the fixes that drywarp simulates gains {LEAST_GAIN - 1:.0%}"
        return [Text.assemble(("What would help", "bold"), none), *space] if analysis.advised else []
    shown = analysis.findings[: _SHOWN_IN_SHORT if short else _SHOWN]
    left = len(analysis.findings) - len(shown)
    more = f"; {left} more{' with --full' if short and left < _SHOWN else ''}" if left else ""
    parts: list[RenderableType] = [Text.assemble(("What would help", "bold"), f", each fix simulated alone{more}")]
    table = columns(">", "", head=False)
    for finding in shown:
        said = Text.assemble((finding.rule, "bold"), f", {lines_text(finding, analysis)}: {finding.remedy}")
        if analysis.advice is not None:
            said.append(f" ({finding.evidence})", style="dim")
        table.add_row(f"{factor_text(finding.gain):>6}", said)
    return [*parts, table, *space]


def lines_text(finding: Finding, analysis: Analysis) -> str:
    """The line numbers, with the file if it is not the kernel's own."""
    if not finding.places:
        return "the launch as a whole"
    places = [
        str(place.line) if place.file == analysis.source_file else f"{Path(place.file).name}:{place.line}"
        for place in finding.places[:_LINES_SHOWN]
    ]
    more = ", …" if len(finding.places) > len(places) else ""
    return f"line{'s' if len(finding.places) > 1 else ''} {', '.join(places)}{more}"


def render_advice(analysis: Analysis) -> list[RenderableType]:
    """Every what-if, and the benefit chart."""
    advice = analysis.advice
    return [] if advice is None else [*_what_ifs(advice), *_chart(advice.chart, analysis.clock_hz)]


def _what_ifs(advice: Advice) -> list[RenderableType]:
    table = columns(">gain", ">time", "if", "then limited by")
    for answer in advice.what_ifs:
        table.add_row(*_row(answer))
    return [Text("What if", style="bold"), table, Text("")]


def _row(answer: WhatIfAnswer) -> tuple[str, str, Text, str]:
    said = Text(answer.name)
    if answer.note:
        said.append(f" ({answer.note})", style="dim")
    if answer.gain is None or answer.time_s is None:
        return "–", "", said, "not possible"
    return factor_text(answer.gain), time_text(answer.time_s), said, limit_words(answer.limiter or "latency")


def _chart(chart: BenefitChart, clock_hz: float) -> list[RenderableType]:
    heading = Text("Potential benefits according to GPUPerf", style="bold")
    if chart.not_applicable:
        return [heading, Text(f"not applicable: {chart.not_applicable}", style="dim"), Text("")]
    table = columns("=", ">", "", head=False)
    rows = (
        ("B_itilp", chart.b_itilp, "more parallel instructions, within a warp or across warps"),
        ("B_memlp", chart.b_memlp, "more parallel memory accesses"),
        ("B_fp", chart.b_fp, "less non-floating-point computation"),
        ("B_serial", chart.b_serial, "no synchronisation, bank conflicts, special functions or divergence"),
    )
    for name, cycles, meaning in rows:
        table.add_row(name, time_text(abs(cycles) / clock_hz) if cycles >= 0 else "none", meaning)
    point = (
        f"{chart.bound}-bound in the X-Y chart: T_mem {time_text(chart.t_mem / clock_hz)} (at least "
        f"{time_text(chart.t_mem_min / clock_hz)}), T_comp {time_text(chart.t_comp / clock_hz)} (at least "
        f"{time_text(chart.t_fp / clock_hz)}), T_overlap {time_text(chart.t_overlap / clock_hz)}"
    )
    return [heading, table, Text(point, style="dim"), Text("")]


# Where the cycles go: stall reasons, the costliest lines, and active warps over time, as text.

_STALL_LINES_SHOWN, _STALL_LINES_IN_SHORT, _LEAST_SHARE, _LEAST_IN_SHORT = 6, 3, 0.02, 0.05


def render_cycles(analysis: Analysis, short: bool = False) -> list[RenderableType]:
    """Stall reasons, and the costliest source lines with their text."""
    stalls = analysis.prediction.stalls
    total = sum(stalls.values())
    if not total:
        return []
    lines_shown = _STALL_LINES_IN_SHORT if short else _STALL_LINES_SHOWN
    least = _LEAST_IN_SHORT if short else _LEAST_SHARE
    shown = [cost for cost in analysis.lines[:lines_shown] if cost.share >= least]
    rows = [[f"{cost.share:4.0%}", cost.stall, _place(cost, analysis), plain(cost.text)] for cost in shown]
    lines = Text("\n".join(aligned(rows)) if rows else "", no_wrap=True, overflow="ellipsis")
    if short:
        return [Text("Time by line, with the main stall reason", style="bold"), lines, Text("")] if rows else []
    top = [(r, c) for r, c in sorted(stalls.items(), key=lambda item: -item[1]) if c / total >= _LEAST_SHARE]
    reasons = ", ".join(f"{reason} {cycles / total:.0%}" for reason, cycles in top)
    heading = Text.assemble(("Where the cycles go", "bold"), f": {reasons}")
    return [heading, lines, Text("")]


def _place(cost: LineCost, analysis: Analysis) -> str:
    """The line number, with the file if it is not the kernel's own."""
    return str(cost.line) if cost.file in ("", analysis.source_file) else f"{Path(cost.file).name}:{cost.line}"


_TRACE_ROWS, _TRACE_COLUMNS = 8, 60


def render_trace(analysis: Analysis) -> list[RenderableType]:
    """Active warps over time, one column per time slice."""
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
        f": {trace.mean:.1f} on average, {trace.imbalance:.0%} imbalance over partitions",
    )
    return [heading, Text("\n".join(rows)), Text("")]


# The assumptions of a static analysis, as text: loops with their trip counts first, then the rest.

_MOST_LINES, _FEW_LINES = 40, 3
"""Maximum number of assumptions printed, in full and in short; the JSON object has all of them."""


def render_static(report: StaticReport | None, short: bool = False) -> list[RenderableType]:
    """Loops, addresses and assumptions, in short only some of these; nothing if the kernel was emulated."""
    if report is None:
        return []
    parts: list[RenderableType] = [Text("")]
    if report.loops and not short:
        parts += [Text("Loops", style="bold"), _loops(report.loops, counted=True), Text("")]
    if report.accesses and not short:
        parts += [Text("Addresses, in bytes per step", style="bold"), _accesses(report.accesses), Text("")]
    parts.append(Text("Nothing was run. Assumed:", style="bold yellow"))
    if not report.assumptions:
        parts.append(Text("nothing: the launch determines everything that matters here", style="yellow"))
    shown = report.assumptions[: _FEW_LINES if short else _MOST_LINES]
    for item in shown:
        place = f"{item.file}:{item.line} " if item.line else ""
        parts.append(Text(f"{place}{item.what}: {item.assumed}", style="yellow"))
    if more := len(report.assumptions) - len(shown):
        parts.append(Text(f"and {more} more ({'--full' if short else '--json lists all'})", style="yellow"))
    return parts


def render_loops(kernel: str, loops: Sequence[LoopReport]) -> Group:
    """The loops of a kernel, before their trip counts are known."""
    if not loops:
        return Group(Text(f"{kernel} has no loops"))
    return Group(Text(f"Loops of {kernel}, by the names that --trip takes"), _loops(loops, counted=False))


def loops_dict(kernel: str, loops: Sequence[LoopReport]) -> dict[str, Any]:
    """The documented JSON object of --list-loops (docs/json.md)."""
    kept = ("name", "file", "line", "last_line", "parent", "copies")
    rows = [{key: value for key, value in loop_dict(loop).items() if key in kept} for loop in loops]
    return {**headed(), "kernel": kernel, "loops": rows}


def _loops(loops: Sequence[LoopReport], counted: bool) -> Table:
    table = columns("=loop", "=in", "=at", "=copies", *([">iterations", "="] if counted else []))
    for loop in loops:
        place = (
            f"{loop.file}:{loop.line}-{loop.last_line}" if loop.last_line > loop.line else f"{loop.file}:{loop.line}"
        )
        row = [loop.name, loop.parent, escape(place if loop.line else "?"), str(loop.copies) if loop.copies > 1 else ""]
        if counted:
            iterations = "" if loop.trips is None else f"{loop.trips:.4g}"
            spread = f" ({loop.fewest} to {loop.most})" if loop.fewest != loop.most else ""
            row += [iterations, f"{loop.known}{spread}"]
        table.add_row(*row, style="yellow" if counted and loop.known == "assumed" else None)
    return table


def _accesses(accesses: Sequence[AccessReport]) -> Table:
    table = columns("=line", "=access", "=address")
    rows: dict[tuple[str, str, str], int] = {}
    for access in accesses:
        steps = " ".join(f"{value}·{name}" for name, value in access.coefficients.items()) or "constant"
        text = steps if access.affine else "non-affine"
        known = "" if access.known == "known" else f"  ({access.known})"
        row = (str(access.line or "?"), f"{access.opcode} {access.space}", f"{text}{known}")
        rows[row] = rows.get(row, 0) + 1
    for row, count in rows.items():
        table.add_row(row[0], row[1] + (f" x{count}" if count > 1 else ""), row[2])
    return table


# Measured launches, and the comparison of measured with predicted times.


def imported_dict(imported: Imported) -> dict[str, Any]:
    """The documented JSON object of `drywarp import-ncu --json`."""
    return {**headed(), "source": imported.source, **imported.to_dict()}


def render_imported(imported: Imported) -> str:
    """One line per launch: name, extents, time, number of metrics."""
    rows = [["kernel", "grid", "block", "time", "metrics"]]
    for kernel in imported.kernels:
        extents = ["–" if e is None else "×".join(map(str, e)) for e in (kernel.grid, kernel.block)]
        time = "–" if kernel.time_s is None else time_text(kernel.time_s)
        rows.append([kernel.name, *extents, time, str(len(kernel.metrics))])
    return "\n".join([f"{imported.source}: {len(imported.kernels)} launches", *aligned(rows)])


def render_comparison_with(found: MeasuredComparison) -> str:
    """Predicted against measured time, and the factors that explain the difference."""
    head = (
        f"Measured {time_text(found.time_s)}, predicted {time_text(found.predicted_s)}: "
        f"{found.ratio:.2f} times the measured time ({found.place})"
    )
    rows = [[f"  {term.name}", f"× {term.factor:.3f}", term.reason] for term in found.terms]
    return "\n".join([head, *aligned(rows)])
