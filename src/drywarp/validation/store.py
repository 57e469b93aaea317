"""Files of a validation's rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..rows.row_file import Form, RowFile, read_file
from .row import RowResult, columns_of, flat, from_flat, layout


class RowStore(RowFile[RowResult]):
    """The rows of one output, with these parameters of the table and these models; see `RowFile`."""

    def __init__(self, path: Path, parameters: Sequence[str], models: Sequence[str]) -> None:
        super().__init__(path, _form(parameters, models))


def read_rows(path: Path) -> tuple[tuple[str, ...], tuple[str, ...], list[RowResult]]:
    """Parameters, models and rows of a file that a run wrote, or is writing."""
    columns, rows = read_file(path, _form((), ()))
    return (*layout(columns, str(path)), rows)


def _form(parameters: Sequence[str], models: Sequence[str]) -> Form[RowResult]:
    return Form(
        verb="validate",
        columns=columns_of(parameters, models),
        cells=lambda row: flat(row, parameters, models),
        read=from_flat,
        key=lambda row: row.row,
    )
