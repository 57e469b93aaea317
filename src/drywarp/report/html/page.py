"""Build the HTML report: tables from the template, data, scripts, and the Content-Security-Policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from ...analysis.result import Analysis, limit_words, unit_words
from ...support.text import bytes_text, count_text, percent_text, range_text, time_text
from ..figures.theme import REASON_COLOURS
from ..terminal import bounds_text, no_conflicts_text
from .document import asset, document
from .payload import payload

SCRIPTS = ("core.js", "charts.js", "source.js", "profile_data.js", "profile_draw.js", "profile.js")

_SURE = 1.01
"""Uncertainty factors whose high/low ratio is below this are not shown."""
_LINES_SHOWN, _PLACES_SHOWN, _LEAST_USE = 15, 8, 0.0005


def html_page(analysis: Analysis) -> str:
    """The result as one HTML document. Intended for results with `detail`; without it, some sections are missing.

    Names and source are always escaped as text. The Content-Security-Policy allows only the page's own script and
    style, identified by their hashes. Raises UsageError if Jinja2 is not installed.
    """
    answer = analysis.to_dict()
    benefits = _benefits(analysis, answer)
    text, _ = document(
        "html/page.html",
        ["html/report.css"],
        "".join(asset(f"html/{name}") for name in SCRIPTS),
        what="an HTML report",
        data=payload(analysis, answer, benefits),
        filters={
            "time": time_text,
            "bytes": bytes_text,
            "count": count_text,
            "percent": percent_text,
            "words": _words,
            "figure": figure_text,
            "first_capital": _capital,
        },
        a=analysis,
        answer=answer,
        detail=analysis.detail,
        benefits=benefits,
        file_name=PurePath(analysis.source_file).name,
        part=unit_words,
        limit_words=limit_words,
        reason_colour=REASON_COLOURS,
        stalls=sorted(analysis.prediction.stalls.items(), key=lambda item: -item[1]),
        use=_use(analysis),
        lines=[line for line in analysis.lines[:_LINES_SHOWN] if line.share >= _LEAST_USE],
        band=_band(analysis),
        no_conflicts=no_conflicts_text(analysis),
        bounds=bounds_text(analysis.bounds) if analysis.bounds else "",
        uncertain=[part for part in analysis.band.parts if part.high / part.low > _SURE] if analysis.band else [],
        places_shown=_PLACES_SHOWN,
        lanes=_lanes(analysis),
        rooflines=_rooflines(analysis),
    )
    return text


def _rooflines(analysis: Analysis) -> list[tuple[object, ...]]:
    """Each roofline with its element's id, its words and its units."""
    found: list[tuple[object, ...]] = []
    detail = analysis.detail
    if detail and detail.roofline:
        work = detail.roofline.work
        about = (
            f"{_capital(work)} per second over arithmetic intensity ({work} per byte), below the pipes' peak rates "
            "and the bandwidths of L2 and DRAM."
        )
        unit = "GFLOP/s" if work == "FLOP" else f"10⁹ {work}/s"
        found.append(("roofline-chart", "Roofline", about, detail.roofline, unit, 1e9, "GB/s"))
    if detail and detail.instruction_roofline and detail.instruction_roofline.roofs:
        about = (
            "Warp instructions per cycle, below the limit that each part of the GPU sets for this instruction mix; "
            "bandwidth limits are sloped."
        )
        unit = "warp instructions per cycle per SM"
        ours = detail.instruction_roofline
        found.append(("instruction-roofline-chart", "Instruction roofline", about, ours, unit, 1, "B/cycle"))
    return found


def _band(analysis: Analysis) -> dict[str, Any]:
    """The confidence interval in words, and its position on a line from 0 to its end; empty if there is none."""
    band = analysis.band
    if band is None or not band.high_s > 0:
        return {}
    whole = range_text(time_text(band.low_s), time_text(band.high_s))
    inner = range_text(time_text(band.low_at_clock_s), time_text(band.high_at_clock_s))
    percent = 100 / max(band.high_s, band.high_at_clock_s)
    words: dict[str, Any] = {
        "level": f"{band.level:.0%}",
        "whole": [round(percent * each, 2) for each in (band.low_s, band.high_s - band.low_s)],
        "inner": [
            round(percent * each, 2) for each in (band.low_at_clock_s, band.high_at_clock_s - band.low_at_clock_s)
        ],
        "mark": round(percent * analysis.time_s, 2),
    }
    words["text"] = f"{inner} at {analysis.clock_hz / 1e6:.0f} MHz"
    if band.clock_hz is not None:
        low, high = (f"{hertz / 1e6:.0f}" for hertz in band.clock_hz)
        any_clock = f"{whole} at any clock from {low} to {high} MHz"
        words["text"] = any_clock if whole == inner else f"{words['text']}, {any_clock}"
    return words


def _words(name: str) -> str:
    return name.replace("_", " ")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def figure_text(value: float | None) -> str:
    """Four significant digits, with thousands separators; a dash for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _use(analysis: Analysis) -> list[tuple[str, float, float | None]]:
    """Parts of the GPU, busiest first: fraction of the time, and the time in seconds if each were the only limit."""
    prediction = analysis.prediction
    rows = sorted(prediction.utilization.items(), key=lambda item: -item[1])
    alone = {name: cycles / analysis.clock_hz for name, cycles in prediction.headroom.items()}
    return [(name, share, alone.get(name)) for name, share in rows if share >= _LEAST_USE]


def _benefits(analysis: Analysis, answer: Mapping[str, Any]) -> dict[str, Any]:
    """GPUPerf's chart from the advice if present, otherwise from the detail; empty if its inputs are missing."""
    advised = (answer.get("advice") or {}).get("benefits") or {}
    if "t_exec_cycles" in advised:
        return dict(advised)
    return dict(analysis.detail.benefits) if analysis.detail else {}


def _lanes(analysis: Analysis) -> list[tuple[str, int, int, float, float]]:
    """For each subsystem in the execution profile: instances, issues, and fractions of time busy and busy alone."""
    detail = analysis.detail
    if detail is None or detail.events is None:
        return []
    events, overlap = detail.events, detail.overlap
    issues = [0] * len(events.lanes)
    for node in events.node.tolist():
        issues[events.nodes[node].lane] += 1
    return [
        (
            lane.name,
            lane.instances,
            count,
            overlap.busy[lane.name] if overlap else 0.0,
            overlap.alone[lane.name] if overlap else 0.0,
        )
        for lane, count in zip(events.lanes, issues, strict=True)
    ]
