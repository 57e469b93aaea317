"""Files of predicted rows that grow row by row: CSV, JSON lines, and Parquet with a JSON lines journal.

A row is appended as soon as it is done, so a killed run only loses unfinished rows; an incomplete last line is removed
when the file is reopened. Only one process at a time may write.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from ...errors import InputFileError, ToolError, UsageError
from ...support.growing_file import GrowingFile

# Predicted rows as a Parquet file, if pyarrow is installed.


def check_parquet() -> None:
    """Raise ToolError if pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise ToolError("Parquet needs pyarrow: pip install 'drywarp[parquet]' (or name a .csv or .jsonl file)")


def write_parquet(
    path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], exact: Sequence[str] = ()
) -> None:
    """Write all rows; a column with any text is a text column, as is an `exact` column with values of mixed types.

    The file is written atomically.
    """
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    table = arrow.table({name: _alike([row[name] for row in rows], name in exact) for name in columns})
    beside = path.with_name(path.name + ".new")
    try:
        parquet.write_table(table, beside)
        beside.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from None


def _alike(values: list[Any], exact: bool) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if str in kinds or (exact and len(kinds) > 1):
        return [None if value is None else str(value) for value in values]
    if float in kinds:
        return [None if value is None else float(value) for value in values]
    return values


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file. Raises InputFileError if it is not Parquet."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    try:
        table = parquet.read_table(path)
    except (OSError, arrow.ArrowException) as error:
        raise InputFileError(f"{path}: cannot be read as Parquet ({error})") from None
    yield from table.to_pylist()


SUFFIXES = (".csv", ".jsonl", ".parquet")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Form(Generic[Found]):
    """How rows of one kind are stored in files that `verb` writes.

    `cells` maps a row to values for all `columns`, in order, None if missing; `read` takes such cells, possibly as
    text, with the file's columns and the place for errors; `key` identifies a row. `exact` columns keep the type of
    their values, such as 0 versus 0.0.
    """

    verb: str
    columns: tuple[str, ...]
    cells: Callable[[Found], Mapping[str, Any]]
    read: Callable[[Mapping[str, Any], Sequence[str], str], Found]
    key: Callable[[Found], object]
    exact: tuple[str, ...] = ()


def text_of(value: bool | int | float | str) -> str:
    """A value as text for a compiler, an expression or a table."""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


class Cells:
    """The cells of one row of a file, possibly as text; errors name the `place`."""

    def __init__(self, cells: Mapping[str, Any], place: str) -> None:
        self._cells, self._place = cells, place

    def text(self, name: str) -> str:
        """A cell as text; empty if missing."""
        value = self._cells.get(name)
        return "" if value is None else text_of(value)

    def number(self, name: str) -> float:
        """A cell as a number. Raises InputFileError."""
        try:
            return float(self.text(name))
        except ValueError:
            raise InputFileError(f"{self._place}: {name} is {self.text(name)!r}, expected a number") from None


class RowFile(Generic[Found]):
    """The rows of one file, as a context manager that locks it and, for Parquet, writes it at the end.

    Raises UsageError for an unknown suffix, a file that another process is writing, or one that cannot be written, and
    InputFileError for a file with other content.
    """

    def __init__(self, path: Path, form: Form[Found]) -> None:
        check_suffix(path)
        self.path, self.form = path, form
        self.journal = journal_of(path)
        self._file = GrowingFile(self.journal, path)
        self._ours = True
        self._accepted = False

    def __enter__(self) -> RowFile[Found]:
        self._file.open_and(self._resume)
        return self

    def _resume(self, file: GrowingFile) -> None:
        """Cut off a row that was not finished; begin a new file."""
        data = file.read()
        self._ours = _begins_as(data, self.journal, self.form.columns)
        if self._ours:
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                file.cut(whole)
            if not whole:
                self._begin()

    def rows(self) -> list[Found]:
        """The rows already in the file. Raises InputFileError if its columns are not those of the form."""
        columns, found = _all_rows(self.path, self.form)
        if not self._ours or (columns and tuple(columns) != self.form.columns):
            raise InputFileError(
                f"{self.path}: holds rows with other columns, for other parameters or models "
                f"(expected {', '.join(self.form.columns)})"
            )
        self._accepted = True
        return found

    def clear(self) -> None:
        """Discard the file's content."""
        self._file.cut()
        if self.journal != self.path:
            self.path.unlink(missing_ok=True)
        self._ours = self._accepted = True
        self._begin()

    def _begin(self) -> None:
        if self.journal.suffix == ".csv":
            self._file.append(_csv_line(self.form.columns))

    def append(self, row: Found) -> None:
        """Write one row; on return it is written completely or not at all."""
        cells = self.form.cells(row)
        self._file.append(_csv_line(list(cells.values())) if self.journal.suffix == ".csv" else _json_line(cells))

    def replace(self, rows: Iterable[Found]) -> None:
        """Atomically replace the file's content with these rows."""
        cells = [self.form.cells(row) for row in rows]
        if self.path.suffix == ".parquet":
            write_parquet(self.path, self.form.columns, cells, self.form.exact)
            self._file.cut()
            return
        lines = [_csv_line(list(row.values())) if self.path.suffix == ".csv" else _json_line(row) for row in cells]
        self._file.replace(b"".join([_csv_line(self.form.columns)] * (self.path.suffix == ".csv") + lines))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.journal != self.path:
                held = self._file.size > 0
                # After an error, the journal belongs to another run, whose columns this form may lack.
                if held and (kind is None or self._accepted):
                    self.replace(_all_rows(self.path, self.form)[1])
                    held = False
                if not held:
                    self.journal.unlink()
        finally:
            self._file.close()


