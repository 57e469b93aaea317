"""How far predictions are from measurements: the complete report, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from ...analysis.result import headed
from ...frontends.cache import tool_versions
from ...models.pipeline import Pipeline
from ...support.by_name import figures
from ...support.text import json_of
from ..rows import NOT_APPLICABLE
from . import statistics
from .groups import Coverage, Group, KernelAccuracy, average, coverage_of, groups_of, kernels_of, labels_of
from .row import RowResult

TOP_K = (1, 5, 10, 20)
DIMENSIONS = ("warps_per_sm", "occupancy_limited_by", "registers", "local_bytes", "waves", "l1_hit_rate", "l2_hit_rate")
"""Facts by which errors are grouped, besides the limiter and every parameter."""
FEWEST_FOR_GROUPS = 2


@dataclass(frozen=True)
class ModelAccuracy:
    """One model's accuracy; the figures are those of `statistics.py`, as fractions.

    `regret` maps k to the top-k regret. `by` maps ``limiter``, a fact or a parameter to the errors of its groups, and
    `explained` to the share of the variance of log(predicted / measured) between the groups. `limiters` counts rows.
    `not_applicable` maps reasons to the number of rows that the model cannot predict. `band` is how often the measured
    time lies within the model's confidence band, if it has one. Without any row all figures are None. `mape_shape` is
    over all rows if they are of one kernel; if they name their kernels, it is the mean over kernels, None without a
    curve.
    """

    model: str
    rows: int
    mape: float | None = None
    median_error: float | None = None
    p90_error: float | None = None
    bias: float | None = None
    median_ratio: float | None = None
    spread_error: float | None = None
    mape_shape: float | None = None
    spearman: float | None = None
    kendall: float | None = None
    regret: Mapping[int, float] = field(default_factory=dict)
    limiters: Mapping[str, int] = field(default_factory=dict)
    by: Mapping[str, tuple[Group, ...]] = field(default_factory=dict)
    explained: Mapping[str, float] = field(default_factory=dict)
    not_applicable: Mapping[str, int] = field(default_factory=dict)
    band: Coverage | None = None

    def to_dict(self) -> dict[str, Any]:
        """The model's part of the documented JSON object."""
        return {**json_of(self), "regret": {str(k): value for k, value in self.regret.items()}}


@dataclass(frozen=True, slots=True)
class WorstRow:
    """A row with its predicted time over the measured one; `command` analyses it alone (empty: unknown)."""

    row: int
    predicted_s: float
    measured_s: float
    ratio: float
    limiter: str
    parameters: Mapping[str, str]
    command: str


WORST = 5
"""Rows that a report names by default."""


@dataclass(frozen=True)
class ValidationReport:
    """All rows, and each model's accuracy over the predicted ones.

    `left_out` counts rows of the table without a usable time, `failed` rows that could not be predicted, both by
    reason. `aside` is the half of the table that was set aside (None: none). `seconds` is the run's wall time.
    `kernels` are the figures of each kernel over occupancy, if the table's rows name their kernels. `commands` maps
    rows to the command line that analyses them alone.
    """

    table: str
    kernel: str
    gpu: str
    timed_by: str
    rows: tuple[RowResult, ...]
    models: tuple[ModelAccuracy, ...]
    failed: Mapping[str, int]
    left_out: Mapping[str, int]
    aside: str | None
    seconds: float
    kernels: tuple[KernelAccuracy, ...] = ()
    commands: Mapping[int, str] = field(default_factory=dict)

    @property
    def best(self) -> ModelAccuracy:
        """The primary model's accuracy: the first."""
        return self.models[0]

    def worst(self, most: int = WORST) -> list[WorstRow]:
        """The rows whose time the primary model misses by the largest factor, either way; ties by row number."""
        model = self.best.model
        said = [row for row in self.rows if row.ok and 0 < row.times.get(model, 0.0) < float("inf")]
        said.sort(key=lambda row: (-abs(log(row.times[model] / row.measured_s)), row.row))
        return [
            WorstRow(
                row.row,
                row.times[model],
                row.measured_s,
                row.times[model] / row.measured_s,
                row.limiters.get(model, ""),
                row.parameters,
                self.commands.get(row.row, ""),
            )
            for row in said[:most]
        ]

    def figure(self, **settings: Any) -> Any:
        """Predicted over measured times as a Matplotlib figure (docs/figures.md): `theme`, and `width` in inches."""
        model = self.best.model
        points = [
            (row.measured_s, row.times[model], row.limiters.get(model, ""))
            for row in self.rows
            if row.ok and row.times.get(model)
        ]
        return figures().predicted_over_measured(points, f"{model}, {self.gpu}: {Path(self.table).name}", **settings)

    def of(self, model: str) -> ModelAccuracy:
        """One model's accuracy. Raises KeyError for a model that was not run."""
        for accuracy in self.models:
            if accuracy.model == model:
                return accuracy
        raise KeyError(model)

    def to_dict(self, worst: int = WORST) -> dict[str, Any]:
        """The documented JSON object (docs/json.md), with so many of the worst rows."""
        return {
            **headed(**tool_versions()),
            "table": self.table,
            "kernel": self.kernel or None,
            "gpu": self.gpu,
            "timed_by": self.timed_by or None,
            "split_aside": self.aside,
            "rows": {"total": len(self.rows), "predicted": sum(row.ok for row in self.rows)},
            "failed": dict(self.failed),
            "left_out": dict(self.left_out),
            "models": [model.to_dict() for model in self.models],
            "kernels": json_of(self.kernels),
            "worst": json_of(self.worst(worst)),
            "wall_s": self.seconds,
        }


