"""The page put together: tables by the template, data and scripts beside them, and what a browser may not do."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from ...errors import UsageError
from ...result import Analysis, limit_words
from ..terminal import bounds_text, no_conflicts_text
from ..units import bytes_text, count_text, percent_text, time_text
from .colours import REASON_COLOURS
from .payload import json_for_script, payload

SCRIPTS = ("core.js", "charts.js", "source.js", "profile_data.js", "profile_draw.js", "profile.js")

_PARTS = {"issue": "issue slots", "dram": "DRAM", "l2": "L2", "atomics": "one address"}
_SURE = 1.01
"""A part of the band that changes the time by less is not shown."""
_LINES_SHOWN, _PLACES_SHOWN, _LEAST_USE = 15, 8, 0.0005


def html_page(analysis: Analysis) -> str:
    """The whole answer as one HTML document. Made for an answer with `detail`; without it shows what there is.

    Names and source are text wherever they stand. A Content-Security-Policy forbids all but the page's own script
    and style, by their hashes. Raises UsageError where Jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise UsageError("an HTML report needs Jinja2: pip install jinja2") from None
    assets = files(__package__)
    style = assets.joinpath("report.css").read_text(encoding="utf-8")
    script = "".join(assets.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        time=time_text,
        bytes=bytes_text,
        count=count_text,
        percent=percent_text,
        words=_words,
        figure=figure_text,
        first_capital=_capital,
    )
    template = environment.from_string(assets.joinpath("page.html").read_text(encoding="utf-8"))
    answer = analysis.to_dict()
    benefits = _benefits(analysis, answer)
    data = json_for_script(payload(analysis, answer, benefits))
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return template.render(
        policy=policy,
        style=Markup(style),
        script=Markup(script),
        data=Markup(data),
        a=analysis,
        answer=answer,
        detail=analysis.detail,
        benefits=benefits,
        file_name=PurePath(analysis.source_file).name,
        part=lambda name: _PARTS.get(name, name),
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
    )


def _band(analysis: Analysis) -> dict[str, Any]:
    """Between which times the truth lies, in words, and where that is on a line from 0 to all of it; empty for none."""
    band = analysis.band
    if band is None or not band.high_s > 0:
        return {}
    whole = f"{time_text(band.low_s)} to {time_text(band.high_s)}"
    inner = f"{time_text(band.low_at_clock_s)} to {time_text(band.high_at_clock_s)}"
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


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")


def _words(name: str) -> str:
    return name.replace("_", " ")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def figure_text(value: float | None) -> str:
    """Four significant digits, thousands apart; a dash for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _use(analysis: Analysis) -> list[tuple[str, float, float | None]]:
    """Parts of the machine, busiest first: share of the time, and the time in seconds if each were the only limit."""
    prediction = analysis.prediction
    rows = sorted(prediction.utilization.items(), key=lambda item: -item[1])
    alone = {name: cycles / analysis.clock_hz for name, cycles in prediction.headroom.items()}
    return [(name, share, alone.get(name)) for name, share in rows if share >= _LEAST_USE]


def _benefits(analysis: Analysis, answer: Mapping[str, Any]) -> dict[str, Any]:
    """GPUPerf's chart as advice gives it, else as the detail does; empty where the paper's inputs are missing."""
    advised = (answer.get("advice") or {}).get("benefits") or {}
    if "t_exec_cycles" in advised:
        return dict(advised)
    return dict(analysis.detail.benefits) if analysis.detail else {}


def _lanes(analysis: Analysis) -> list[tuple[str, int, int, float, float]]:
    """Of each subsystem in the execution profile: instances, issues, and shares of its time busy and alone busy."""
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
