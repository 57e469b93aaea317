"""The data of the page's scripts: one JSON object, safe to embed in a script element."""

from __future__ import annotations

from base64 import b64encode
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from ...analysis.result import Analysis
from ...analysis.result.detail import CodeLine, Events, SourceText
from ..figures.theme import REASON_COLOURS

# Arrays as base64 of the smallest integer type that fits.

_TYPES = (("u8", "<u1", 2**8), ("u16", "<u2", 2**16), ("u32", "<u4", 2**32))


def packed(values: npt.NDArray[np.int64]) -> dict[str, str]:
    """`type` and `data` of one column, little-endian; values beyond 32 bits are stored as doubles."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    name, kind = "f64", "<f8"
    if low >= 0:
        name, kind = next(((short, narrow) for short, narrow, end in _TYPES if high < end), (name, kind))
    elif low >= -(2**31) and high < 2**31:
        name, kind = "i32", "<i4"
    return {"type": name, "data": b64encode(values.astype(kind).tobytes()).decode("ascii")}


def packed_events(events: Events, opcodes: dict[int, str]) -> dict[str, object]:
    """The execution profile for the page: issue times as deltas, and durations, both in ticks."""
    return {
        "count": len(events.issue),
        "total": events.total,
        "ticks_per_cycle": events.ticks_per_cycle,
        "partitions": events.partitions,
        "warps_per_block": events.warps_per_block,
        "lanes": [{"name": lane.name, "instances": lane.instances} for lane in events.lanes],
        "nodes": [[node.instruction, node.lane, node.lambda_ticks] for node in events.nodes],
        "opcodes": opcodes,
        "columns": {
            "step": packed(np.diff(events.issue, prepend=events.issue[:1])),
            "duration": packed(np.maximum(0, events.completion - events.issue)),
            "warp": packed(events.warp),
            "block": packed(events.block),
            "node": packed(events.node),
            "reason": packed(events.reason),
            "awaited": packed(events.awaited),
        },
    }


def payload(analysis: Analysis, answer: dict[str, Any], benefits: dict[str, Any]) -> dict[str, Any]:
    """The data of the page. `answer` is the result's JSON object, `benefits` GPUPerf's chart (may be empty)."""
    detail = analysis.detail
    reasons = list(REASON_COLOURS)
    code, sources = (detail.code, detail.sources) if detail else ((), ())
    curves = [(curve.model, curve.summary, curve.points) for curve in (detail.curves if detail else ())]
    curves = curves or [(name, "", prediction.curve) for name, prediction in analysis.predictions.items()]
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
        "curves": [
            {
                "model": model,
                "summary": summary,
                "points": [[p.occupancy_warps, p.warps_per_cycle, p.time_s, p.bound] for p in points],
            }
            for model, summary, points in curves
        ],
        "roofline": detail.roofline if detail else None,
        "instructionRoofline": detail.instruction_roofline if detail else None,
        "benefits": benefits,
        "code": _code(code, sources, reasons),
        "sources": [_source(source) for source in sources],
        "events": packed_events(events, {line.index: opcode_of(line.text) for line in code}) if events else None,
    }


def opcode_of(text: str) -> str:
    """The opcode of a line of the listing, without its guard."""
    words = text.split()
    words = words[1:] if words and words[0].startswith("@") else words
    return words[0].split(".")[0].rstrip(";") if words else ""


def _code(code: tuple[CodeLine, ...], sources: tuple[SourceText, ...], reasons: list[str]) -> dict[str, Any]:
    """The code by columns; stalls as pairs of reason index and warp-cycles, classes and subsystems by index."""
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
    """Integers without a decimal point, others to three decimals, to shorten the text."""
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
