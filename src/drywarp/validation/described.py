"""Tables that say of each row which kernel it is and how it was launched, as `drywarp measure` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InputFileError, UsageError
from ..frontends.comment import launch_options
from ..rows.recipe import CLOCK, Recipe
from ..rows.text_hash import hash_of
from ..rows.worker import KERNEL, WARM_L2
from .table import MeasuredRow, Table

FILE, LAUNCH, HASH, L2 = "file", "launch", "source_hash", "l2"
KERNEL_NAME, VARIANT = "kernel", "variant"
_PARAMETERS = (KERNEL_NAME, VARIANT, "threads", "dynamic_shared", "blocks_per_sm", "group")
"""Columns that tell rows apart; none becomes a macro, since the launch has all of them."""


def is_described(table: Table) -> bool:
    """Whether each row names its file and its launch."""
    return FILE in table.columns and LAUNCH in table.columns


def as_described(table: Table) -> Table:
    """The table with those parameters that tell its rows apart."""
    return replace(table, parameters=tuple(name for name in _PARAMETERS if name in table.columns))


def check_none(recipe: Recipe) -> None:
    """Raise UsageError where a launch is stated besides: the rows have theirs."""
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
            raise UsageError(f"{dashes}{name}: each row of this table says how it was launched, expected nothing else")


def described_launches(
    rows: Sequence[MeasuredRow], folder: Path, includes: Sequence[str], std: str | None, clock: str | None
) -> dict[int, Mapping[str, Any]]:
    """Each row's launch, as the rows' worker takes it; files are looked for from `folder` on.

    The clock is the one that was read during the run, unless `clock` gives another in MHz, or names a column. Raises
    InputFileError naming the row: a file that is not there, another text than the one that was measured, a launch that
    cannot be read.
    """
    hashes: dict[Path, str] = {}
    return {row.number: _launch(row, folder, includes, std, clock, hashes) for row in rows}


def _launch(
    row: MeasuredRow,
    folder: Path,
    includes: Sequence[str],
    std: str | None,
    clock: str | None,
    hashes: dict[Path, str],
) -> dict[str, Any]:
    source = folder / row.cells[FILE]
    if not source.is_file():
        raise InputFileError(
            f"{row.place}: {source}: no such file (expected it from the table's folder on, or --kernel FOLDER)"
        )
    if source not in hashes:
        hashes[source] = hash_of(source)
    measured = row.cells.get(HASH, "")
    if measured and measured != hashes[source]:
        raise InputFileError(f"{row.place}: {source} is not the text that was measured ({HASH} {measured})")
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
        "includes": tuple(includes),
        "std": std or said.std,
    }
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
