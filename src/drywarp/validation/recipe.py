"""How a row of a table becomes a launch: macros, grid, block and arguments by expressions over the row's columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import UsageError
from ..frontends.abstract_expression import ExpressionError, Value, evaluate, names_in
from .table import MeasuredRow, Table, as_value

_BUFFER = re.compile(r"^(\w+)\[([^\]]*)\](:.+)?$")
_COLUMN = re.compile(r"\{(\w+)\}")
_EXTENTS = re.compile(r"\(?\s*(\d+)\s*(?:[,x ]\s*(\d+)\s*)?(?:[,x ]\s*(\d+)\s*)?\)?")
MOST_REGISTERS, FEWEST_REGISTERS = 255, 16
CLOCK = "clock_mhz"
"""The field of the options that a row may set."""


@dataclass(frozen=True)
class Recipe:
    """What is the same for all rows, with expressions for what is not.

    `macros` are columns that become macros of their own name, None: all parameters of the table. `grid` and `block`
    are up to three sums each over columns and numeric macros, None: the columns ``grid`` and ``block`` where the table
    has them, else the source's launch comment. In `args`, the extents of a buffer may be sums (``f32[n*n]:random``),
    and so may a number. `entry` may hold columns in braces (``gemm<{bm},{bn}>``). `max_registers` is a number or a
    sum; a row where it comes out as 0 has no cap. `clock` is the SM clock in MHz, likewise; None: the GPU's
    boost clock.
    """

    macros: Sequence[str] | None = None
    defines: Mapping[str, str] = field(default_factory=dict)
    grid: str | None = None
    block: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    shared: str | None = None
    entry: str | None = None
    max_registers: str | None = None
    clock: str | None = None
    includes: Sequence[str] = ()
    std: str | None = None


def check(recipe: Recipe, table: Table) -> tuple[str, ...]:
    """The columns that become macros. Raises where the recipe names a column that the table lacks."""
    for name in recipe.macros or ():
        table.column(name)
    for name in _COLUMN.findall(recipe.entry or ""):
        table.column(name)
    return tuple(table.parameters if recipe.macros is None else recipe.macros)


def launch_of(recipe: Recipe, row: MeasuredRow, macros: Sequence[str]) -> dict[str, Any]:
    """The arguments of `bind_kernel` for one row, and its clock under `CLOCK`, where there is one.

    Raises UsageError naming the row and the column or option.
    """
    missing = [name for name in macros if not row.cells.get(name)]
    if missing:
        raise UsageError(f"{row.place}: nothing in column {missing[0]}, which is a macro")
    known: dict[str, Value] = {name: as_value(value) for name, value in recipe.defines.items() if value}
    known.update({name: value for name, value in row.values().items() if value != ""})
    evaluator = _Evaluator(row, known)
    given: dict[str, Any] = {
        "entry": None if recipe.entry is None else evaluator.filled(recipe.entry),
        "grid": evaluator.extents(recipe.grid, "grid"),
        "block": evaluator.extents(recipe.block, "block"),
        "args": {name: evaluator.argument(value, f"--arg {name}") for name, value in recipe.args.items()},
        "constants": {name: evaluator.argument(value, f"--const {name}") for name, value in recipe.constants.items()},
        "shared": None if recipe.shared is None else evaluator.whole(recipe.shared, "--shared"),
        "defines": {**recipe.defines, **{name: row.cells[name] for name in macros}},
        "includes": tuple(recipe.includes),
        "std": recipe.std,
    }
    if recipe.max_registers is not None:
        cap = evaluator.whole(recipe.max_registers, "--max-registers")
        given["max_registers"] = min(MOST_REGISTERS, max(FEWEST_REGISTERS, cap)) if cap else None
    if recipe.clock is not None:
        given[CLOCK] = evaluator.positive(recipe.clock, "--clock")
    return given


@dataclass(frozen=True)
class _Evaluator:
    """Expressions over one row; errors name the row and what was being worked out."""

    row: MeasuredRow
    known: Mapping[str, Value]

    def filled(self, text: str) -> str:
        """A text with its columns in braces replaced."""
        return _COLUMN.sub(lambda match: self.row.cells[match[1]], text)

    def extents(self, text: str | None, what: str) -> str | None:
        """Up to three sums; without any the row's own column of that name, if it has one."""
        if text is None:
            cell = self.row.cells.get(what)
            if cell is None:
                return None
            match = _EXTENTS.fullmatch(cell)
            if match is None:
                raise UsageError(f"{self.row.place}: column {what} is {cell!r}, expected extents as in 64x32x1")
            return ",".join(part for part in match.groups() if part)
        return ",".join(str(self.whole(part, f"--{what}")) for part in split(text))

    def number(self, text: str, option: str) -> int | float:
        """The value of a sum."""
        try:
            return evaluate(text, self.known)
        except ExpressionError as error:
            raise UsageError(f"{self.row.place}: {option} {text!r}: {error}") from None

    def positive(self, text: str, option: str) -> float:
        """A sum that must come out as a positive number."""
        value = self.number(text, option)
        if value <= 0:
            raise UsageError(f"{self.row.place}: {option} {text!r} is {value:g}, expected a positive number")
        return float(value)

    def whole(self, text: str, option: str) -> int:
        """A sum that must come out as a whole number, not negative."""
        value = self.number(text, option)
        if value != int(value) or value < 0:
            raise UsageError(f"{self.row.place}: {option} {text!r} is {value:g}, expected a whole number")
        return int(value)

    def argument(self, value: Any, option: str) -> Any:
        """A buffer with its extents worked out; a number that is a sum; anything else as it stands."""
        if not isinstance(value, str):
            return value
        if match := _BUFFER.match(value.strip()):
            extents = ",".join(str(self.whole(part, option)) for part in split(match[2]) if part.strip())
            return f"{match[1]}[{extents}]{match[3] or ''}"
        try:
            names = names_in(value)
        except ExpressionError:
            return value
        if not names or not names <= self.known.keys():
            return value
        found = self.number(value, option)
        return str(int(found)) if found == int(found) else repr(float(found))


def split(text: str) -> list[str]:
    """A text at its commas outside of brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
