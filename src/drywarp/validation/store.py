"""Files of predicted rows that grow row by row: CSV, JSON lines, and Parquet through JSON lines.

A row is appended in one write as soon as it is done, so that a run that is killed loses only rows that were not done; a
torn last line is cut off when the file is opened again. One process at a time may write.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from ..errors import InputFileError, UsageError
from .parquet import check_parquet, parquet_rows, write_parquet
from .row import RowResult, columns_of, flat, from_flat, layout

SUFFIXES = (".csv", ".jsonl", ".parquet")


class RowStore:
    """The rows of one file; a context that locks it and, for Parquet, writes it at the end.

    Raises UsageError for another suffix, a file that another process writes, or one that cannot be written, and
    InputFileError for one that holds something else.
    """

    def __init__(self, path: Path, parameters: Sequence[str], models: Sequence[str]) -> None:
        check_suffix(path)
        self.path, self.parameters, self.models = path, tuple(parameters), tuple(models)
        self.columns = columns_of(parameters, models)
        self.journal = journal_of(path)
        self._file: BinaryIO | None = None

    def __enter__(self) -> RowStore:
        try:
            self._file = self.journal.open("a+b")
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be written ({error.strerror})") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UsageError(f"{self.path}: another process is writing to it") from None
        self._file.seek(0)
        data = self._file.read()
        if data and not data.endswith(b"\n"):
            self._file.truncate(data.rfind(b"\n") + 1)
            data = data[: data.rfind(b"\n") + 1]
        if not data:
            self._begin()
        return self

    def _begin(self) -> None:
        if self.journal.suffix == ".csv":
            self._write(_csv_line(self.columns))
        elif self.journal != self.path and self.path.exists():
            for cells in parquet_rows(self.path):
                self._write(_json_line(cells))

    def rows(self) -> list[RowResult]:
        """What the file holds already. Raises InputFileError where it is not of this table and these models."""
        columns, found = _journal_rows(self.journal)
        if columns and tuple(columns) != self.columns:
            raise InputFileError(
                f"{self.path}: holds rows with other columns: of another table, or with other models "
                f"(expected {', '.join(self.columns)})"
            )
        return found

    def append(self, result: RowResult) -> None:
        """Write one row; it is in the operating system's hands on return."""
        cells = flat(result, self.parameters, self.models)
        self._write(_csv_line(list(cells.values())) if self.journal.suffix == ".csv" else _json_line(cells))

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be written ({error.strerror})") from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        if self.journal != self.path:
            rows = [flat(row, self.parameters, self.models) for row in _journal_rows(self.journal)[1]]
            if rows:
                write_parquet(self.path, self.columns, rows)
                self.journal.unlink()
        self._file.close()


def read_rows(path: Path) -> tuple[tuple[str, ...], tuple[str, ...], list[RowResult]]:
    """Parameters, models and rows of a file that a run wrote, or is writing."""
    check_suffix(path)
    journal = journal_of(path)
    if journal != path and not journal.exists():
        cells = list(parquet_rows(path))
        columns = list(cells[0]) if cells else []
        rows = [from_flat(row, columns, f"{path}: row {n}") for n, row in enumerate(cells, 1)]
    else:
        columns, rows = _journal_rows(journal)
    if not rows:
        raise InputFileError(f"{path}: holds no rows (expected rows that drywarp validate wrote)")
    return (*layout(columns, str(path)), rows)


def check_suffix(path: Path) -> None:
    """Raise UsageError for a name that no format goes by, or a format whose library is missing."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: expected a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if path.suffix == ".parquet":
        check_parquet()


def journal_of(path: Path) -> Path:
    """The file that rows are appended to: Parquet, which does not grow, is written from one beside it."""
    return path.with_name(path.name + ".part.jsonl") if path.suffix == ".parquet" else path


def _journal_rows(path: Path) -> tuple[list[str], list[RowResult]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise InputFileError(f"{path}: cannot be read ({reason}; expected rows that drywarp validate wrote)") from None
    whole = text[: text.rfind("\n") + 1]
    return _csv_rows(whole, path) if path.suffix == ".csv" else _json_rows(whole, path)


def _csv_rows(text: str, path: Path) -> tuple[list[str], list[RowResult]]:
    reader = csv.reader(io.StringIO(text))
    found: list[RowResult] = []
    try:
        columns = next(reader, [])
        for cells in reader:
            place = f"{path}: line {reader.line_num}"
            if len(cells) != len(columns):
                raise InputFileError(f"{place}: {len(cells)} cells, expected {len(columns)} as in the header")
            found.append(from_flat(dict(zip(columns, cells, strict=True)), columns, place))
    except csv.Error as error:
        raise InputFileError(f"{path}: line {reader.line_num}: {error}") from None
    if columns:
        layout(columns, str(path))
    return columns, found


def _json_rows(text: str, path: Path) -> tuple[list[str], list[RowResult]]:
    columns: list[str] = []
    found: list[RowResult] = []
    for line, content in enumerate(text.splitlines(), 1):
        place = f"{path}: line {line}"
        try:
            cells = json.loads(content)
        except json.JSONDecodeError as error:
            raise InputFileError(f"{place}: not JSON: {error.msg}") from None
        if not isinstance(cells, dict):
            raise InputFileError(f"{place}: expected a JSON object")
        columns = columns or list(cells)
        found.append(from_flat(cells, columns, place))
    return columns, found


def _csv_line(values: Sequence[object]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(["" if value is None else value for value in values])
    return out.getvalue().encode()


def _json_line(cells: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(cells), ensure_ascii=False) + os.linesep).encode()
