"""The papers' tables: MAPE and MAPE_shape of the performance over occupancy, kernel by kernel and model by model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from . import statistics
from .described import KERNEL_NAME, VARIANT
from .row import RowResult

FEWEST_FOR_SHAPE = 3
"""Occupancies that a curve has at least where its shape is spoken of: a line goes through two points."""


@dataclass(frozen=True)
class Figures:
    """One model on one kernel, as fractions; None where it says nothing, or no curve is long enough for a shape."""

    mape: float | None
    mape_shape: float | None


@dataclass(frozen=True)
class KernelAccuracy:
    """One kernel: its rows that were predicted, its curves (block sizes) over occupancy, and each model's figures."""

    kernel: str
    rows: int
    curves: int
    models: Mapping[str, Figures]

    def to_dict(self) -> dict[str, Any]:
        """The kernel's part of the documented JSON object."""
        figures = {name: {"mape": f.mape, "mape_shape": f.mape_shape} for name, f in self.models.items()}
        return {"kernel": self.kernel, "rows": self.rows, "curves": self.curves, "models": figures}


def kernels_of(rows: Sequence[RowResult], models: Sequence[str]) -> tuple[KernelAccuracy, ...]:
    """Each kernel of a table that names them, in its order; none where it does not.

    MAPE is that of the performance 1 / time as in the analysis paper's §6.3, Σ|m/p − 1| / n over a curve's
    occupancies; a kernel's figure is the mean over its curves, and so is MAPE_shape.
    """
    found: dict[str, dict[str, list[RowResult]]] = {}
    for row in rows:
        if row.ok and KERNEL_NAME in row.parameters:
            curve = row.parameters.get(VARIANT, "")
            found.setdefault(row.parameters[KERNEL_NAME], {}).setdefault(curve, []).append(row)
    return tuple(
        KernelAccuracy(
            kernel=name,
            rows=sum(map(len, curves.values())),
            curves=len(curves),
            models={model: _figures(list(curves.values()), model) for model in models},
        )
        for name, curves in found.items()
    )


def average(kernels: Sequence[KernelAccuracy], model: str) -> Figures:
    """The mean of a model's figures over the kernels that have them."""
    figures = [kernel.models[model] for kernel in kernels]
    mapes = [f.mape for f in figures if f.mape is not None]
    shapes = [f.mape_shape for f in figures if f.mape_shape is not None]
    return Figures(fmean(mapes) if mapes else None, fmean(shapes) if shapes else None)


def _figures(curves: Sequence[Sequence[RowResult]], model: str) -> Figures:
    mapes, shapes = [], []
    for curve in curves:
        said = [row for row in curve if 0 < row.times.get(model, 0.0) < float("inf")]
        if not said:
            continue
        predicted = np.array([row.times[model] for row in said])
        measured = np.array([row.measured_s for row in said])
        occupancy = np.array([float(row.facts.get("warps_per_sm", 0)) for row in said])
        mapes.append(statistics.mape(1 / predicted, 1 / measured))
        if len(set(occupancy.tolist())) >= FEWEST_FOR_SHAPE:
            shapes.append(statistics.mape_shape(predicted, measured, occupancy))
    return Figures(fmean(mapes) if mapes else None, fmean(shapes) if shapes else None)
