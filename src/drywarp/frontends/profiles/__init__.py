"""Profiler exports: the measured metrics of each launch, read in every format, and written in our own."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ...errors import InputFileError, UsageError
from ...kernel.profile import TIME, MeasuredKernel
from ...support.folders import write_file
from ...support.text import some_text
from .ncu import number, parse_ncu, read_text

# rocprof's CSV: one row per dispatch, one column per counter, times in nanoseconds.
#
# Counters with an exact Nsight Compute equivalent get that name; the others keep their own.

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


FORMAT = 1


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """A profile as `drywarp import-ncu -o` writes it."""

    format: int
    kernels: list[MeasuredKernel]


@dataclass(frozen=True)
class Imported:
    """The launches in a profiler export, and the file they came from."""

    source: str
    kernels: tuple[MeasuredKernel, ...]

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object; `read_measured` reads it back."""
        return {"format": FORMAT, "kernels": [msgspec.to_builtins(kernel) for kernel in self.kernels]}


def read_measured(path: Path) -> Imported:
    """Read launches from a drywarp profile, an Nsight Compute CSV or a rocprof CSV; the content decides which.

    Raises InputFileError for anything else.
    """
    text = read_text(path)
    if text.lstrip().startswith("{"):
        return Imported(str(path), _ours(text, path))
    parse = parse_rocprof if looks_like_rocprof(text) else parse_ncu
    return Imported(str(path), parse(text, str(path)))


def _ours(text: str, path: Path) -> tuple[MeasuredKernel, ...]:
    try:
        found = msgspec.json.decode(text.encode(), type=_File)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputFileError(f"{path}: {error} (expected a profile that drywarp import-ncu wrote)") from None
    if found.format != FORMAT:
        raise InputFileError(f"{path}: format {found.format}, expected {FORMAT}")
    return tuple(found.kernels)


def write_measured(imported: Imported, path: Path) -> None:
    """Write a profile. Raises UsageError if the file cannot be written."""
    write_file(path, msgspec.json.format(msgspec.json.encode(imported.to_dict()), indent=2) + b"\n")


def matching(
    kernels: Sequence[MeasuredKernel], name: str, symbol: str, grid: tuple[int, ...], block: tuple[int, ...]
) -> MeasuredKernel:
    """All launches of this kernel with this grid and block, merged: the mean of each metric.

    If there is none, raises UsageError listing what the profile has.
    """
    plain = name.split("<")[0].split("::")[-1].strip()
    named = [k for k in kernels if k.name == symbol or plain == bare_name(k.name)]
    if not named:
        held = some_text(sorted({k.name for k in kernels}), 5) or "nothing"
        raise UsageError(f"the profile has no kernel {name!r}; it holds: {held}")
    fits = [k for k in named if k.grid in (None, tuple(grid)) and k.block in (None, tuple(block))]
    if not fits:
        launches = some_text(sorted({f"grid {k.grid} block {k.block}" for k in named}), 5)
        raise UsageError(f"the profile has no launch of {name} with grid {grid} and block {block}; it has: {launches}")
    metrics = {}
    for metric in dict.fromkeys(m for k in fits for m in k.metrics):
        values = [k.metrics[metric] for k in fits if metric in k.metrics]
        metrics[metric] = sum(values) / len(values)
    first = fits[0]
    return MeasuredKernel(first.name, first.grid, first.block, metrics, first.device, first.place)


def bare_name(name: str) -> str:
    """The bare name: `kernel` for `void ns::kernel<float, 4>(float*)`."""
    head = name.split("(anonymous namespace)::")[-1].split("(")[0]
    depth, kept = 0, ""
    for character in head:
        depth += {"<": 1, ">": -1}.get(character, 0)
        kept += character if depth == 0 and character != ">" else ""
    return (kept.split() or [""])[-1].split("::")[-1]
