"""A row of parameters before prediction: named texts, and their values in expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...frontends.load import as_source as path_or_text
from ...frontends.load import read_input
from ...support.expressions import Value


@dataclass(frozen=True)
class Row:
    """One configuration. `number` counts rows from 1; `place` identifies it in errors by file and line."""

    number: int
    place: str
    cells: Mapping[str, str]

    def values(self) -> dict[str, Value]:
        """The cells, as numbers where possible, for expressions over columns."""
        return {name: as_value(text) for name, text in self.cells.items()}


def as_value(text: str) -> Value:
    """A cell as an integer, a float, 1 or 0 for true and false, or unchanged text."""
    text = text.strip()
    if text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


# The kernel given by the user: a path or source text.


def as_source(kernel: str | Path) -> str | Path:
    """A string with a line break or a brace is source text, any other a readable path."""
    source = path_or_text(kernel)
    if isinstance(source, Path):
        read_input(source)
    return source
