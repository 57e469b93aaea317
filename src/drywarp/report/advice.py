"""Findings, what-ifs and the benefit chart as text."""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ..finding import Advice, BenefitChart, Finding, WhatIfAnswer
from ..result import Analysis, limit_words
from .units import time_text

_SHOWN, _LINES_SHOWN = 6, 4


def render_findings(analysis: Analysis) -> list[RenderableType]:
    """Gain, rule, lines and remedy of each finding; with --advice what was seen, too."""
    if not analysis.findings:
        return []
    shown = analysis.findings[:_SHOWN]
    parts: list[RenderableType] = [
        Text.assemble(("What would pay", "bold"), ", each simulated alone; drywarp explain RULE says more")
    ]
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for finding in shown:
        said = Text.assemble((finding.rule, "bold"), f", {lines_text(finding, analysis)}: {finding.remedy}")
        if analysis.advice is not None:
            said.append(f" ({finding.evidence})", style="dim")
        table.add_row(f"{finding.gain:5.2f}×", said)
    parts.append(table)
    if len(analysis.findings) > len(shown):
        parts.append(Text(f"and {len(analysis.findings) - len(shown)} more", style="dim"))
    return [*parts, Text("")]


def lines_text(finding: Finding, analysis: Analysis) -> str:
    """The lines, with their file where that is not the kernel's own."""
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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("gain", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("if")
    table.add_column("then limited by")
    for answer in advice.what_ifs:
        table.add_row(*_row(answer))
    return [Text("What if", style="bold"), table, Text("")]


def _row(answer: WhatIfAnswer) -> tuple[str, str, Text, str]:
    said = Text(answer.name)
    if answer.note:
        said.append(f" ({answer.note})", style="dim")
    if answer.gain is None or answer.time_s is None:
        return "–", "", said, "not possible"
    return f"{answer.gain:.2f}×", time_text(answer.time_s), said, limit_words(answer.limiter or "latency")


def _chart(chart: BenefitChart, clock_hz: float) -> list[RenderableType]:
    heading = Text("Potential benefits of GPUPerf's model", style="bold")
    if chart.not_applicable:
        return [heading, Text(f"not applicable: {chart.not_applicable}", style="dim"), Text("")]
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    rows = (
        ("B_itilp", chart.b_itilp, "more instructions in parallel, in a warp or by more warps"),
        ("B_memlp", chart.b_memlp, "more memory accesses in parallel"),
        ("B_fp", chart.b_fp, "less computation that is not floating point"),
        ("B_serial", chart.b_serial, "no synchronisation, bank conflicts, special functions, divergence"),
    )
    for name, cycles, meaning in rows:
        table.add_row(name, time_text(abs(cycles) / clock_hz) if cycles >= 0 else "none", meaning)
    point = (
        f"{chart.bound} bound in the X-Y chart: T_mem {time_text(chart.t_mem / clock_hz)} (at least "
        f"{time_text(chart.t_mem_min / clock_hz)}), T_comp {time_text(chart.t_comp / clock_hz)} (at least "
        f"{time_text(chart.t_fp / clock_hz)}), T_overlap {time_text(chart.t_overlap / clock_hz)}"
    )
    return [heading, table, Text(point, style="dim"), Text("")]
