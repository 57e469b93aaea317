"""Files of predicted rows that grow row by row: CSV, JSON lines, and Parquet with JSON lines beside it.

A row is appended as soon as it is done, so that a run that is killed loses only rows that were not done; a torn last
line is cut off when the file is opened again. One process at a time may write.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from ..errors import InputFileError, UsageError
from .parquet import check_parquet, parquet_rows, write_parquet

SUFFIXES = (".csv", ".jsonl", ".parquet")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Form(Generic[Found]):
    """How rows of one kind stand in files that `verb` writes.

    `cells` gives a row under all `columns`, in their order, None for what there is not; `read` takes such cells, which
    may be texts, with the columns of the file and the place for errors; `key` tells rows apart. Columns that are
    `exact` come back as what they were, 0 and 0.0 told apart.
    """

    verb: str
    columns: tuple[str, ...]
    cells: Callable[[Found], Mapping[str, Any]]
    read: Callable[[Mapping[str, Any], Sequence[str], str], Found]
    key: Callable[[Found], object]
    exact: tuple[str, ...] = ()


class RowFile(Generic[Found]):
    """The rows of one file; a context that locks it and, for Parquet, writes it at the end.

    Raises UsageError for another suffix, a file that another process writes, or one that cannot be written, and
    InputFileError for one that holds something else.
    """

    def __init__(self, path: Path, form: Form[Found]) -> None:
        check_suffix(path)
        self.path, self.form = path, form
        self.journal = journal_of(path)
        self._file = -1
        self._ours = True
        self._accepted = False

    def __enter__(self) -> RowFile[Found]:
        self._lock()
        try:
            data = self.journal.read_bytes()
            self._ours = _begins_as(data, self.journal, self.form.columns)
            if self._ours:
                whole = data.rfind(b"\n") + 1
                if whole < len(data):
                    os.ftruncate(self._file, whole)
                if not whole:
                    self._begin()
        except (OSError, UsageError) as error:
            os.close(self._file)
            raise (self._refused(error) if isinstance(error, OSError) else error) from None
        return self

    def _lock(self) -> None:
        """Open and lock what has the journal's name; another process may put a new file there just before the lock."""
        while True:
            try:
                self._file = os.open(self.journal, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise self._refused(error) from None
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(self._file)
                raise UsageError(f"{self.path}: another process is writing to it") from None
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(self._file), self.journal.stat()):
                    return
            os.close(self._file)

    def rows(self) -> list[Found]:
        """What the file holds already. Raises InputFileError where its columns are not those of the form."""
        columns, found = _all_rows(self.path, self.form)
        if not self._ours or (columns and tuple(columns) != self.form.columns):
            raise InputFileError(
                f"{self.path}: holds rows with other columns: of other parameters, or with other models "
                f"(expected {', '.join(self.form.columns)})"
            )
        self._accepted = True
        return found

    def clear(self) -> None:
        """Discard what the file holds."""
        try:
            os.ftruncate(self._file, 0)
            if self.journal != self.path:
                self.path.unlink(missing_ok=True)
        except OSError as error:
            raise self._refused(error) from None
        self._ours = self._accepted = True
        self._begin()

    def _begin(self) -> None:
        if self.journal.suffix == ".csv":
            self._write(_csv_line(self.form.columns))

    def append(self, row: Found) -> None:
        """Write one row; it is in the operating system's hands on return, whole or not at all."""
        cells = self.form.cells(row)
        self._write(_csv_line(list(cells.values())) if self.journal.suffix == ".csv" else _json_line(cells))

    def replace(self, rows: Iterable[Found]) -> None:
        """Put these rows in the place of all that the file holds, in one step: it is the old file or the new one."""
        cells = [self.form.cells(row) for row in rows]
        if self.path.suffix == ".parquet":
            write_parquet(self.path, self.form.columns, cells, self.form.exact)
            os.ftruncate(self._file, 0)
            return
        lines = [_csv_line(list(row.values())) if self.path.suffix == ".csv" else _json_line(row) for row in cells]
        data = b"".join([_csv_line(self.form.columns)] * (self.path.suffix == ".csv") + lines)
        beside = self.path.with_name(self.path.name + ".new")
        try:
            if self.path.read_bytes() == data:
                return
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise self._refused(error) from None

    def _write(self, data: bytes) -> None:
        before, left = os.fstat(self._file).st_size, memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)
            raise UsageError(
                f"{self.path}: cannot be written ({error.strerror}); its rows are kept: the same command goes on"
            ) from None

    def _refused(self, error: OSError) -> UsageError:
        return UsageError(f"{self.path}: cannot be written ({error.strerror})")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.journal != self.path:
                held = os.fstat(self._file).st_size > 0
                # After a refusal the journal is another run's, whose columns this form may lack.
                if held and (kind is None or self._accepted):
                    self.replace(_all_rows(self.path, self.form)[1])
                    held = False
                if not held:
                    self.journal.unlink()
        finally:
            os.close(self._file)


def check_suffix(path: Path) -> None:
    """Raise UsageError for a name that no format goes by, or a format whose library is missing."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: expected a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if path.suffix == ".parquet":
        check_parquet()


def journal_of(path: Path) -> Path:
    """The file that rows are appended to: Parquet does not grow, and has one beside it while it is written."""
    return path.with_name(path.name + ".part.jsonl") if path.suffix == ".parquet" else path


def read_file(path: Path, form: Form[Found]) -> tuple[list[str], list[Found]]:
    """Columns and rows of a file that a run wrote, or is writing; the form's own columns do not count."""
    check_suffix(path)
    columns, rows = _all_rows(path, form)
    if not rows:
        raise InputFileError(f"{path}: holds no rows (expected rows that drywarp {form.verb} wrote)")
    return columns, rows


def _begins_as(data: bytes, path: Path, columns: Sequence[str]) -> bool:
    """Whether a file is empty or begins as one with these columns does, if only with a part of its first line."""
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
        # What is no whole object may be the beginning of one of ours.
        begin = _json_line({columns[0]: None}).removesuffix(b"null}\n")
        return not ended and (data.startswith(begin) or begin.startswith(data))
    return isinstance(cells, dict) and list(cells) == list(columns)


def _all_rows(path: Path, form: Form[Found]) -> tuple[list[str], list[Found]]:
    """Rows of a file and of its journal, each once."""
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
