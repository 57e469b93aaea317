"""Tables whose rows name their kernel and launch, as written by `drywarp measure`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputFileError, UsageError
from ...frontends.loaded import launch_options
from ..rows.identity import hash_of
from ..rows.recipe import CLOCK, Recipe
from ..rows.worker import KERNEL, WARM_L2
from .read_csv import MeasuredRow, Table

FILE, LAUNCH, HASH, L2 = "file", "launch", "source_hash", "l2"
KERNEL_NAME, VARIANT = "kernel", "variant"
_PARAMETERS = (KERNEL_NAME, VARIANT, "threads", "dynamic_shared", "blocks_per_sm", "group")
"""Columns that identify rows; none becomes a macro, because the launch includes all of them."""


def is_described(table: Table) -> bool:
    """Whether each row names its file and its launch."""
    return FILE in table.columns and LAUNCH in table.columns


def as_described(table: Table, recipe: Recipe) -> Table:
    """The table with the parameters that identify its rows."""
    check_none(recipe)
    return replace(table, parameters=tuple(name for name in _PARAMETERS if name in table.columns))


def check_none(recipe: Recipe) -> None:
    """Raise UsageError if a launch is given as well: the rows have their own."""
    given: list[tuple[str, object]] = [
        ("grid", recipe.grid),
        ("block", recipe.block),
        ("shared", recipe.shared),
        ("entry", recipe.entry),
    ]
    given += [("arg", recipe.args), ("const", recipe.constants), ("macros", recipe.macros), ("D", recipe.defines)]
    given += [("max-registers", recipe.max_registers)]
    for name, value in given:
        if value:
            dashes = "-" if len(name) == 1 else "--"
            raise UsageError(f"{dashes}{name}: not allowed, because each row of this table has its own launch")


def described_launches(rows: Sequence[MeasuredRow], folder: Path, recipe: Recipe) -> dict[int, Mapping[str, Any]]:
    """Each row's launch for the worker; files are relative to `folder`.

    The clock is the one read during the measurement, unless `recipe.clock` gives another in MHz or names a column.
    Raises InputFileError that names the row if a file is missing, a source differs from the measured one, or a launch
    cannot be read.
    """
    hashes: dict[Path, str] = {}
    return {row.number: _launch(row, folder, recipe, hashes) for row in rows}


def _launch(
    row: MeasuredRow,
    folder: Path,
    recipe: Recipe,
    hashes: dict[Path, str],
) -> dict[str, Any]:
    source = folder / row.cells[FILE]
    if not source.is_file():
        raise InputFileError(
            f"{row.place}: {source}: no such file (expected it relative to the table's folder, or --kernel FOLDER)"
        )
    if source not in hashes:
        hashes[source] = hash_of(source)
    measured = row.cells.get(HASH, "")
    if measured and measured != hashes[source]:
        raise InputFileError(f"{row.place}: {source} differs from the source that was measured ({HASH} {measured})")
    said = launch_options(row.cells[LAUNCH], f"{row.place}: column {LAUNCH}")
    launch: dict[str, Any] = {
        KERNEL: source,
        WARM_L2: row.cells.get(L2, "") == "warm",
        "entry": said.entry,
        "grid": said.grid,
        "block": said.block,
        "args": dict(said.arguments),
        "constants": dict(said.constants),
        "shared": int(said.shared or 0),
        "defines": dict(said.defines),
        "includes": tuple(recipe.includes),
        "std": recipe.std or said.std,
        "compiler_options": (*said.compiler_options, *recipe.compiler_options),
    }
    clock = recipe.clock
    text = row.cells.get(CLOCK, "") if clock is None else row.cells.get(clock, clock)
    if text:
        launch[CLOCK] = _megahertz(text, row.place)
    return launch


def _megahertz(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"{place}: clock {text!r}: expected MHz, or the name of a column with them")
    return value
