"""Build the HTML report: tables from the template, data, scripts, and the Content-Security-Policy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from ..._version import __version__
from ...analysis.result import Analysis, limit_words, unit_words
from ...program.result import ProgramRun
from ...support.text import bytes_text, count_text, percent_text, plain, range_text, time_text
from ..figures.theme import REASON_COLOURS
from ..program import missing_text, program_notes, stream_name
from ..terminal import bounds_text, no_conflicts_text
from . import asset, document
from .payload import packed, payload

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
        filters=FILTERS,
        a=analysis,
        answer=answer,
        detail=analysis.detail,
        benefits=benefits,
        file_name=PurePath(analysis.source_file).name,
        **WORDS,
        **_tables(analysis),
        band=_band(analysis),
        bounds=bounds_text(analysis.bounds) if analysis.bounds else "",
        uncertain=[part for part in analysis.band.parts if part.high / part.low > _SURE] if analysis.band else [],
        lanes=_lanes(analysis),
        rooflines=_rooflines(analysis),
    )
    return text


def _tables(analysis: Analysis) -> dict[str, Any]:
    """What the parts that pages share show of an answer."""
    return {
        "stalls": sorted(analysis.prediction.stalls.items(), key=lambda item: -item[1]),
        "use": _use(analysis),
        "lines": [line for line in analysis.lines[:_LINES_SHOWN] if line.share >= _LEAST_USE],
        "no_conflicts": no_conflicts_text(analysis),
    }


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


FILTERS: dict[str, Callable[..., str]] = {
    "time": time_text,
    "bytes": bytes_text,
    "count": count_text,
    "percent": percent_text,
    "words": _words,
    "figure": figure_text,
    "first_capital": _capital,
}
WORDS: dict[str, Any] = {
    "part": unit_words,
    "limit_words": limit_words,
    "reason_colour": REASON_COLOURS,
    "places_shown": _PLACES_SHOWN,
}


# The page of a whole program: the timeline of its streams, and a report of each kernel.

MOST_BOXES, MOST_TRACKS = 10_000, 64
_FINEST = 1 / 20_000
"""Where there are more launches and copies than boxes, boxes shorter than this share of the whole are joined first."""
_TICKS = 1 << 31


@dataclass(slots=True)
class _Box:
    """Work that is drawn together, on one stream."""

    track: int
    name: int
    start_s: float
    end_s: float
    count: int
    size: int


def program_page(run: ProgramRun) -> str:
    """The page of a whole program as one HTML document. Raises UsageError without Jinja2."""
    kept = {one.kernel: one.outcome.kept for one in run.launches if one.outcome.kept}
    kernels = [
        {"total": one, "a": (found := run.behind.get(one.kernel)), "kept": kept.get(one.kernel, "")}
        | (_tables(found) if found else {})
        for one in run.kernels
    ]
    data, joined = _timeline(run)
    text, _ = document(
        "html/program.html",
        ["html/report.css", "html/program.css"],
        "".join(asset(f"html/{name}") for name in ("core.js", "program.js")),
        what="an HTML report",
        data=data,
        filters=FILTERS,
        **WORDS,
        run=run,
        program=PurePath(run.command[0]).name,
        kernels=kernels,
        missing=[line for text in missing_text(run) for line in text.splitlines()],
        notes=program_notes(run),
        spans=sum(span.count for span in run.spans),
        merged=joined,
        hidden=max(0, len(run.streams()) - MOST_TRACKS),
        detail=None,
        version=__version__,
    )
    return text


def _timeline(run: ProgramRun) -> tuple[dict[str, Any], float]:
    """The data of the timeline, and the seconds up to which neighbours were joined, 0 if none were."""
    streams = dict(itertools.islice(run.streams().items(), MOST_TRACKS))
    place = {one.kernel: number for number, one in enumerate(run.kernels)}
    names: dict[tuple[str, str], int] = {("several", "several"): 0}
    boxes = [
        _Box(
            track, names.setdefault((span.kind, span.name), len(names)), span.start_s, span.end_s, span.count, span.size
        )
        for track, spans in enumerate(streams.values())
        for span in spans
    ]
    last = max([run.time_s, *(box.end_s for box in boxes)])
    joined = 0.0
    if len(boxes) > MOST_BOXES:
        joined = last * _FINEST
        boxes = _joined(boxes, joined, equal=True)
    while len(boxes) > MOST_BOXES:
        joined *= 2
        boxes = _joined(boxes, joined, equal=False)
    unit = last / _TICKS or 1.0
    columns = {
        "track": [box.track for box in boxes],
        "name": [box.name for box in boxes],
        "start": [round(box.start_s / unit) for box in boxes],
        "taken": [round((box.end_s - box.start_s) / unit) for box in boxes],
        "count": [box.count for box in boxes],
        "bytes": [box.size for box in boxes],
    }
    return {
        "reasonColours": REASON_COLOURS,
        "tracks": [stream_name(key, len(run.processes), run.devices) for key in streams],
        "names": [{"kind": kind, "name": plain(name), "place": place.get(name, 0)} for kind, name in names],
        "count": len(boxes),
        "unit": unit,
        "last": last,
        "columns": {name: packed(np.array(values, np.int64)) for name, values in columns.items()},
    }, joined


def _joined(boxes: list[_Box], seconds: float, equal: bool) -> list[_Box]:
    """The boxes, each joined with the one before it on its stream if it is near.

    That is: with `equal`, the same and no more than these seconds apart; else, no longer than them together.
    """
    found: list[_Box] = []
    for box in boxes:
        before = found[-1] if found and found[-1].track == box.track else None
        if before and (
            (before.name == box.name and box.start_s - before.end_s <= seconds)
            if equal
            else box.end_s - before.start_s <= seconds
        ):
            before.end_s, before.count, before.size = box.end_s, before.count + box.count, before.size + box.size
            before.name = before.name if before.name == box.name else 0
        else:
            found.append(box)
    return found
