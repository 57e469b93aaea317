"""Predictions against measurements, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from ..validation.accuracy import ModelAccuracy, ValidationReport
from ..validation.by_kernel import Figures, average
from ..validation.compare import RatioReport
from ..validation.coverage import Coverage
from .gpus import aligned

_MOST_DIMENSIONS = 6
"""Columns whose groups are shown, those first that explain most of the error."""
_FEWEST_EXPLAINED = 0.02
_MOST_REASONS = 5
_MOST_REASON = 140
_MODELS_A_TABLE = 6
_HEADS = ("rows", "MAPE", "median", "90 %", "bias", "ratio", "spread", "shape", "Spearman", "Kendall")


def render_validation(report: ValidationReport) -> Text:
    """What was compared, the models' figures, and where the believed model's errors lie."""
    text = Text()
    text.append(_headline(report) + "\n", "bold")
    for line in _remarks(report):
        text.append(line + "\n", "dim")
    told = [model for model in report.models if model.rows]
    if not told:
        return text
    _append(text, [["model", *_HEADS, *(f"top {k}" for k in told[0].regret)], *map(_figures, told)])
    for lines in kernel_tables(report):
        _append(text, lines)
    silent = [model for model in report.models if not model.rows]
    if silent:
        text.append("says nothing of these rows: " + "; ".join(map(_silence, silent)) + "\n", "dim")
    for model in told:
        if model.band:
            text.append(f"\n{model.model}: {coverage_text(model.band)}\n")
    _where(text, told[0])
    return text


def kernel_tables(report: ValidationReport) -> Iterator[list[list[str]]]:
    """MAPE and MAPE_shape of the performance in percent: a kernel a row, a few models a table, as in the papers."""
    models = [model.model for model in report.models if model.rows]
    for start in range(0, len(models) if report.kernels else 0, _MODELS_A_TABLE):
        shown = models[start : start + _MODELS_A_TABLE]
        table = [["MAPE / shape, %", "rows", *shown]]
        for kernel in report.kernels:
            table.append([kernel.kernel, str(kernel.rows), *(_both(kernel.models[name]) for name in shown)])
        table.append(["average", "", *(_both(average(report.kernels, name)) for name in shown)])
        yield table


def _both(figures: Figures) -> str:
    return " / ".join("–" if value is None else f"{100 * value:.1f}" for value in (figures.mape, figures.mape_shape))


def coverage_text(band: Coverage) -> str:
    """How often the band holds the measured time, and how wide it is."""
    return (
        f"bands of {band.level:.0%} hold {percent(band.held)} of {band.rows} measured times "
        f"({band.below} below, {band.above} above), median width {number(band.width)}; at the assumed clock "
        f"{percent(band.held_at_clock)}, width {number(band.width_at_clock)}"
    )


def _append(text: Text, rows: Sequence[Sequence[str]]) -> None:
    lines = aligned([list(row) for row in rows])
    text.append("\n" + lines[0] + "\n", "dim")
    text.append("\n".join(lines[1:]) + "\n")


def _headline(report: ValidationReport) -> str:
    good = sum(row.ok for row in report.rows)
    text = f"{report.table} on {report.gpu}: {good} of {len(report.rows)} rows predicted"
    return text + (f", outside the {report.aside} half" if report.aside else "")


def _remarks(report: ValidationReport) -> Iterator[str]:
    if report.timed_by:
        yield f"measured: column {report.timed_by}"
    if report.left_out:
        yield "left out: " + ", ".join(f"{count} rows with {reason}" for reason, count in report.left_out.items())
    for reason, count in list(report.failed.items())[:_MOST_REASONS]:
        yield f"failed: {count} row{'s' if count > 1 else ''}: {_short(reason)}"
    if len(report.failed) > _MOST_REASONS:
        yield f"failed: {len(report.failed) - _MOST_REASONS} further reasons"


def _short(reason: str) -> str:
    return reason if len(reason) <= _MOST_REASON else reason[: _MOST_REASON - 1] + "…"


def _figures(model: ModelAccuracy) -> list[str]:
    return [
        model.model,
        str(model.rows),
        *map(percent, (model.mape, model.median_error, model.p90_error, model.bias)),
        number(model.median_ratio),
        *map(percent, (model.spread_error, model.mape_shape)),
        *map(number, (model.spearman, model.kendall)),
        *map(percent, model.regret.values()),
    ]


def _silence(model: ModelAccuracy) -> str:
    reasons = list(model.not_applicable)
    said = _short(reasons[0]) if reasons else "no row was predicted"
    return f"{model.model} ({said}{', and similar' if len(reasons) > 1 else ''})"


def _where(text: Text, model: ModelAccuracy) -> None:
    """The groups of the columns that explain most of the error, and always those of the limiter and occupancy."""
    limits = ", ".join(f"{name} {count}" for name, count in model.limiters.items())
    text.append(f"\n{model.model}: limited by {limits}\n")
    shares = {name: share for name, share in model.explained.items() if share >= _FEWEST_EXPLAINED}
    said = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    text.append(f"share of the error's variance by column: {said or 'none above 2 %'}\n")
    shown = list(shares)[:_MOST_DIMENSIONS]
    shown += [name for name in ("limiter", "warps_per_sm") if name in model.by and name not in shown]
    for name in shown:
        rows = [
            (g.value or "–", str(g.rows), percent(g.mape), percent(g.median_error), number(g.median_ratio))
            for g in model.by[name]
        ]
        _append(text, [(name, "rows", "MAPE", "median", "ratio"), *rows])


def render_ratios(report: RatioReport) -> Text:
    """Ratios of times between two outputs, predicted against measured."""
    first, second = report.gpus
    text = Text()
    text.append(f"time on {second} over time on {first}, {report.matched} configurations\n", "bold")
    heads = ["model", "rows", "predicted", "measured", "median error", "MAPE", "90 %", "bias", "Spearman"]
    _append(text, [heads, *_ratio_rows(report)])
    return text


def _ratio_rows(report: RatioReport) -> Iterable[list[str]]:
    for model in report.models:
        yield [
            model.model,
            str(model.rows),
            *map(number, (model.predicted_median, model.measured_median)),
            *map(percent, (model.median_error, model.mape, model.p90_error, model.bias)),
            number(model.spearman),
        ]


def percent(fraction: float | None) -> str:
    """A fraction as a percentage with one digit; a dash for none."""
    return "–" if fraction is None else f"{fraction:.1%}"


def number(value: float | None) -> str:
    """Three digits behind the point; a dash for none."""
    return "–" if value is None else f"{value:.3f}"
