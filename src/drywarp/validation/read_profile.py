"""A profiler's export as a table of measurements: a row for each grid and block of one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from ..errors import InputFileError, UsageError
from ..frontends.measured_file import read_measured
from ..kernel.measured import MeasuredKernel
from .table import MeasuredRow, Table

TIMED_BY = "gpu__time_duration.sum"


def read_profile(path: Path, entry: str | None) -> Table:
    """The launches of Nsight Compute's or rocprof's CSV, or of what `drywarp import-ncu` wrote.

    Launches of the same grid and block are one row with their median time and metrics. `entry` chooses the kernel
    where the file holds several. Raises UsageError naming them.
    """
    origin = str(path)
    launches = [k for k in read_measured(path).kernels if k.time_s]
    if not launches:
        raise InputFileError(f"{origin}: no launch has a time (expected the metric {TIMED_BY})")
    names = sorted({plain_name(k.name) for k in launches})
    if entry is not None:
        chosen = [k for k in launches if plain_name(k.name) == plain_name(entry)]
        if not chosen:
            raise UsageError(f"{origin}: no launch of {entry}; it holds: {', '.join(names)}")
    elif len(names) > 1:
        raise UsageError(f"{origin}: launches of several kernels, name one with --entry: {', '.join(names)}")
    else:
        chosen = launches
    alike: dict[tuple[object, object], list[MeasuredKernel]] = {}
    for kernel in chosen:
        alike.setdefault((kernel.grid, kernel.block), []).append(kernel)
    rows = [_row(number, same) for number, same in enumerate(alike.values(), 1)]
    columns = tuple(dict.fromkeys(name for row in rows for name in row.cells))
    return Table(origin, columns, tuple(rows), (), TIMED_BY)


def _row(number: int, launches: Sequence[MeasuredKernel]) -> MeasuredRow:
    first = launches[0]
    cells = {"kernel": plain_name(first.name), "launches": str(len(launches))}
    for what, extents in (("grid", first.grid), ("block", first.block)):
        if extents is not None:
            cells[what] = ",".join(map(str, extents))
    for metric in dict.fromkeys(name for k in launches for name in k.metrics):
        cells[metric] = repr(median(k.metrics[metric] for k in launches if metric in k.metrics))
    return MeasuredRow(number, first.place, cells, median(k.time_s or 0.0 for k in launches))


def plain_name(name: str) -> str:
    """`void ns::kernel<float, 4>(float*)` as `kernel`."""
    head = name.split("(anonymous namespace)::")[-1].split("(")[0].split("<")[0]
    return (head.split() or [""])[-1].split("::")[-1]
