"""Nsight Compute's CSV exports, wide (`--page raw`) and long (`--page details`), from 2019 to today.

A wide table has one column per metric and a row of units below the header; a long table has one row per metric.
Program output and `==PROF==` lines may precede the header. Column names have changed over the years; their meaning
has not.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...errors import InputFileError
from ...kernel.launch.launch import Dim3
from ...kernel.profile import MeasuredKernel

# Nsight Compute's metric names for the labels of its details page, and for names that have changed.

_LABELS = {
    "Duration": "gpu__time_duration.sum",
    "Elapsed Cycles": "sm__cycles_elapsed.max",
    "SM Active Cycles": "sm__cycles_active.avg",
    "SM Frequency": "smsp__cycles_elapsed.avg.per_second",
    "DRAM Frequency": "dram__cycles_elapsed.avg.per_second",
    "Registers Per Thread": "launch__registers_per_thread",
    "Block Size": "launch__block_size",
    "Grid Size": "launch__grid_size",
    "Threads": "launch__thread_count",
    "Waves Per SM": "launch__waves_per_multiprocessor",
    "Static Shared Memory Per Block": "launch__shared_mem_per_block_static",
    "Dynamic Shared Memory Per Block": "launch__shared_mem_per_block_dynamic",
    "Achieved Occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "Theoretical Occupancy": "sm__maximum_warps_per_active_cycle_pct",
    "Executed Instructions": "smsp__inst_executed.sum",
    "Issued Instructions": "smsp__inst_issued.sum",
    "Avg. Executed Instructions Per Scheduler": "smsp__inst_executed.avg",
    "Executed Ipc Active": "sm__inst_executed.avg.per_cycle_active",
    "Executed Ipc Elapsed": "sm__inst_executed.avg.per_cycle_elapsed",
    "L1/TEX Hit Rate": "l1tex__t_sector_hit_rate.pct",
    "L2 Hit Rate": "lts__t_sector_hit_rate.pct",
    "Memory Throughput": "dram__bytes.sum.per_second",
    "Avg. Active Threads Per Warp": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "Avg. Not Predicated Off Threads Per Warp": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
}
"""Label of the details page to metric."""

_FORMER = {
    "gpc__cycles_elapsed.avg.per_second": "smsp__cycles_elapsed.avg.per_second",
    "sm__cycles_elapsed.avg.per_second": "smsp__cycles_elapsed.avg.per_second",
    "gpu__time_duration.avg": "gpu__time_duration.sum",
    "gpu__time_duration_measured_wallclock": "gpu__time_duration.sum",
    "gpu__time_duration": "gpu__time_duration.sum",
    "sm__inst_executed.sum": "smsp__inst_executed.sum",
    "smsp__thread_inst_executed_per_inst_executed": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "l1tex__t_sector_hit_rate": "l1tex__t_sector_hit_rate.pct",
    "lts__t_sector_hit_rate": "lts__t_sector_hit_rate.pct",
}
"""Alternative names of a metric to the name that drywarp uses."""


def metric_name(printed: str, unit: str) -> str:
    """The metric for a printed name or label; an unknown name is returned unchanged."""
    # The same label is also used for a percentage of the peak.
    if printed == "Memory Throughput" and "/" not in unit:
        return "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
    known = _LABELS.get(printed, printed)
    return _FORMER.get(known, known)


LARGEST = 256 << 20
"""Size limit of a report in bytes."""
_LARGEST_CELL = 1 << 20
_IDENTITY = frozenset(
    "ID,Process ID,Process Name,Host Name,Kernel Name,Kernel Time,Context,Stream,Block Size,Grid Size,Device,CC,"
    "Section Name,Rule Name,Rule Type,Rule Description,Estimated Speedup Type,Estimated Speedup,thread Domain:Push/Pop_"
    "Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg,Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:"
    "Msg_Type:Msg".split(",")
)
_EXTENTS = re.compile(r"\(?\s*(\d+)\s*[,x ]\s*(\d+)\s*[,x ]\s*(\d+)\s*\)?")
Row = tuple[int, list[str]]


def parse_ncu(text: str, origin: str) -> tuple[MeasuredKernel, ...]:
    """The launches in a report's text."""
    rows = _rows(text, origin)
    header_line, header = next(((n, row) for n, row in rows if _is_header(row)), (0, []))
    if not header:
        raise InputFileError(
            f'{origin}: no table found (expected Nsight Compute\'s CSV: a row with "ID" and "Kernel Name")'
        )
    columns = {name.strip(): at for at, name in reversed(list(enumerate(header)))}
    if "Metric Name" in columns:
        found = _long(rows, columns, origin)
    else:
        found = _wide(rows, header, columns, origin, header_line)
    if not found:
        raise InputFileError(f"{origin}: line {header_line}: the table has no rows (expected one for each launch)")
    return found


