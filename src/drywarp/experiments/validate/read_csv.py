"""Plain tables (a header, a row per configuration, a column of times), KTT's, and those that `measure` writes.

The names of the columns say which one holds the times, and in which unit.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import InputFileError, UsageError
from ...frontends.loaded import launch_options
from ..rows.identity import hash_of
from ..rows.recipe import CLOCK, Recipe, Row
from ..rows.worker import KERNEL, WARM_L2

# Which column of a table holds the times, and in which unit.


UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
"""Seconds in each unit that a table may use."""
_SPELT = {
    **dict.fromkeys(("sec", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "millisecond", "milliseconds", "miliseconds"), "ms"),
    **dict.fromkeys(("usec", "microsecond", "microseconds", "μs"), "us"),
    **dict.fromkeys(("nsec", "nanosecond", "nanoseconds"), "ns"),
}
_ENDING = re.compile(r"^(?P<stem>.*?)[ _]*[_(\[ ](?P<unit>[A-Za-zµμ]+)[)\]]?$")
_STEMS = (
    *("median", "median_time", "time_median", "time", "duration", "computation_duration", "kernel_time", "runtime"),
    *("gpu_time", "elapsed", "elapsed_time", "mean", "mean_time", "time_mean", "avg", "average", "min", "time_min"),
)
"""Stems of usual names, in order of preference."""


def unit_of(text: str) -> str | None:
    """The unit as spelled in `UNITS`; None if it is not a unit of time."""
    plain = text.strip().lower()
    plain = _SPELT.get(plain, plain)
    return plain if plain in UNITS else None


def split_name(column: str) -> tuple[str, str | None]:
    """A column's stem and unit: ``median_ms`` is ("median", "ms"); the unit is None if the name has none."""
    match = _ENDING.match(column.strip())
    unit = unit_of(match["unit"]) if match else None
    stem = match["stem"] if match and unit else column
    return re.sub(r"[ _]+", "_", stem.strip().lower()), unit


def choose(columns: Sequence[str], wanted: str | None, origin: str) -> tuple[str, float]:
    """The time column and the seconds per unit.

    `wanted` is ``COLUMN`` or ``COLUMN:UNIT``; None looks for a usual name that ends in its unit. Raises UsageError if
    that is ambiguous.
    """
    if wanted is not None:
        return _told(columns, wanted, origin)
    found = {stem: (name, unit) for name in columns for stem, unit in [split_name(name)] if unit}
    for stem in _STEMS:
        if stem in found:
            name, unit = found[stem]
            return name, UNITS[unit]
    raise UsageError(
        f"{origin}: no column of times found (expected one such as median_ms or duration_us, or --time COLUMN:UNIT); "
        f"it has: {', '.join(columns)}"
    )


def _told(columns: Sequence[str], wanted: str, origin: str) -> tuple[str, float]:
    name, told = wanted, ""
    if wanted not in columns and ":" in wanted:
        name, _, told = wanted.rpartition(":")
    if name not in columns:
        raise UsageError(f"{origin}: no column {name!r} (--time); it has: {', '.join(columns)}")
    unit = unit_of(told) if told else split_name(name)[1]
    if unit is None:
        raise UsageError(f"--time {wanted}: expected a unit, as in {name}:ms (one of {', '.join(UNITS)})")
    return name, UNITS[unit]


