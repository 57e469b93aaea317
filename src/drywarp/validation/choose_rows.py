"""Which rows of a table are taken: those that a filter keeps, evenly spread, of both halves or of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import UsageError
from ..frontends.abstract_expression import ExpressionError, evaluate
from ..rows.cells import as_value
from ..rows.spread import spread
from .store import read_rows
from .table import MeasuredRow, Table

HALVES = ("even", "odd")


def keep(table: Table, where: str | None) -> list[MeasuredRow]:
    """The rows for which `where`, a condition over columns, holds.

    Raises UsageError for a condition that has no value, naming the row, and where no row is left.
    """
    if where is None:
        return list(table.rows)
    kept = []
    for row in table.rows:
        try:
            if evaluate(where, row.values()):
                kept.append(row)
        except ExpressionError as error:
            raise UsageError(f"{row.place}: --where {where!r}: {error}") from None
    if not kept:
        raise UsageError(f"{table.origin}: no row is left of {len(table.rows)} by --where {where!r}")
    return kept


def keep_like(table: Table, rows: Sequence[MeasuredRow], other: Path) -> list[MeasuredRow]:
    """The rows whose configurations another output holds, in its order, so that the two can be compared.

    Configurations are matched by the parameters that both have. Raises UsageError where nothing matches.
    """
    names, _, found = read_rows(other)
    common = [name for name in names if name in table.parameters]
    at = {tuple(as_value(row.cells[name]) for name in common): row for row in rows}
    keys = (tuple(as_value(row.parameters[name]) for name in common) for row in found)
    kept = [at[key] for key in keys if key in at] if common else []
    if not kept:
        raise UsageError(f"{table.origin}: no row has the parameters of a row of {other}")
    return list({row.number: row for row in kept}.values())


def sample(rows: Sequence[MeasuredRow], count: int | None) -> list[MeasuredRow]:
    """The first `count` rows of `spread`; all of them where `count` is None."""
    if count is not None and count < 1:
        raise UsageError(f"--rows {count}: expected a positive number")
    return spread(rows)[:count]


def half_of(number: int) -> str:
    """The half that a row of this number belongs to: by the parity of the ones in its binary digits.

    That is the Thue-Morse sequence. Rows next to each other, and likewise pairs, fours, … of rows, are dealt out
    evenly, and so is every even sample; which parameter alternates along the table does not matter.
    """
    return HALVES[number.bit_count() % 2]
