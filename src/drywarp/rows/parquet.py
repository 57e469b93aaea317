"""Predicted rows as a Parquet file, where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputFileError, ToolError, UsageError


def check_parquet() -> None:
    """Raise ToolError where pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise ToolError("Parquet needs pyarrow: pip install 'drywarp[parquet]' (or name a .csv or .jsonl file)")


def write_parquet(
    path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], exact: Sequence[str] = ()
) -> None:
    """Write all rows; a column with texts is one of texts, and so is one of those `exact` whose values differ in type.

    The file appears whole or not at all.
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
    """The rows of a file. Raises InputFileError for what is no Parquet."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    try:
        table = parquet.read_table(path)
    except (OSError, arrow.ArrowException) as error:
        raise InputFileError(f"{path}: cannot be read as Parquet ({error})") from None
    yield from table.to_pylist()
