"""A row, and how it becomes a launch: macros, grid, block and arguments from expressions over the row's columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...analysis.best_config import BEST, most_configs
from ...errors import UsageError
from ...frontends.cuda import CudaOptions
from ...frontends.load import as_source as path_or_text
from ...frontends.load import read_input
from ...hardware.gpu import CLOCKS
from ...support.expressions import ExpressionError, Value, evaluate, names_in

_BUFFER = re.compile(r"^((?:host\s+)?\w+)\[([^\]]*)\](:.+)?$")
_BRACES = re.compile(r"\{([^{}]+)\}")
_EXTENTS = re.compile(r"\(?\s*(\d+)\s*(?:[,x ]\s*(\d+)\s*)?(?:[,x ]\s*(\d+)\s*)?\)?")
MOST_REGISTERS, FEWEST_REGISTERS = 255, 16
CLOCK = "clock_mhz"
"""The field of the options that a row may set."""


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
    for convert in (int, float) if "_" not in text else ():  # Python takes 1_8192, a name here, for 18192
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


@dataclass(frozen=True)
class Recipe:
    """What all rows share, with expressions for what differs.

    `macros` are columns that become macros of the same name (None: all parameters). `grid` and `block` are up to three
    expressions each over columns, numeric macros and numeric arguments (None: the columns ``grid`` and ``block`` if the
    row has them, else the source's launch comment). In `args`, buffer extents (``f32[n*n]:random``) and numbers may be
    expressions. `entry` may contain columns and expressions in braces (``gemm<{bm},{bn/2}>``); so may the values of
    `defines`, where any other braces are left unchanged. `max_registers` is a number or an expression; 0 means no cap.
    `clock` is the SM clock in MHz, likewise (None: the GPU's boost clock). `cluster` are the blocks of a thread block
    cluster, as `grid` (None: what the code or its launch comment states). `config` is the configuration of an autotuned
    Triton kernel: a number or an expression, or ``best``, the one that is predicted to be the fastest. With it, `grid`
    is an expression over arguments and the configuration's constants, with columns in braces.
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
    compiler_options: Sequence[str] = ()
    cluster: str | None = None
    config: str | None = None

    def __post_init__(self) -> None:
        # Bad options are refused before anything is predicted.
        CudaOptions(compiler_options=self.compiler_options)
        if self.config and self.config.startswith(BEST):
            most_configs(self.config)


def named_columns(text: str | None) -> frozenset[str]:
    """The names used in a text's braces. Raises UsageError for braces without a valid expression."""
    try:
        return frozenset(name for inside in _BRACES.findall(text or "") for name in names_in(inside))
    except ExpressionError as error:
        raise UsageError(f"{text!r}: {error}") from None


def numbers_of(args: Mapping[str, Any]) -> dict[str, Value]:
    """The arguments that are plain numbers, which expressions may use too."""
    values = {name: as_value(value) if isinstance(value, str) else value for name, value in args.items()}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def launch_of(recipe: Recipe, row: Row, macros: Sequence[str], dashes: str = "--") -> dict[str, Any]:
    """The arguments of `prepare_kernel` for one row, and its clock, if any, under `CLOCK`.

    Raises UsageError that names the row and the column or option; `dashes` precede an option's name.
    """
    missing = [name for name in macros if not row.cells.get(name)]
    if missing:
        raise UsageError(f"{row.place}: column {missing[0]}, which is a macro, is empty")
    known: dict[str, Value] = numbers_of(recipe.args)
    known |= {name: as_value(value) for name, value in recipe.defines.items() if value}
    known.update({name: value for name, value in row.values().items() if value != ""})
    evaluator = _Evaluator(row, known, dashes)
    given: dict[str, Any] = {
        "entry": None if recipe.entry is None else evaluator.filled(recipe.entry),
        "grid": _grid(recipe, evaluator),
        "block": evaluator.extents(recipe.block, "block"),
        "args": {name: evaluator.argument(value, f"arg {name}") for name, value in recipe.args.items()},
        "constants": {name: evaluator.argument(value, f"const {name}") for name, value in recipe.constants.items()},
        "shared": None if recipe.shared is None else evaluator.whole(recipe.shared, "shared"),
        "defines": {
            **{name: evaluator.loosely(text) for name, text in recipe.defines.items()},
            **{name: row.cells[name] for name in macros},
        },
        "includes": tuple(recipe.includes),
        "std": recipe.std,
        "compiler_options": tuple(recipe.compiler_options),
    }
    if recipe.max_registers is not None:
        cap = evaluator.whole(recipe.max_registers, "max-registers")
        given["max_registers"] = min(MOST_REGISTERS, max(FEWEST_REGISTERS, cap)) if cap else None
    if recipe.cluster is not None:
        given["cluster"] = evaluator.extents(recipe.cluster, "cluster")
    if recipe.config is not None:
        best = recipe.config.startswith(BEST)
        given["config"] = recipe.config if best else evaluator.whole(recipe.config, "config")
    if recipe.clock is not None:
        given[CLOCK] = recipe.clock if recipe.clock in CLOCKS else evaluator.positive(recipe.clock, "clock")
    return given


def _grid(recipe: Recipe, evaluator: _Evaluator) -> Any:
    if recipe.config is None or recipe.grid is None:
        return evaluator.extents(recipe.grid, "grid")
    return evaluator.filled(recipe.grid, "grid")


@dataclass(frozen=True)
class _Evaluator:
    """Evaluates expressions over one row; errors name the row and the expression."""

    row: Row
    known: Mapping[str, Value]
    dashes: str

    def filled(self, text: str, option: str = "entry") -> str:
        """A text with its braces replaced: columns by their text, expressions by their value."""

        def value(match: re.Match[str]) -> str:
            cell = self.row.cells.get(match[1].strip())
            return _plain(self.number(match[1], option)) if cell is None else cell

        return _BRACES.sub(value, text)

    def loosely(self, text: str) -> str:
        """The same, but braces that use no column are left unchanged."""

        def value(match: re.Match[str]) -> str:
            try:
                return self.filled(match[0]) if names_in(match[1]) & self.row.cells.keys() else match[0]
            except (ExpressionError, UsageError):
                return match[0]

        return _BRACES.sub(value, text)

    def extents(self, text: str | None, what: str) -> str | None:
        """Up to three expressions; without them, the row's own column of that name, if it has one."""
        if text is None:
            cell = self.row.cells.get(what)
            if cell is None:
                return None
            match = _EXTENTS.fullmatch(cell)
            if match is None:
                raise UsageError(f"{self.row.place}: column {what} is {cell!r}, expected extents as in 64x32x1")
            return ",".join(part for part in match.groups() if part)
        return ",".join(str(self.whole(part, what)) for part in split(text))

    def number(self, text: str, option: str) -> int | float:
        """The value of an expression."""
        try:
            return evaluate(text, self.known)
        except ExpressionError as error:
            raise UsageError(f"{self.row.place}: {self.dashes}{option} {text!r}: {error}") from None

    def positive(self, text: str, option: str) -> float:
        """An expression that must evaluate to a positive number."""
        value = self.number(text, option)
        if value <= 0:
            raise UsageError(
                f"{self.row.place}: {self.dashes}{option} {text!r} is {value:g}, expected a positive number"
            )
        return float(value)

    def whole(self, text: str, option: str) -> int:
        """An expression that must evaluate to a non-negative integer."""
        value = self.number(text, option)
        if value != int(value) or value < 0:
            raise UsageError(f"{self.row.place}: {self.dashes}{option} {text!r} is {value:g}, expected a whole number")
        return int(value)

    def argument(self, value: Any, option: str) -> Any:
        """A buffer with its extents evaluated, an evaluated number, or anything else unchanged."""
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
        return _plain(self.number(value, option))


def _plain(value: int | float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def split(text: str) -> list[str]:
    """Split a text at commas outside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
