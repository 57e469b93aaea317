"""Build the HTML report: tables from the template, data, scripts, and the Content-Security-Policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from rich.table import Table
from rich.text import Text

from ...analysis.result import Analysis, limit_words, unit_words
from ...experiments.calibrate.result import Calibration, Curve
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


# A calibration as terminal text.


def render_calibration(calibration: Calibration) -> Table:
    """Every measured constant with its spread."""
    table = Table(box=None, pad_edge=False, title_justify="left", title=Text(_title(calibration)))
    table.add_column("constant")
    for name in ("value", "±", "ns"):
        table.add_column(name, justify="right")
    table.add_column("unit")
    for figure in calibration.figures:
        ns = "" if figure.ns is None else f"{figure.ns:.4g}"
        name = figure.key if figure.in_file else f"{figure.key} (report only)"
        table.add_row(Text(name), f"{figure.value:.5g}", f"{figure.spread:.2g}", ns, figure.unit)
    return table


def _title(calibration: Calibration) -> str:
    low, high = calibration.clock_range_mhz
    device = calibration.device
    return f"{device.name}, {device.driver}, {calibration.date}, SM clock {low:.0f} to {high:.0f} MHz"


def notes(calibration: Calibration) -> list[str]:
    """Lines on what could not be measured, and on the values inherited from the packaged file."""
    lines = [f"not determined: {name}: {why}" for name, why in calibration.silent.items()]
    if calibration.gpu_file:
        lines.append(f"inherited from the packaged architecture, not measured: {', '.join(calibration.inherited)}")
    return lines


# The page of a calibration: constants, and every curve with its fit. It contains no script.

WIDTH, HEIGHT = 480, 300
LEFT, TOP, RIGHT, BOTTOM = 58, 26, 466, 258
_LOGARITHMIC = 60
"""Axes whose last value is more than this many times the first are logarithmic."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A position on an axis with its label."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Point:
    """A point with the ends of its error bar, in drawing units."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Drawing:
    """A curve as the template draws it."""

    title: str
    formula: str
    x_label: str
    y_label: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    points: list[Point]
    fit: str


def calibration_page(calibration: Calibration) -> str:
    """The page as one HTML document; all text from the device is escaped. Raises UsageError without Jinja2."""
    text, _ = document(
        "html/calibration.html",
        ["html/report.css", "html/calibration.css"],
        what="a calibration's report",
        c=calibration,
        curves=[drawing(curve) for curve in calibration.curves],
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        top=TOP,
        right=RIGHT,
        bottom=BOTTOM,
    )
    return text


def drawing(curve: Curve) -> Drawing:
    """Lay out a curve: axes, points and fit in drawing units."""
    x, x_ticks = _axis(curve.x, LEFT, RIGHT)
    y, y_ticks = _axis([*curve.y, *curve.fit], BOTTOM, TOP)
    points = [Point(x(a), y(b), y(b - s), y(b + s)) for a, b, s in zip(curve.x, curve.y, curve.spread, strict=True)]
    corners = [f"{x(a):.1f} {y(b):.1f}" for a, b in zip(curve.x, curve.fit, strict=False)]
    fit = "M" + "L".join(corners) if corners else ""
    return Drawing(curve.title, curve.formula, curve.x_label, curve.y_label, x_ticks, y_ticks, points, fit)


def _axis(values: Sequence[float], start: float, end: float) -> tuple[Callable[[float], float], list[Tick]]:
    low, high = min(values), max(values)
    if low > 0 and high / low > _LOGARITHMIC:
        span = math.log(high / low)

        def log_place(value: float) -> float:
            return round(start + math.log(max(value, low / 2) / low) / span * (end - start), 1)

        places, place = _powers(low, high), log_place
    else:
        top = high * 1.05 or 1.0

        def place(value: float) -> float:
            return round(start + value / top * (end - start), 1)

        step = 10 ** math.floor(math.log10(top))
        step = next(step / part for part in (1, 2, 5, 10) if top * part / step >= 4)
        places = [n * step for n in range(int(top / step) + 1)]
    return place, [Tick(place(value), f"{value:.4g}") for value in places]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten between two numbers, plus 2 and 5 times them if there are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [step * 10.0**power for power in powers for step in (1, 2, 5) if low <= step * 10.0**power <= high]
    return found if len(found) <= 8 else [value for value in found if math.log10(value) % 1 < 1e-9]
