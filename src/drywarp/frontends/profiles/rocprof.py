"""rocprof's CSV: one row per dispatch, one column per counter, times in nanoseconds.

Counters with an exact Nsight Compute equivalent get that name; the others keep their own.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ...errors import InputFileError
from ...kernel.profile import TIME, MeasuredKernel
from .ncu import number, read_text

_NAMES = {
    "SQ_INSTS": "smsp__inst_executed.sum",
    "L2CacheHit": "lts__t_sector_hit_rate.pct",
    "OccupancyPercent": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
_TEXTS = frozenset({"Index", "KernelName", "gpu-id", "queue-id", "queue-index", "pid", "tid", "sig", "obj"})


def looks_like_rocprof(text: str) -> bool:
    """Whether the first row is rocprof's header."""
    first = text.lstrip("\ufeff").partition("\n")[0]
    return "KernelName" in first and ("DurationNs" in first or "gpu-id" in first)


def read_rocprof(path: Path) -> tuple[MeasuredKernel, ...]:
    """All dispatches in a results file. Raises InputFileError naming file and line."""
    return parse_rocprof(read_text(path), str(path))


def parse_rocprof(text: str, origin: str) -> tuple[MeasuredKernel, ...]:
    """The dispatches in the text of a results file."""
    reader = csv.reader(io.StringIO(text))
    found = []
    try:
        header = [cell.strip().strip('"') for cell in next(reader, [])]
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise InputFileError(
                    f"{origin}: line {reader.line_num}: {len(row)} cells, expected {len(header)} as in the header"
                )
            found.append(_dispatch(dict(zip(header, row, strict=True)), f"{origin}: line {reader.line_num}"))
    except csv.Error as error:
        raise InputFileError(f"{origin}: line {reader.line_num}: {error} (expected a row of a CSV table)") from None
    if not found:
        raise InputFileError(f"{origin}: the table has no rows (expected one for each dispatch)")
    return tuple(found)


def _dispatch(cells: dict[str, str], place: str) -> MeasuredKernel:
    values = {name: number(text) for name, text in cells.items() if name not in _TEXTS}
    metrics = {_NAMES.get(name, name): value for name, value in values.items() if value is not None}
    begin, end = metrics.pop("BeginNs", None), metrics.pop("EndNs", None)
    duration = metrics.pop("DurationNs", None)
    if duration is None and begin is not None and end is not None:
        duration = end - begin
    if duration is not None:
        metrics[TIME] = duration * 1e-9
    work_items, group = metrics.get("grd"), metrics.get("wgr")
    return MeasuredKernel(
        name=cells.get("KernelName", "").removesuffix(".kd"),
        grid=(int(work_items // group), 1, 1) if work_items and group else None,
        block=(int(group), 1, 1) if work_items and group else None,
        metrics=metrics,
        place=place,
    )
