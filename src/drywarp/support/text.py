"""How values are shown: untrusted names on one visible line, numbers with units, results in notebooks."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

LONGEST = 160
"""Maximum number of characters shown of a source line."""
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def plain(text: str, longest: int = LONGEST) -> str:
    """One line without control characters, direction marks and the like; truncated if too long."""
    shown = "".join(" " if c in "\t\n\r" else "�" if unicodedata.category(c) in _INVISIBLE else c for c in text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


# Human-readable numbers with units.

_NEARLY_ONE = 0.9995
"""From this value on, three significant digits round up to one of the next unit."""


def time_text(seconds: float) -> str:
    """Three significant digits with s, ms, µs or ns."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale * _NEARLY_ONE:
            return f"{_three(seconds / scale)} {unit}"
    return f"{_three(seconds / 1e-9)} ns"


def energy_text(joules: float) -> str:
    """Three significant digits with J, mJ or µJ."""
    for scale, unit in ((1.0, "J"), (1e-3, "mJ")):
        if joules >= scale * _NEARLY_ONE:
            return f"{_three(joules / scale)} {unit}"
    return f"{_three(joules / 1e-6)} µJ"


def bytes_text(count: float) -> str:
    """Three significant digits with B, KiB, MiB or GiB."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power * _NEARLY_ONE:
            return f"{_three(count / 1024**power)} {unit}"
    return f"{count:.0f} B"


def count_text(count: float) -> str:
    """A count: all digits up to 99,999, then three significant digits with k, M or G."""
    if count < 100_000:
        return f"{count:,.0f}"
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= scale * _NEARLY_ONE:
            return f"{_three(count / scale)} {unit}"
    return f"{count:.0f}"


def percent_text(fraction: float | None) -> str:
    """A fraction as a percentage; a dash for none."""
    return "–" if fraction is None else f"{fraction:.0%}"


def range_text(low: str, high: str) -> str:
    """Two numbers with units as a range such as `348–514 µs`; both units are shown if they differ."""
    number, _, unit = low.rpartition(" ")
    return f"{number}–{high}" if high.endswith(f" {unit}") else f"{low} – {high}"


def _three(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


# How results display themselves in notebooks and figures.
#
# Notebook users expect results to display themselves (`figure`, `_repr_html_`, `to_pandas`), but rendering belongs in
# `report` alone. The packages that define results must not depend on `report`, so it is imported here by name.


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
