"""Plain tables: a header, a row each configuration, one column a time. KTT's tables among them."""

from __future__ import annotations

import csv
import io
from collections import Counter

from ..errors import InputFileError
from .table import MeasuredRow, Table, parameters_of
from .time_column import choose, seconds

_LARGEST_CELL = 1 << 20
_GOOD = frozenset({"ok", "correct", "success", "passed", "valid", "1", "true"})
_STATUS = ("status", "Status", "invalidity")


def parse_csv(text: str, origin: str, time: str | None) -> Table:
    """The rows of a CSV table, separated by commas, semicolons or tabs.

    Rows that their column `status` calls failed, and rows without anything where the time should stand, are left
    out. Raises InputFileError naming file and line for a torn row or a time that is no positive number.
    """
    csv.field_size_limit(_LARGEST_CELL)
    if "\0" in text:
        raise InputFileError(f"{origin}: holds zero bytes (expected a CSV table)")
    first = text.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first.count))
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header, origin)
        column, unit = choose(header, time, origin)
        status = next((name for name in _STATUS if name in header), None)
        rows: list[MeasuredRow] = []
        left_out: Counter[str] = Counter()
        number = 0
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            number += 1
            place = f"{origin}: line {reader.line_num}"
            if len(cells) != len(header):
                raise InputFileError(f"{place}: {len(cells)} cells, expected {len(header)} as in the header")
            row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
            if status and row[status].lower() not in _GOOD:
                left_out[f"{status} {row[status] or 'empty'}"] += 1
            elif not row[column]:
                left_out[f"no {column}"] += 1
            else:
                rows.append(MeasuredRow(number, place, row, seconds(row[column], unit, place, column)))
    except csv.Error as error:
        raise InputFileError(f"{origin}: line {reader.line_num}: {error} (expected a row of a CSV table)") from None
    return Table(origin, tuple(header), tuple(rows), parameters_of(header), column, dict(left_out))


def _check_header(header: list[str], origin: str) -> None:
    if len(header) < 2:
        raise InputFileError(f"{origin}: line 1: expected the names of several columns, separated by commas")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise InputFileError(f"{origin}: line 1: column {twice[0]!r} stands there twice")