def report_of(
    rows: Sequence[RowResult],
    models: Sequence[str],
    *,
    table: str,
    kernel: str = "",
    timed_by: str = "",
    left_out: Mapping[str, int] | None = None,
    aside: str | None = None,
    seconds: float = 0.0,
    commands: Mapping[int, str] | None = None,
) -> ValidationReport:
    """The report of these rows."""
    return ValidationReport(
        table=table,
        kernel=kernel,
        gpu=", ".join(sorted({row.gpu for row in rows})),
        timed_by=timed_by,
        rows=tuple(rows),
        models=tuple(accuracy_of(rows, model) for model in models),
        failed=dict(Counter(row.reason for row in rows if not row.ok).most_common()),
        left_out=dict(left_out or {}),
        aside=aside,
        seconds=seconds,
        kernels=kernels_of(rows, models),
        commands=commands or {},
    )


def accuracy_of(rows: Sequence[RowResult], model: str) -> ModelAccuracy:
    """One model's figures over its predicted rows."""
    said = [row for row in rows if row.ok and model in row.times]
    silent = Counter(
        limiter.removeprefix(NOT_APPLICABLE)
        for row in rows
        if (limiter := row.limiters.get(model, "")).startswith(NOT_APPLICABLE)
    )
    # A model may predict infinity or nothing at all where its equations break down.
    usable = [row for row in said if 0 < row.times[model] < float("inf")]
    if broken := len(said) - len(usable):
        silent["predicted time is not a positive number"] += broken
    if not usable:
        return ModelAccuracy(model, 0, not_applicable=dict(silent))
    predicted = np.array([row.times[model] for row in usable])
    measured = np.array([row.measured_s for row in usable])
    by, explained = _dimensions(usable, model, predicted, measured)
    return ModelAccuracy(
        model=model,
        rows=len(usable),
        mape=statistics.mape(predicted, measured),
        median_error=statistics.quantile_error(predicted, measured, 0.5),
        p90_error=statistics.quantile_error(predicted, measured, 0.9),
        bias=statistics.bias(predicted, measured),
        median_ratio=statistics.median_ratio(predicted, measured),
        spread_error=statistics.spread_error(predicted, measured),
        mape_shape=_shape(usable, model, predicted, measured),
        spearman=statistics.spearman(predicted, measured),
        kendall=statistics.kendall(predicted, measured),
        regret={k: statistics.top_k_regret(predicted, measured, k) for k in TOP_K},
        limiters=dict(Counter(row.limiters.get(model, "") for row in usable).most_common()),
        by=by,
        explained=explained,
        not_applicable=dict(silent),
        band=coverage_of(usable) if model == Pipeline.name else None,
    )


def _shape(
    rows: Sequence[RowResult], model: str, predicted: statistics.Array, measured: statistics.Array
) -> float | None:
    """MAPE_shape of one kernel; of several the mean, as one line through the times of all says nothing about any."""
    if kernels := kernels_of(rows, (model,)):
        return average(kernels, model).mape_shape
    occupancy = np.array([float(row.facts.get("warps_per_sm", 0)) for row in rows])
    return statistics.mape_shape(predicted, measured, occupancy)


def _dimensions(
    rows: Sequence[RowResult], model: str, predicted: statistics.Array, measured: statistics.Array
) -> tuple[dict[str, tuple[Group, ...]], dict[str, float]]:
    values: dict[str, list[str]] = {"limiter": [row.limiters.get(model, "") for row in rows]}
    for name in DIMENSIONS:
        values[name] = [str(row.facts.get(name, "")) for row in rows]
    for name in dict.fromkeys(name for row in rows for name in row.parameters):
        # For a parameter with the same name as a fact, the table's value is used.
        values[name] = [row.parameters.get(name, "") for row in rows]
    by: dict[str, tuple[Group, ...]] = {}
    explained: dict[str, float] = {}
    for name, column in values.items():
        labels, order = labels_of(column)
        if len(order) < FEWEST_FOR_GROUPS:
            continue
        by[name] = groups_of(labels, order, predicted, measured)
        explained[name] = statistics.explained_share(np.log(predicted / measured), labels)
    return by, dict(sorted(explained.items(), key=lambda item: -item[1]))
