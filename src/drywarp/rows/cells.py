"""A row of parameters before anything is predicted: texts under names, and their values in expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..frontends.abstract_expression import Value


@dataclass(frozen=True)
class Row:
    """One configuration. `number` counts rows from 1; `place` says in errors which it is, as file and line."""

    number: int
    place: str
    cells: Mapping[str, str]

    def values(self) -> dict[str, Value]:
        """The cells as numbers where they are, for expressions over columns."""
        return {name: as_value(text) for name, text in self.cells.items()}


def as_value(text: str) -> Value:
    """A cell as a whole number, a number, 1 or 0 for true and false, or the text that it is."""
    text = text.strip()
    if text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
