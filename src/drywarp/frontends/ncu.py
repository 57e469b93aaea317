"""Nsight Compute's CSV exports, wide (`--page raw`) and long (`--page details`), from 2019 to today.

A wide table has a column per metric and a row of units under its header; a long one a row per metric. Before the
header may stand whatever the program printed, and `==PROF==` lines; the names of columns changed over the years, their
meaning did not.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import InputFileError
from ..kernel.launch import Dim3
from ..kernel.measured import MeasuredKernel
from .profiler_names import metric_name
from .profiler_units import number, scale

LARGEST = 256 << 20
"""Bytes of a report that are read at most."""
_LARGEST_CELL = 1 << 20
_IDENTITY = frozenset(
    "ID,Process ID,Process Name,Host Name,Kernel Name,Kernel Time,Context,Stream,Block Size,Grid Size,Device,CC,"
    "Section Name,Rule Name,Rule Type,Rule Description,Estimated Speedup Type,Estimated Speedup,thread Domain:Push/Pop_"
    "Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg,Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:"
    "Msg_Type:Msg".split(",")
)
_EXTENTS = re.compile(r"\(?\s*(\d+)\s*[,x ]\s*(\d+)\s*[,x ]\s*(\d+)\s*\)?")
Row = tuple[int, list[str]]


def read_ncu(path: Path) -> tuple[MeasuredKernel, ...]:
    """All launches of a report, in its order.

    Raises InputFileError naming file and line for what is no such report, or a torn one.
    """
    return parse_ncu(read_text(path), str(path))


def parse_ncu(text: str, origin: str) -> tuple[MeasuredKernel, ...]:
    """The launches of a report's text."""
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
    """Rows with the number of their first line; those of the text before the table may be anything."""
    if "\0" in text:
        raise InputFileError(f"{origin}: holds zero bytes (expected a CSV report)")
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