def check_suffix(path: Path) -> None:
    """Raise UsageError for an unknown suffix, or ToolError if the format's library is missing."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: expected a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if path.suffix == ".parquet":
        check_parquet()


def journal_of(path: Path) -> Path:
    """The file that rows are appended to: Parquet cannot grow, so it has a journal beside it during a run."""
    return path.with_name(path.name + ".part.jsonl") if path.suffix == ".parquet" else path


def read_file(path: Path, form: Form[Found]) -> tuple[list[str], list[Found]]:
    """Columns and rows of a file that a run wrote or is writing, whatever the form's own columns."""
    check_suffix(path)
    columns, rows = _all_rows(path, form)
    if not rows:
        raise InputFileError(f"{path}: holds no rows (expected rows that drywarp {form.verb} wrote)")
    return columns, rows


def _begins_as(data: bytes, path: Path, columns: Sequence[str]) -> bool:
    """Whether a file is empty or starts like one with these columns, even with only part of its first line."""
    first, ended, _ = data.partition(b"\n")
    if not data:
        return True
    if path.suffix == ".csv" and not ended:
        return _csv_line(columns).startswith(data)
    try:
        text = data[: data.rfind(b"\n") + 1].decode() if ended else first.decode()
        if path.suffix == ".csv":
            return next(csv.reader(io.StringIO(text)), []) == list(columns)
        cells = json.loads(text.partition("\n")[0])
    except (UnicodeDecodeError, csv.Error):
        return False
    except json.JSONDecodeError:
        # An incomplete object may be the start of one of ours.
        begin = _json_line({columns[0]: None}).removesuffix(b"null}\n")
        return not ended and (data.startswith(begin) or begin.startswith(data))
    return isinstance(cells, dict) and list(cells) == list(columns)


def _all_rows(path: Path, form: Form[Found]) -> tuple[list[str], list[Found]]:
    """Rows of a file and its journal, without duplicates."""
    journal = journal_of(path)
    columns: list[str] = []
    found: list[Found] = []
    if journal != path and path.exists():
        for number, cells in enumerate(parquet_rows(path), 1):
            columns = columns or list(cells)
            found.append(form.read(cells, columns, f"{path}: row {number}"))
        if not journal.exists():
            return columns, found
    try:
        text = journal.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise InputFileError(
            f"{journal}: cannot be read ({reason}; expected rows that drywarp {form.verb} wrote)"
        ) from None
    whole = text[: text.rfind("\n") + 1]
    ours, rows = _csv_rows(whole, journal, form) if journal.suffix == ".csv" else _json_rows(whole, journal, form)
    return columns or ours, list({form.key(row): row for row in (*found, *rows)}.values())


def _csv_rows(text: str, path: Path, form: Form[Found]) -> tuple[list[str], list[Found]]:
    reader = csv.reader(io.StringIO(text))
    found: list[Found] = []
    try:
        columns = next(reader, [])
        for cells in reader:
            place = f"{path}: line {reader.line_num}"
            if len(cells) != len(columns):
                raise InputFileError(f"{place}: {len(cells)} cells, expected {len(columns)} as in the header")
            found.append(form.read(dict(zip(columns, cells, strict=True)), columns, place))
    except csv.Error as error:
        raise InputFileError(f"{path}: line {reader.line_num}: {error}") from None
    return columns, found


def _json_rows(text: str, path: Path, form: Form[Found]) -> tuple[list[str], list[Found]]:
    columns: list[str] = []
    found: list[Found] = []
    for line, content in enumerate(text.splitlines(), 1):
        place = f"{path}: line {line}"
        try:
            cells = json.loads(content)
        except json.JSONDecodeError as error:
            raise InputFileError(f"{place}: not JSON: {error.msg}") from None
        if not isinstance(cells, dict):
            raise InputFileError(f"{place}: expected a JSON object")
        columns = columns or list(cells)
        found.append(form.read(cells, columns, place))
    return columns, found


def _csv_line(values: Sequence[object]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(["" if value is None else value for value in values])
    return out.getvalue().encode()


def _json_line(cells: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(cells), ensure_ascii=False) + "\n").encode()
