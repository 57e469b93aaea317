"""Two GPUs: how many times slower each configuration is on the second, predicted against measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..errors import InputFileError
from ..result import SCHEMA_VERSION
from . import statistics
from .row import RowResult
from .store import read_rows


@dataclass(frozen=True)
class RatioAccuracy:
    """One model's ratios of times, second GPU over first, against the measured ratios; errors are fractions."""

    model: str
    rows: int
    predicted_median: float
    measured_median: float
    median_error: float
    mape: float
    p90_error: float
    bias: float
    spearman: float | None

    def to_dict(self) -> dict[str, Any]:
        """The model's part of the documented JSON object."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class RatioReport:
    """Ratios of two outputs of `validate`; `matched` counts the configurations that both predicted."""

    first: str
    second: str
    gpus: tuple[str, str]
    matched: int
    models: tuple[RatioAccuracy, ...]

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md)."""
        return {
            "schema_version": SCHEMA_VERSION,
            "versions": {"drywarp": __version__},
            "first": {"rows": self.first, "gpu": self.gpus[0]},
            "second": {"rows": self.second, "gpu": self.gpus[1]},
            "matched": self.matched,
            "models": [model.to_dict() for model in self.models],
        }


def compare_rows(first: str | Path, second: str | Path) -> RatioReport:
    """Match the configurations of two outputs of `validate` by the parameters that both have, and compare ratios.

    Raises InputFileError where nothing matches, or where the parameters do not tell rows of one file apart.
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