def read_text(path: Path) -> str:
    """The text of a report, whatever byte-order mark it carries. Raises InputFileError."""
    try:
        if path.stat().st_size > LARGEST:
            raise InputFileError(f"{path}: larger than {LARGEST >> 20} MiB (expected a CSV report)")
        data = path.read_bytes()
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                raise InputFileError(f"{path}: broken UTF-16 text (expected a CSV report)") from None
    return data.decode("utf-8-sig", "replace")


def _rows(text: str, origin: str) -> Iterator[Row]:
    """Rows of the table, each with the number of its first line; text before the table is skipped."""
    if "\0" in text:
        raise InputFileError(f"{origin}: contains NUL bytes (expected a CSV report)")
    lines = text.splitlines(keepends=True)
    start = next((at for at, line in enumerate(lines) if _is_header(_cells(line))), None)
    if start is None:
        return
    csv.field_size_limit(_LARGEST_CELL)
    reader = csv.reader(io.StringIO("".join(lines[start:])), delimiter=_delimiter(lines[start]))
    line = start + 1
    try:
        for row in reader:
            yield line, row
            line = start + 1 + reader.line_num
    except csv.Error as error:
        raise InputFileError(f"{origin}: line {line}: {error} (expected a row of a CSV table)") from None


def _delimiter(header: str) -> str:
    return ";" if header.count(";") > header.count(",") else ","


def _cells(line: str) -> list[str]:
    if "Kernel Name" not in line:
        return []
    try:
        return next(csv.reader([line.lstrip("\ufeff")], delimiter=_delimiter(line)), [])
    except csv.Error:
        return []


def _is_header(row: Sequence[str]) -> bool:
    names = {cell.strip() for cell in row}
    return {"ID", "Kernel Name"} <= names


def _is_launch(row: Sequence[str], columns: Mapping[str, int]) -> bool:
    """Whether a row belongs to the table: program output and `==PROF==` lines may follow it too."""
    at = columns["ID"]
    return len(row) > at and row[at].strip().isdigit()


def _wide(
    rows: Iterator[Row], header: Sequence[str], columns: Mapping[str, int], origin: str, header_line: int
) -> tuple[MeasuredKernel, ...]:
    units = [""] * len(header)
    found: list[MeasuredKernel] = []
    for line, row in rows:
        if not _is_launch(row, columns):
            if not found and len(row) == len(header):
                units = row
            elif len(row) > 1 and len(row) != len(header) and not row[0].startswith("=="):
                raise _torn(origin, line, len(row), len(header), header_line)
            continue
        if len(row) != len(header):
            raise _torn(origin, line, len(row), len(header), header_line)
        metrics: dict[str, float] = {}
        for name, unit, cell in zip(header, units, row, strict=True):
            if name.strip() not in _IDENTITY:
                _put(metrics, name.strip(), unit, cell)
        found.append(_kernel(row, columns, metrics, f"{origin}: line {line}"))
    return tuple(found)


def _torn(origin: str, line: int, cells: int, expected: int, header_line: int) -> InputFileError:
    return InputFileError(
        f"{origin}: line {line}: {cells} cells, expected {expected} as in the header on line {header_line}"
    )


