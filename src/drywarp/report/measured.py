"""Measured launches, and a measured time beside a predicted one."""

from __future__ import annotations

from typing import Any

from .. import __version__
from ..frontends.measured_file import Imported
from ..result import SCHEMA_VERSION, MeasuredComparison
from .gpus import aligned
from .units import time_text


def imported_dict(imported: Imported) -> dict[str, Any]:
    """The documented JSON object of `drywarp import-ncu --json`."""
    head = {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__}, "source": imported.source}
    return {**head, **imported.to_dict()}


def render_imported(imported: Imported) -> str:
    """A line for each launch: name, extents, time, number of metrics."""
    rows = [["kernel", "grid", "block", "time", "metrics"]]
    for kernel in imported.kernels:
        extents = ["–" if e is None else "×".join(map(str, e)) for e in (kernel.grid, kernel.block)]
        time = "–" if kernel.time_s is None else time_text(kernel.time_s)
        rows.append([kernel.name, *extents, time, str(len(kernel.metrics))])
    return "\n".join([f"{imported.source}: {len(imported.kernels)} launches", *aligned(rows)])


def render_comparison_with(found: MeasuredComparison) -> str:
    """Predicted against measured, and the terms that lead from one to the other."""
    head = (
        f"Measured {time_text(found.time_s)}, predicted {time_text(found.predicted_s)}: "
        f"{found.ratio:.2f} of the measured time ({found.place})"
    )
    rows = [[f"  {term.name}", f"× {term.factor:.3f}", term.reason] for term in found.terms]
    return "\n".join([head, *aligned(rows)])
