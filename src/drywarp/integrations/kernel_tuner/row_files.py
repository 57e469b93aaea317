"""Files of predicted rows, of a sweep or of a validation, as predictions of a space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputFileError, UsageError
from ...rows.row_file import Form, read_file
from .predictions import Key, Predictions, key_text


def read_predictions(path: Path, model: str | None, gpu: str | None) -> Predictions:
    """The predictions of a file (`Predictions.read`)."""
    columns, rows = read_file(path, _AS_IT_STANDS)
    names, time = _layout(columns, model, str(path))
    gpus = sorted({str(row["gpu"]) for row in rows})
    if gpu is None and len(gpus) > 1:
        raise UsageError(f"{path}: holds predictions for {', '.join(gpus)} (expected gpu=, one of them)")
    if gpu is not None and gpu not in gpus:
        raise UsageError(f"{path}: holds no predictions for {gpu!r}; it holds: {', '.join(gpus)}")
    times: dict[Key, float] = {}
    failed: dict[Key, str] = {}
    for row in rows:
        if gpu not in (None, row["gpu"]):
            continue
        key = tuple(key_text("" if row[column] is None else row[column]) for column in names.values())
        # A configuration that was predicted again stands in a later row, which counts.
        times.pop(key, None)
        failed.pop(key, None)
        if row.get(time) not in (None, ""):
            times[key] = float(row[time])
        else:
            failed[key] = str(row["reason"] or "no prediction")
    return Predictions(tuple(names), times, failed)


def _layout(columns: Sequence[str], model: str | None, place: str) -> tuple[dict[str, str], str]:
    """The columns of the parameters by name, and that of the times. Parameters stand together in either file."""
    swept = "time_s" in columns and "measured_s" not in columns
    before, prefix = ("reason", "space.") if swept else ("wall_s", "table.")
    if not {"gpu", "reason", before} <= {*columns}:
        raise InputFileError(f"{place}: expected rows that drywarp sweep or drywarp validate wrote")
    if swept:
        held, own, ends = [], "time_s", columns.index("time_s")
    else:
        stems = [column.removesuffix("_limiter") for column in columns if column.endswith("_limiter")]
        held = [stem for stem in stems if stem + "_s" in columns]
        own, ends = (held[0] + "_s" if held else ""), columns.index("clock_mhz")
    if model is not None:
        own = model + "_s"
    if own not in columns:
        raise InputFileError(f"{place}: holds no predictions of {model or 'any model'}; it holds: {', '.join(held)}")
    own_columns = columns[columns.index(before) + 1 : ends]
    return {column.removeprefix(prefix): column for column in own_columns}, own


_AS_IT_STANDS: Form[Mapping[str, Any]] = Form(
    verb="sweep or validate",
    columns=(),
    cells=lambda row: row,
    read=lambda cells, columns, place: dict(cells),
    key=lambda row: tuple(row.values()),
)