def _long(rows: Iterator[Row], columns: Mapping[str, int], origin: str) -> tuple[MeasuredKernel, ...]:
    name_at, value_at = columns["Metric Name"], columns.get("Metric Value", -1)
    unit_at = columns.get("Metric Unit", -1)
    if value_at < 0:
        raise InputFileError(f'{origin}: the table has no column "Metric Value"')
    launches: dict[tuple[str, ...], tuple[list[str], dict[str, float], str]] = {}
    keys = [columns[name] for name in ("ID", "Process ID", "Host Name") if name in columns]
    for line, row in rows:
        if not _is_launch(row, columns):
            continue
        # Rows of rules have more or fewer cells, and no metric.
        if len(row) <= name_at or not row[name_at].strip():
            continue
        if len(row) <= max(value_at, unit_at):
            raise InputFileError(
                f"{origin}: line {line}: {len(row)} cells, "
                f"expected a value of {row[name_at].strip()!r} in cell {value_at + 1}"
            )
        key = tuple(row[at] for at in keys)
        _, metrics, _ = launches.setdefault(key, (row, {}, f"{origin}: line {line}"))
        _put(metrics, row[name_at].strip(), row[unit_at] if unit_at >= 0 else "", row[value_at])
    return tuple(_kernel(row, columns, metrics, place) for row, metrics, place in launches.values())


def _put(metrics: dict[str, float], printed: str, unit: str, cell: str) -> None:
    value = number(cell)
    if value is not None:
        metrics.setdefault(metric_name(printed, unit), value * scale(unit))


def _kernel(row: Sequence[str], columns: Mapping[str, int], metrics: Mapping[str, float], place: str) -> MeasuredKernel:
    def cell(name: str) -> str:
        at = columns.get(name)
        return row[at].strip() if at is not None and at < len(row) else ""

    return MeasuredKernel(
        name=cell("Kernel Name"),
        grid=_extents(cell("Grid Size"), metrics, "launch__grid_dim"),
        block=_extents(cell("Block Size"), metrics, "launch__block_dim"),
        metrics=metrics,
        device=cell("Device"),
        place=place,
    )


def _extents(text: str, metrics: Mapping[str, float], family: str) -> Dim3 | None:
    match = _EXTENTS.fullmatch(text)
    if match:
        x, y, z = (int(part) for part in match.groups())
        return (x, y, z)
    parts = [metrics.get(f"{family}_{axis}") for axis in "xyz"]
    if any(part is None for part in parts):
        return None
    x, y, z = (int(part or 0) for part in parts)
    return (x, y, z)


# Convert values as profilers print them (thousands separators, prefixes, units) to base units.

_PREFIX = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_STEMS = {
    "second": ("second", "sec", "s"),
    "byte": ("byte", "bytes", "B"),
    "hz": ("hz", "Hz"),
    "cycle": ("cycle", "cycles"),
    "inst": ("inst",),
}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?\d{1,3}([,'\u00a0\u202f ]\d{3})+(\.\d+)?")
_GROUPED_COMMA = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?|[+-]?\d+,\d+")


def number(text: str) -> float | None:
    """Parse a printed number; None for anything else (`n/a`, names, switches).

    A metric with instances prints its total first, then the instances in brackets.
    """
    text = text.split("(")[0].split(";")[0].strip()
    if _GROUPED.fullmatch(text):
        text = re.sub(r"[,'\u00a0\u202f ]", "", text)
    elif _GROUPED_COMMA.fullmatch(text) and not _NUMBER.fullmatch(text):
        text = text.replace(".", "").replace(",", ".")
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def scale(unit: str) -> float:
    """The factor from a printed unit to its base unit; 1 for units without a prefix.

    `usecond` gives 1e-6, `Gbyte/second` 1e9, `cycle/nsecond` 1e9, `Ghz` 1e9.
    """
    above, _, below = unit.strip().partition("/")
    return _factor(above) / (_factor(below) if below else 1.0)


def _factor(unit: str) -> float:
    for stems in _STEMS.values():
        for stem in stems:
            if unit.endswith(stem) and unit[: -len(stem)] in _PREFIX:
                return _PREFIX[unit[: -len(stem)]]
    return 1.0
