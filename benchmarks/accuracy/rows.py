"""A set of rows: what was measured and predicted for one table, as it is kept in `rows/`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec

HERE = Path(__file__).parent
COLUMNS = ("name", "half", "measured_us", "low_us", "high_us", "limiter", "doubtful", "dram_ratio", "operations_ratio")
PRIMARY = "pipeline"


class Set(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """An entry of `sets.toml`. `command` is a shell's; `used` says what the set was used for, empty if for nothing.

    With `halves`, rows at odd positions were there for choices and those at even ones for reporting alone.
    """

    name: str
    title: str
    gpu: str
    clock: str
    source: str
    about: str
    command: str
    used: str = ""
    halves: bool = False
    outliers: dict[str, str] = {}


@dataclass(frozen=True)
class Row:
    """Times in µs; `times` by model, the Pipeline model's too; ratios are predicted over measured, None if unknown."""

    name: str
    half: str
    measured: float
    times: Mapping[str, float]
    limiter: str
    band: tuple[float, float] | None = None
    doubtful: bool = False
    dram_ratio: float | None = None
    operations_ratio: float | None = None

    @cached_property
    def ratio(self) -> float:
        """Predicted over measured, by the Pipeline model."""
        return self.times[PRIMARY] / self.measured


def sets() -> tuple[Set, ...]:
    """All sets, in the order of the pages."""
    return tuple(msgspec.toml.decode((HERE / "sets.toml").read_bytes(), type=dict[str, list[Set]])["set"])


def read(name: str) -> list[Row]:
    """The kept rows of a set, the names of its models in the heading."""
    with (HERE / "rows" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return [_row(row) for row in csv.DictReader(file)]


def _row(row: Mapping[str, str]) -> Row:
    def number(name: str) -> float | None:
        return float(row[name]) if row[name] else None

    low, high = number("low_us"), number("high_us")
    return Row(
        name=row["name"],
        half=row["half"],
        measured=float(row["measured_us"]),
        times={name: float(value) for name, value in row.items() if name not in COLUMNS and value},
        limiter=row["limiter"],
        band=None if low is None or high is None else (low, high),
        doubtful=row["doubtful"] == "1",
        dram_ratio=number("dram_ratio"),
        operations_ratio=number("operations_ratio"),
    )


def write(name: str, rows: Sequence[Row]) -> Path:
    """Keep rows, each number to four digits, which is more than any of them is worth."""
    models = sorted({model for row in rows for model in row.times}, key=lambda model: (model != PRIMARY, model))
    path = HERE / "rows" / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*COLUMNS, *models])
        for row in rows:
            low, high = row.band or (None, None)
            facts = (row.measured, low, high, row.limiter, int(row.doubtful), row.dram_ratio, row.operations_ratio)
            out.writerow([row.name, row.half, *map(_short, facts), *(_short(row.times.get(m)) for m in models)])
    return path


def _short(value: float | str | None) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def of_output(path: Path, names: Path | None = None) -> list[Row]:
    """Rows of `drywarp validate --out` (CSV) or of `benchmarks/hecbench.py --out`; those without a prediction left out.

    `names` is the table that was validated, whose column `case` names its rows.

    Raises ValueError for a file that is neither, and for a table without such a column.
    """
    rows = _read(path)
    if not rows or not {"position", "measured_s"} & set(rows[0]):
        raise ValueError(f"{path}: neither an output of drywarp validate nor one of benchmarks/hecbench.py")
    found = list(_of_hecbench(rows) if "position" in rows[0] else _of_validate(rows))
    table = _read(names) if names else []
    if table and "case" not in table[0]:
        raise ValueError(f"{names}: expected a column case")
    cases = {str(number): row["case"] for number, row in enumerate(table, start=1)}
    return [replace(row, name=cases.get(row.name, row.name)) for row in found]


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _of_hecbench(rows: Sequence[Mapping[str, str]]) -> Iterator[Row]:
    for row in sorted(rows, key=lambda row: int(row["position"])):
        if row["predicted_us"]:
            yield Row(
                name=f"{row['program'].removesuffix('-cuda')}: {row['kernel']}",
                half="odd" if int(row["position"]) % 2 else "even",
                measured=float(row["measured_us"]),
                times={PRIMARY: float(row["predicted_us"]), **json.loads(row["others_us"])},
                limiter=row["limiter"],
                band=(float(row["low_us"]), float(row["high_us"])) if row["low_us"] else None,
                doubtful=row["doubtful"] != "0",
                dram_ratio=float(row["dram_ratio"]) if row["dram_ratio"] else None,
                operations_ratio=float(row["operations_ratio"]) if row["operations_ratio"] else None,
            )


def _of_validate(rows: Sequence[Mapping[str, str]]) -> Iterator[Row]:
    columns = list(rows[0])
    parameters = columns[columns.index("wall_s") + 1 : columns.index("clock_mhz")]
    told = [name for name in parameters if len({row[name] for row in rows}) > 1]
    timed = [name.removesuffix("_limiter") for name in columns if name.endswith("_limiter")]
    for row in sorted(rows, key=lambda row: int(row["row"])):
        if row["status"] == "ok" and row[f"{PRIMARY}_s"]:
            low, high = row["band_at_clock_low_s"], row["band_at_clock_high_s"]
            yield Row(
                name=" ".join(f"{name}={row[name]}" for name in told) or row["row"],
                half="odd" if int(row["row"]) % 2 else "even",
                measured=float(row["measured_s"]) * 1e6,
                times={name: float(row[f"{name}_s"]) * 1e6 for name in timed if row[f"{name}_s"]},
                limiter=row[f"{PRIMARY}_limiter"],
                band=(float(low) * 1e6, float(high) * 1e6) if low and high else None,
            )