def seconds(text: str, unit: float, place: str, column: str) -> float:
    """A cell in seconds. Raises InputFileError with place and column if it is not a positive number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputFileError(f"{place}: {column} is {text.strip()!r}, expected a positive number")
    return value * unit


# A table of measurements as returned by every reader: rows with a time, and the parameter columns.

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_RESULTS = frozenset(
    "status,grid,block,kernel,kernel_name,regs,registers,smem,local_bytes,shared_bytes,n_reps,timestamp,label,name,"
    "gpu,device,gflops,gbs,time,times,duration,compile_time,verification_time,benchmark_time,strategy_time,"
    "framework_time,runs_spread,occupancy,row,id,index,objective,invalidity,correctness".split(",")
)
"""Names of columns that hold results, not parameters."""
_RESULT_ENDINGS = ("_ms", "_us", "_ns", "_s", "_seconds", "_gflops", "_giops", "_gbs", "_flopbyte", "_opbyte")


@dataclass(frozen=True)
class MeasuredRow(Row):
    """One measured configuration."""

    time_s: float


@dataclass(frozen=True)
class Table:
    """The rows of a file that have a time.

    `parameters` are the columns that identify configurations and may be macros; `timed_by` is the column of the time;
    `left_out` counts the rows without a usable time, by reason.
    """

    origin: str
    columns: tuple[str, ...]
    rows: tuple[MeasuredRow, ...]
    parameters: tuple[str, ...]
    timed_by: str
    left_out: Mapping[str, int] = field(default_factory=dict)

    def column(self, name: str) -> str:
        """Return `name` if the table has that column. Raises InputFileError that lists the columns."""
        if name not in self.columns:
            raise InputFileError(f"{self.origin}: no column {name!r}; it has: {', '.join(self.columns)}")
        return name


def is_parameter(name: str) -> bool:
    """Whether a column may be a tuning parameter: its name is an identifier and not a known result."""
    plain = name.lower()
    return (
        _IDENTIFIER.fullmatch(name) is not None
        and "__" not in name.strip("_")
        and plain not in _RESULTS
        and not plain.endswith(_RESULT_ENDINGS)
    )


def parameters_of(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that may be parameters."""
    return tuple(name for name in columns if is_parameter(name))


_LARGEST_CELL = 1 << 20
_GOOD = frozenset({"ok", "correct", "success", "passed", "valid", "1", "true"})
_STATUS = ("status", "Status", "invalidity")


def parse_csv(text: str, origin: str, time: str | None) -> Table:
    """The rows of a CSV table, separated by commas, semicolons or tabs.

    Rows with a failed `status`, and rows with an empty time, are left out. Raises InputFileError with file and line for
    an incomplete row or a time that is not a positive number.
    """
    csv.field_size_limit(_LARGEST_CELL)
    if "\0" in text:
        raise InputFileError(f"{origin}: contains NUL bytes (expected a CSV table)")
    first = text.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first.count))
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header, origin)
        column, unit = choose(header, time, origin)
        status = next((name for name in _STATUS if name in header), None)
        rows: list[MeasuredRow] = []
        left_out: Counter[str] = Counter()
        number = 0
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            number += 1
            place = f"{origin}: line {reader.line_num}"
            if len(cells) != len(header):
                raise InputFileError(f"{place}: {len(cells)} cells, expected {len(header)} as in the header")
            row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
            if status and row[status].lower() not in _GOOD:
                left_out[f"{status} {row[status] or 'empty'}"] += 1
            elif not row[column]:
                left_out[f"no {column}"] += 1
            else:
                rows.append(MeasuredRow(number, place, row, seconds(row[column], unit, place, column)))
    except csv.Error as error:
        raise InputFileError(f"{origin}: line {reader.line_num}: {error} (expected a row of a CSV table)") from None
    return Table(origin, tuple(header), tuple(rows), parameters_of(header), column, dict(left_out))


def _check_header(header: list[str], origin: str) -> None:
    if len(header) < 2:
        raise InputFileError(f"{origin}: line 1: expected the names of several columns, separated by commas")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise InputFileError(f"{origin}: line 1: column {twice[0]!r} occurs twice")


# Tables whose rows name their kernel and launch, as written by `drywarp measure`.

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
        ("cluster", recipe.cluster),
        ("config", recipe.config),
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


def _launch(row: MeasuredRow, folder: Path, recipe: Recipe, hashes: dict[Path, str]) -> dict[str, Any]:
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
        "shared": None if said.shared is None else int(said.shared),
        "defines": dict(said.defines),
        "includes": tuple(recipe.includes),
        "std": recipe.std or said.std,
        "compiler_options": (*said.compiler_options, *recipe.compiler_options),
    }
    if said.cluster:
        launch["cluster"] = said.cluster
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
