"""What an answer is to be looked into with, gathered: code with costs, source, every model's curve, single issues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..detail import Detail
from ..errors import DrywarpError
from ..kernel.dataflow import Dataflow
from ..models.base import Prediction
from ..ready import BoundKernel, Options
from .benefits import benefits_of_launch
from .code import code_lines
from .curves import all_curves
from .events import MOST_EVENTS, issue_events
from .overlap import overlap_of
from .roofs import roofline_of
from .sources import source_texts


def in_detail(
    ready: BoundKernel,
    options: Options,
    predictions: Mapping[str, Prediction],
    occupancies: list[int],
) -> Detail:
    """The detail of an answer; its `predictions` are not made again. `options.detail` is how many events are wanted."""
    options.on_stage("asking every model")
    bound = replace(ready.bound, producers=Dataflow(ready.kernel.instructions, ready.profile.cfg).producers)
    believed = predictions[options.models[0]]
    curves, refused = all_curves(bound, occupancies, predictions, options.full_simulation)
    missing: dict[str, str] = {}
    try:
        benefits = benefits_of_launch(bound)
    except DrywarpError as reason:
        benefits, missing["benefits"] = {}, str(reason)
    code, cut = code_lines(ready, believed.node_stalls)
    sources, cut_lines = source_texts(ready, code)
    options.on_stage("following single issues")
    events = None
    try:
        events = issue_events(ready.bound, min(MOST_EVENTS, options.detail or 0))
    except DrywarpError as reason:
        missing["events"] = str(reason)
    return Detail(
        code=code,
        sources=sources,
        curves=curves,
        not_applicable=refused,
        roofline=roofline_of(ready, believed),
        benefits=benefits,
        events=events,
        overlap=overlap_of(events) if events else None,
        missing=missing,
        cut=(*cut, *cut_lines),
    )


__all__ = ["MOST_EVENTS", "in_detail"]
