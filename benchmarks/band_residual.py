"""The factor between prediction and measurement that the other parts of the confidence bands leave.

    python benchmarks/band_residual.py rows.csv [--of even|odd]

`rows.csv` is an output of `drywarp validate` with the Pipeline model believed. Of every row (of one half alone with
`--of`, as `--split` halves tables) it takes what the band at the assumed clock would need besides its other parts to
hold the measured time, and prints the smallest factor that suffices for the bands' share of the rows: the
ceil(level · (n + 1))-th smallest, as split conformal prediction has it (Vovk et al. 2005; Lei et al. 2018, §2.2).
The figure stands in `src/drywarp/band/uncertainty.toml`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from drywarp.band.uncertainty import uncertainty
from drywarp.models.pipeline import Pipeline
from drywarp.rows.facts import CLOCK_HIGH, CLOCK_LOW
from drywarp.validation.choose_rows import half_of
from drywarp.validation.row import RowResult
from drywarp.validation.store import read_rows


def needed(row: RowResult, residual: float) -> float:
    """What the model's own part must be, on a logarithmic scale; `residual` is what the row's band already has."""
    time = row.times[Pipeline.name]
    off = math.log(row.measured_s / time)
    end = float(row.facts[CLOCK_HIGH if off > 0 else CLOCK_LOW])
    others = max(0.0, math.log(end / time) ** 2 - residual**2)
    return math.sqrt(max(0.0, off**2 - others))


def main(
    rows: Annotated[Path, typer.Argument(help="An output of drywarp validate.")],
    of: Annotated[str | None, typer.Option(help="Take this half of the rows alone.", metavar="even|odd")] = None,
) -> None:
    """Print how many rows there are and the factor."""
    known = uncertainty()
    found = [row for row in read_rows(rows)[2] if row.ok and CLOCK_LOW in row.facts]
    logs = sorted(needed(row, known.model.residual.log) for row in found if of is None or half_of(row.row) == of)
    place = math.ceil(known.level * (len(logs) + 1))
    if place > len(logs):
        raise typer.BadParameter(f"{len(logs)} rows are too few for a level of {known.level:g}")
    print(f"{len(logs)} rows: {math.exp(logs[place - 1]):.4f} holds {known.level:.0%}, all {math.exp(logs[-1]):.4f}")


if __name__ == "__main__":
    typer.run(main)
