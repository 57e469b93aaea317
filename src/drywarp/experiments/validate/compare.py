"""Compares two GPUs: predicted and measured ratios of each configuration's time on the second over the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...analysis.result import headed
from ...errors import InputFileError
from ...support.text import json_of
from ..rows.recipe import Recipe, named_columns
from ..rows.row_file import Form, RowFile, read_file
from . import statistics
from .read_csv import Table
from .row import RowResult, columns_of, flat, from_flat, layout

# The columns of a table that become macros, and a check that the table has the columns a recipe names.


def check(recipe: Recipe, table: Table) -> tuple[str, ...]:
    """The columns that become macros. Raises if the recipe names a column that the table lacks."""
    for name in (*(recipe.macros or ()), *sorted(named_columns(recipe.entry) - set(recipe.defines))):
        table.column(name)
    return tuple(table.parameters if recipe.macros is None else recipe.macros)


# Files of a validation's rows.


class RowStore(RowFile[RowResult]):
    """The rows of one output, with these parameters of the table and these models; see `RowFile`."""

    def __init__(self, path: Path, parameters: Sequence[str], models: Sequence[str]) -> None:
        super().__init__(path, _form(parameters, models))


def read_rows(path: Path) -> tuple[tuple[str, ...], tuple[str, ...], list[RowResult]]:
    """Parameters, models and rows of a file that a run wrote or is writing."""
    columns, rows = read_file(path, _form((), ()))
    return (*layout(columns, str(path)), rows)


def _form(parameters: Sequence[str], models: Sequence[str]) -> Form[RowResult]:
    return Form(
        verb="validate",
        columns=columns_of(parameters, models),
        cells=lambda row: flat(row, parameters, models),
        read=from_flat,
        key=lambda row: row.row,
    )


@dataclass(frozen=True)
class RatioAccuracy:
    """One model's time ratios, second GPU over first, compared with the measured ratios; errors are fractions."""

    model: str
    rows: int
    predicted_median: float
    measured_median: float
    median_error: float
    mape: float
    p90_error: float
    bias: float
    spearman: float | None


@dataclass(frozen=True)
class RatioReport:
    """Ratios between two outputs of `validate`; `matched` counts the configurations predicted in both."""

    first: str
    second: str
    gpus: tuple[str, str]
    matched: int
    models: tuple[RatioAccuracy, ...]

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md)."""
        return {
            **headed(),
            "first": {"rows": self.first, "gpu": self.gpus[0]},
            "second": {"rows": self.second, "gpu": self.gpus[1]},
            "matched": self.matched,
            "models": json_of(self.models),
        }


def compare_rows(first: str | Path, second: str | Path) -> RatioReport:
    """Match the configurations of two outputs of `validate` by their common parameters, and compare ratios.

    Raises InputFileError if nothing matches, or if the parameters do not identify the rows of a file uniquely.
    """
    one, other = Path(first), Path(second)
    names, models, rows = read_rows(one)
    other_names, other_models, other_rows = read_rows(other)
    common = [name for name in names if name in other_names]
    if not common:
        raise InputFileError(f"{one} and {other}: no parameter in common")
    left, right = _by_parameters(rows, common, one), _by_parameters(other_rows, common, other)
    keys = [key for key in left if key in right]
    if not keys:
        raise InputFileError(f"{one} and {other}: no configuration is predicted in both")
    found = []
    for model in models:
        both = [key for key in keys if model in left[key].times and model in right[key].times]
        if model in other_models and both:
            found.append(_ratios(model, [left[key] for key in both], [right[key] for key in both]))
    return RatioReport(str(one), str(other), (_gpu(rows), _gpu(other_rows)), len(keys), tuple(found))


def _by_parameters(rows: Sequence[RowResult], names: Sequence[str], path: Path) -> dict[tuple[str, ...], RowResult]:
    found: dict[tuple[str, ...], RowResult] = {}
    for row in rows:
        if not row.ok:
            continue
        key = tuple(row.parameters[name] for name in names)
        if key in found:
            raise InputFileError(
                f"{path}: rows {found[key].row} and {row.row} have the same {', '.join(names)}: "
                "they cannot be matched with another file's"
            )
        found[key] = row
    return found


def _gpu(rows: Sequence[RowResult]) -> str:
    return ", ".join(sorted({row.gpu for row in rows}))


def _ratios(model: str, left: Sequence[RowResult], right: Sequence[RowResult]) -> RatioAccuracy:
    predicted = np.array([b.times[model] / a.times[model] for a, b in zip(left, right, strict=True)])
    measured = np.array([b.measured_s / a.measured_s for a, b in zip(left, right, strict=True)])
    usable = np.isfinite(predicted) & (predicted > 0)
    predicted, measured = predicted[usable], measured[usable]
    return RatioAccuracy(
        model=model,
        rows=len(predicted),
        predicted_median=float(np.median(predicted)),
        measured_median=float(np.median(measured)),
        median_error=statistics.quantile_error(predicted, measured, 0.5),
        mape=statistics.mape(predicted, measured),
        p90_error=statistics.quantile_error(predicted, measured, 0.9),
        bias=statistics.bias(predicted, measured),
        spearman=statistics.spearman(predicted, measured),
    )
