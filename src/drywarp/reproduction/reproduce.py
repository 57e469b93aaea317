"""All rows of all papers: every module of this room named ``rows_…`` with a function `rows` has some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from .row import Row

STATUSES = ("reproduced", "inconsistent_in_source", "failed")


def reproduce() -> list[Row]:
    """Every published number beside the computed one, paper by paper."""
    found: list[Row] = []
    package = import_module(__package__ or "drywarp.reproduction")
    for module in sorted(info.name for info in iter_modules(package.__path__) if info.name.startswith("rows_")):
        rows = getattr(import_module(f"{package.__name__}.{module}"), "rows", None)
        if rows is not None:
            found += rows()
    return sorted(found, key=lambda row: row.paper)


def totals(rows: Sequence[Row]) -> dict[str, int]:
    """How many rows have each status."""
    count = Counter[str](row.status for row in rows)
    return {status: count[status] for status in STATUSES}
