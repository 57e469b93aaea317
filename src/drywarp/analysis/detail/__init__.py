"""The detail of an answer: code with costs, source text, every model's curve, and single issue events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...errors import DrywarpError
from ...kernel.dataflow import Dataflow
from ...models.base import Prediction
from ...models.gpuperf import benefits_of
from ..prepared import Prepared
from ..request import Options
from ..result.detail import Detail
from .code import (
    MOST_EVENTS,
    all_curves,
    code_lines,
    instruction_roofline_of,
    issue_events,
    overlap_of,
    roofline_of,
    source_texts,
)


def in_detail(
    prepared: Prepared,
    options: Options,
    predictions: Mapping[str, Prediction],
    occupancies: list[int],
) -> Detail:
    """The detail of an answer; its `predictions` are reused. `options.detail` is the number of events to record."""
    options.on_stage("running every model")
    costed = replace(prepared.costed, producers=Dataflow(prepared.kernel.instructions, prepared.profile.cfg).producers)
    primary = predictions[options.models[0]]
    curves, refused = all_curves(costed, occupancies, predictions, options.full_simulation)
    missing: dict[str, str] = {}
    try:
        benefits = benefits_of(costed).cycles()
    except DrywarpError as reason:
        benefits, missing["benefits"] = {}, str(reason)
    code, cut = code_lines(prepared, primary.node_stalls)
    sources, cut_lines = source_texts(prepared, code)
    options.on_stage("recording issue events")
    events = None
    try:
        events = issue_events(prepared.costed, min(MOST_EVENTS, options.detail or 0))
    except DrywarpError as reason:
        missing["events"] = str(reason)
    return Detail(
        code=code,
        sources=sources,
        curves=curves,
        not_applicable=refused,
        roofline=roofline_of(prepared, primary.time_s),
        instruction_roofline=instruction_roofline_of(prepared, primary),
        benefits=benefits,
        events=events,
        overlap=overlap_of(events) if events else None,
        missing=missing,
        cut=(*cut, *cut_lines),
    )


__all__ = ["MOST_EVENTS", "in_detail"]
