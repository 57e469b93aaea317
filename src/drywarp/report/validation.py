"""Predictions against measurements, and corpus reports, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from ..experiments.corpus.result import COMPILE_FAILED, FAILED, NO_KERNELS, PART, CorpusReport, Row
from ..experiments.validate.accuracy import WORST, ModelAccuracy, ValidationReport, WorstRow
from ..experiments.validate.compare import RatioReport
from ..experiments.validate.groups import Coverage, Figures, average
from ..support.text import plain, time_text
from .tables import aligned, table_text

_MOST_DIMENSIONS = 6
"""Maximum number of columns whose groups are shown, starting with those that explain most of the error."""
_FEWEST_EXPLAINED = 0.02
_MOST_REASONS = 5
_MOST_REASON = 140
_LONGEST_COMMAND = 2000
_MODELS_A_TABLE = 6
_HEADS = ("rows", "MAPE", "median", "90 %", "bias", "ratio", "spread", "shape", "Spearman", "Kendall")


def render_validation(report: ValidationReport, worst: int = WORST) -> Text:
    """What was compared, the models' accuracy, where the primary model's errors lie, and its worst rows."""
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
        text.append("no predictions from: " + "; ".join(map(_silence, silent)) + "\n", "dim")
    for model in told:
        if model.band:
            text.append(f"\n{model.model}: {coverage_text(model.band)}\n")
    _where(text, told[0])
    _worst(text, report.worst(worst), told[0].model)
    return text


def kernel_tables(report: ValidationReport) -> Iterator[list[list[str]]]:
    """MAPE and MAPE_shape of the performance in percent: one row per kernel, a few models per table, as in papers."""
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
    """How often the interval contains the measured time, and how wide it is."""
    return (
        f"{band.level:.0%} intervals contain {percent(band.held)} of {band.rows} measured times "
        f"({band.below} below, {band.above} above), median width {number(band.width)}; at the assumed clock "
        f"{percent(band.held_at_clock)}, width {number(band.width_at_clock)}"
    )


def _append(text: Text, rows: Sequence[Sequence[str]]) -> None:
    text.append("\n")
    text.append(table_text(rows))


def _headline(report: ValidationReport) -> str:
    good = sum(row.ok for row in report.rows)
    text = f"{report.table} on {report.gpu}: {good} of {len(report.rows)} rows predicted"
    return text + (f", excluding the {report.aside} half" if report.aside else "")


def _remarks(report: ValidationReport) -> Iterator[str]:
    if report.timed_by:
        yield f"measured: column {report.timed_by}"
    if report.left_out:
        yield "excluded: " + ", ".join(f"{count} rows with {reason}" for reason, count in report.left_out.items())
    for reason, count in list(report.failed.items())[:_MOST_REASONS]:
        yield f"failed: {count} row{'s' if count > 1 else ''}: {_short(reason)}"
    if len(report.failed) > _MOST_REASONS:
        yield f"failed: {len(report.failed) - _MOST_REASONS} other reasons"


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
    said = _short(reasons[0]) if reasons else "no row predicted"
    return f"{model.model} ({said}{', and similar' if len(reasons) > 1 else ''})"


def _where(text: Text, model: ModelAccuracy) -> None:
    """Groups of the columns that explain most of the error, and always those of limiter and occupancy."""
    limits = ", ".join(f"{name} {count}" for name, count in model.limiters.items())
    text.append(f"\n{model.model}: limited by {limits}\n")
    shares = {name: share for name, share in model.explained.items() if share >= _FEWEST_EXPLAINED}
    said = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    text.append(f"share of the error variance explained by column: {said or 'none above 2 %'}\n")
    shown = list(shares)[:_MOST_DIMENSIONS]
    shown += [name for name in ("limiter", "warps_per_sm") if name in model.by and name not in shown]
    for name in shown:
        rows = [
            (g.value or "–", str(g.rows), percent(g.mape), percent(g.median_error), number(g.median_ratio))
            for g in model.by[name]
        ]
        _append(text, [(name, "rows", "MAPE", "median", "ratio"), *rows])


def _worst(text: Text, rows: Sequence[WorstRow], model: str) -> None:
    if not rows:
        return
    text.append(f"\nrows that {model} predicts worst\n", "bold")
    heads = ["row", "predicted", "measured", "ratio", "limiter", "parameters"]
    cells = [
        [
            str(row.row),
            time_text(row.predicted_s),
            time_text(row.measured_s),
            f"{row.ratio:.2f}",
            row.limiter,
            plain(" ".join(f"{name}={value}" for name, value in row.parameters.items()), _MOST_REASON),
        ]
        for row in rows
    ]
    _append(text, [heads, *cells])
    known = [row for row in rows if row.command]
    if known:
        text.append("\nto look into them:\n", "dim")
    for row in known:
        text.append(f"row {row.row}: {plain(row.command, _LONGEST_COMMAND)}\n")


def render_ratios(report: RatioReport) -> Text:
    """Time ratios between two outputs, predicted against measured."""
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
    """A fraction as a percentage with one decimal; a dash for none."""
    return "–" if fraction is None else f"{fraction:.1%}"


def number(value: float | None) -> str:
    """A number with three decimals; a dash for none."""
    return "–" if value is None else f"{value:.3f}"


# A corpus run as text: one line per module, then totals and failure counts.

_MOST_FAILURE_TEXT = 110
"""Maximum characters of a reason on a line; the JSON has it in full."""
_WORDS = {COMPILE_FAILED: "not compiled", NO_KERNELS: "no kernels", PART: "part of another"}


def print_corpus(report: CorpusReport) -> None:
    """Print the report to standard output."""
    print("\n".join(corpus_lines(report)))


def corpus_lines(report: CorpusReport) -> list[str]:
    """The report's lines."""
    head = ["module", "result", "stage", "kernels", "seconds", "MiB", "reason"]
    lines = aligned([head, *map(_cells, report.rows)])
    totals = report.totals
    compiled = totals.modules - totals.compile_failed
    lines += [
        "",
        f"{totals.modules} modules for {report.gpu}: {totals.analysed} analysed, {totals.failed} failed, "
        f"of which {totals.compile_failed} did not compile; analysed {totals.analysed} of {compiled} that compile",
        f"{totals.kernels} kernels, {totals.instructions} instructions, "
        f"{totals.unclassified_opcodes} unclassified opcodes, {report.seconds:.0f} s",
    ]
    if totals.no_kernels or totals.parts:
        lines.append(f"not modules: {totals.no_kernels} files without kernels, {totals.parts} parts of other files")
    unclassified = sorted({opcode for row in report.rows for opcode in row.unclassified})
    if unclassified:
        lines.append(f"unclassified: {', '.join(unclassified)}")
    broken = Counter(row.stage for row in report.rows if row.status == FAILED)
    lines += [f"compiled but not analysed: {count} at stage {stage}" for stage, count in broken.most_common()]
    return lines


def _cells(row: Row) -> list[str]:
    reason = row.reason if len(row.reason) <= _MOST_FAILURE_TEXT else row.reason[: _MOST_FAILURE_TEXT - 1] + "…"
    return [
        row.file,
        _WORDS.get(row.status, row.status),
        row.stage,
        str(len(row.kernels)),
        f"{row.seconds:.1f}",
        str(row.peak_rss_bytes >> 20),
        " ".join(reason.split()),
    ]
