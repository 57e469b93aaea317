"""Tables as text, and the list of abstract kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ..analysis.result import headed
from ..support.text import json_of
from ..workload.abstract.check import AbstractFile


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with aligned columns, two spaces apart; the terminal wraps lines that are too long."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def table_text(rows: Sequence[Sequence[str]]) -> Text:
    """The same as text that ends with a line break, the first row dimmed."""
    head, *lines = aligned(rows)
    return Text.assemble((head + "\n", "dim"), "\n".join(lines) + "\n")


def columns(*names: str, head: bool = True) -> Table:
    """A table to fill, without lines; columns that begin with ``>`` are right-aligned, and they or ``=`` never wrap."""
    table = Table(box=None, show_header=head, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in names:
        right, stiff = name.startswith(">"), name.startswith((">", "="))
        table.add_column(name.lstrip(">="), justify="right" if right else "left", no_wrap=stiff)
    return table


# Abstract kernels.


def workloads_dict(files: Sequence[AbstractFile]) -> dict[str, Any]:
    """Name, title, source, GPU and settings of each."""
    rows = [
        {
            "name": file.name,
            **json_of(file.kernel, "title source about gpu"),
            "settings": {name: json_of(s, "default about least most") for name, s in file.kernel.settings.items()},
        }
        for file in files
    ]
    return {**headed(), "workloads": rows}


def render_workloads(files: Sequence[AbstractFile]) -> Text:
    """One row each."""
    rows = [["name", "settings", "GPU", "description"]]
    for file in files:
        settings = ", ".join(f"{name}={s.default:g}" for name, s in file.kernel.settings.items())
        rows.append([file.name, settings, file.kernel.gpu or "", file.kernel.title])
    more = "drywarp workloads NAME describes one; drywarp models NAME runs every model on it."
    return table_text(rows).append(f"\n{more}")


def render_workload(file: AbstractFile) -> Text:
    """Title, source, description, and every setting with its range."""
    kernel = file.kernel
    text = Text.assemble((f"{file.name}: {kernel.title}", "bold"), "\n")
    text.append(f"{kernel.source}\n", style="dim")
    if kernel.about:
        text.append(f"{kernel.about}\n")
    text.append(f"Default GPU: {kernel.gpu or 'a100'}\n\n")
    rows = [["setting", "default", "range", "meaning"]]
    for name, setting in kernel.settings.items():
        least, most = (("" if bound is None else f"{bound:g}") for bound in (setting.least, setting.most))
        rows.append([f"--set {name}=", f"{setting.default:g}", f"{least}..{most}", setting.about])
    text.append("\n".join(aligned(rows)) if kernel.settings else "It has no settings.")
    return text
