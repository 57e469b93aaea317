"""All models on one workload, as text and JSON: a chart, a table, and on request what they were given."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from .. import __version__
from ..models.base import CurvePoint
from ..models.comparison import Comparison
from ..result import SCHEMA_VERSION, limit_words
from .curves_text import chart, sign_of
from .gpus import aligned
from .model_inputs import render_inputs
from .units import time_text

MOST_COLUMNS = 10
"""Occupancies in the table; of more an even choice is shown, with the first and the last."""


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """The documented JSON object (docs/json.md)."""
    return {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__}, **comparison.to_dict()}


def render_comparison(comparison: Comparison, with_inputs: bool = False) -> Text:
    """Headline, chart, table, models that do not apply, and the inputs if wanted."""
    text = Text.assemble((f"{comparison.workload}", "bold green"), f"  on {comparison.gpu_title}\n")
    text.append(f"{comparison.title}\n", style="dim")
    if comparison.settings:
        text.append(", ".join(f"{name} = {value:g}" for name, value in comparison.settings.items()) + "\n", "dim")
    text.append("\nWarps per cycle over occupancy in warps per SM\n", style="bold")
    lines = aligned(_table(comparison))
    text.append(chart(comparison) + "\n\n")
    text.append(lines[0] + "\n", style="dim")
    text.append("\n".join(lines[1:]) + "\n")
    if comparison.not_applicable:
        text.append("\nNot applicable\n", style="bold")
        rows = [[name, reason] for name, reason in comparison.not_applicable.items()]
        text.append("\n".join(aligned(rows)) + "\n")
    if with_inputs:
        text.append("\nWhat the models were given\n", style="bold")
        text.append(render_inputs(comparison.inputs, comparison.input_sources) + "\n")
    text.append(f"\n{_assumptions(comparison)}", style="dim")
    for note in comparison.notes:
        text.append(f"\nnote: {note}", style="yellow")
    return text


def _assumptions(comparison: Comparison) -> str:
    runs = {0: "the grid in its waves", 1: "so many warps at once, none replaced"}.get(
        comparison.runs, f"each SM runs {comparison.runs} times its warps"
    )
    scheduler = comparison.scheduler.replace("_", " ")
    return f"At {comparison.inputs.clock_hz / 1e6:g} MHz, {scheduler} scheduling; {runs}."


def shown_occupancies(occupancies: tuple[int, ...]) -> list[int]:
    """At most `MOST_COLUMNS` of the occupancies, the first and the last among them."""
    if len(occupancies) <= MOST_COLUMNS:
        return list(occupancies)
    last = len(occupancies) - 1
    return [occupancies[round(i * last / (MOST_COLUMNS - 1))] for i in range(MOST_COLUMNS)]


def _table(comparison: Comparison) -> list[list[str]]:
    """A row a model: its letter, WPC at each occupancy, what bounds it last, its time at the own occupancy."""
    shown = shown_occupancies(comparison.occupancies)
    rows = [["", "model", *(str(warps) for warps in shown), "bound", f"time at {comparison.inputs.warps}"]]
    for number, (name, prediction) in enumerate(comparison.predictions.items()):
        points = {point.occupancy_warps: point for point in prediction.curve}
        cells = [_cell(points.get(warps)) for warps in shown]
        rows.append([sign_of(number), name, *cells, limit_words(prediction.limiter), _time(prediction.time_s)])
    return rows


def _cell(point: CurvePoint | None) -> str:
    return "–" if point is None else f"{point.warps_per_cycle:.4g}"


def _time(seconds: float) -> str:
    return time_text(seconds) if 0 <= seconds < float("inf") else "–"
