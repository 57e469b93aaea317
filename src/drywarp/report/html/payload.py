"""What the page's scripts read: one JSON object, safe to stand inside a script element."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import msgspec

from ...detail import CodeLine, SourceText
from ...result import Analysis
from .colours import REASON_COLOURS
from .pack import packed_events

_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def json_for_script(value: Any) -> str:
    """JSON in which no character can end or begin markup: inside strings, where alone they occur, they are escaped."""
    text = msgspec.json.encode(value).decode("utf-8")
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def payload(analysis: Analysis, answer: dict[str, Any], benefits: dict[str, Any]) -> dict[str, Any]:
    """The data of the page. `answer` is the answer's JSON object, `benefits` GPUPerf's chart, empty for none."""
    detail = analysis.detail
    reasons = list(REASON_COLOURS)
    code, sources = (detail.code, detail.sources) if detail else ((), ())
    curves = [
        {
            "model": curve.model,
            "summary": curve.summary,
            "points": [[p.occupancy_warps, p.warps_per_cycle, p.time_s, p.bound] for p in curve.points],
        }
        for curve in (detail.curves if detail else ())
    ] or [
        {
            "model": name,
            "summary": "",
            "points": [[p.occupancy_warps, p.warps_per_cycle, p.time_s, p.bound] for p in prediction.curve],
        }
        for name, prediction in analysis.predictions.items()
    ]
    roofline = detail.roofline if detail else None
    events = detail.events if detail else None
    if events:
        reasons = list(dict.fromkeys([*events.reasons, *reasons]))
    return {
        "kernel": answer["kernel"],
        "clock": analysis.clock_hz,
        "model": analysis.model,
        "mainModels": list(analysis.predictions),
        "here": analysis.occupancy.warps_per_sm,
        "reasons": reasons,
        "reasonColours": REASON_COLOURS,
        "curves": curves,
        "roofline": roofline,
        "benefits": benefits,
        "code": _code(code, sources, reasons),
        "sources": [_source(source) for source in sources],
        "events": packed_events(events, {line.index: _opcode(line.text) for line in code}) if events else None,
    }


def _opcode(text: str) -> str:
    """The opcode of a listing's line, its guard left out."""
    words = text.split()
    if words and words[0].startswith("@"):
        words = words[1:]
    return words[0].split(".")[0].rstrip(";") if words else ""


def _code(code: tuple[CodeLine, ...], sources: tuple[SourceText, ...], reasons: list[str]) -> dict[str, Any]:
    """By columns; stalls as pairs of a reason's number and warp-cycles, the names of classes and subsystems apart."""
    number = {source.file: index for index, source in enumerate(sources)}
    classes = list(dict.fromkeys(line.class_ for line in code))
    subsystems = list(dict.fromkeys(line.subsystem for line in code if line.subsystem))
    class_at = {name: index for index, name in enumerate(classes)}
    subsystem_at = {name: index for index, name in enumerate(subsystems)}
    reason_at = {name: index for index, name in enumerate(reasons)}
    return {
        "index": [line.index for line in code],
        "pc": [line.pc for line in code],
        "text": [line.text for line in code],
        "file": [number.get(line.file, -1) for line in code],
        "line": [line.line for line in code],
        "executions": [_short(line.executions) for line in code],
        "stalls": [[each for r, c in line.stalls.items() for each in (reason_at[r], _short(c))] for line in code],
        "class": classes,
        "classAt": [class_at[line.class_] for line in code],
        "subsystem": subsystems,
        "subsystemAt": [subsystem_at.get(line.subsystem, -1) for line in code],
        "lambda": [_short(line.lambda_cycles) for line in code],
        "latency": [_short(line.latency_cycles) for line in code],
    }


def _short(value: float) -> float | int:
    """Whole numbers without a point, others to three decimals: shorter text."""
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def _source(source: SourceText) -> dict[str, Any]:
    numbers = [number for number, _ in source.lines]
    whole = numbers == list(range(1, len(numbers) + 1))
    return {
        "name": PurePath(source.file).name or source.file,
        "path": source.file,
        "found": source.total > 0,
        "numbers": None if whole else numbers,
        "texts": [text for _, text in source.lines],
    }
