"""How results display themselves in notebooks and figures, by loading `report` on demand.

Notebook users expect results to display themselves (`figure`, `_repr_html_`, `to_pandas`), but rendering belongs in
`report` alone. The packages that define results must not depend on `report`, so it is imported here by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any


def figures() -> Any:
    """The module `drywarp.report.figures`."""
    return import_module("drywarp.report.figures")


def summary_html(answer: Mapping[str, Any], sentence: str) -> str:
    """See `drywarp.report.notebook.summary_html`."""
    return str(_notebook().summary_html(answer, sentence))


def table_html(title: str, rows: Sequence[Mapping[str, str]]) -> str:
    """See `drywarp.report.notebook.table_html`."""
    return str(_notebook().table_html(title, rows))


def frame(answer: Mapping[str, Any], table: str) -> Any:
    """See `drywarp.report.notebook.frame`."""
    return _notebook().frame(answer, table)


def frame_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """See `drywarp.report.notebook.frame_of`."""
    return _notebook().frame_of(rows)


def _notebook() -> Any:
    return import_module("drywarp.report.notebook")
