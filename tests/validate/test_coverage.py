"""How often bands hold the measured time: on rows made up, in files, and in whole runs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import drywarp
from drywarp.experiments.rows import BAND
from drywarp.experiments.validate import report_again
from drywarp.experiments.validate.accuracy import accuracy_of
from drywarp.experiments.validate.groups import Coverage, coverage_of
from drywarp.experiments.validate.row import FAILED, RowResult

from .tables import LAUNCH, SAXPY, saxpy_table


def row(number: int, measured: float, ends: tuple[float, ...] | None, status: str = "ok") -> RowResult:
    facts: dict[str, float | str] = {} if ends is None else dict(zip(BAND, (0.9, *ends), strict=True))
    return RowResult(
        number, "a100", "x", measured, {}, status=status, facts=facts, times={"pipeline": 1.0, "volkov": 1.0}
    )


ROWS = [
    row(1, 1.0, (0.5, 2.0, 0.8, 1.25)),
    row(2, 1.9, (0.5, 2.0, 0.8, 1.25)),
    row(3, 2.1, (0.5, 2.0, 0.8, 1.25)),
    row(4, 0.4, (0.5, 1.5, 0.8, 1.2)),
    row(5, 0.5, (0.5, 2.0, 0.8, 1.25)),
    row(6, 9.0, None),
    row(7, 9.0, (0.5, 2.0, 0.8, 1.25), status=FAILED),
]


def test_coverage_of_rows_made_up() -> None:
    assert coverage_of(ROWS) == Coverage(
        level=0.9,
        rows=5,
        held=3 / 5,  # the end itself is within
        width=4.0,
        held_at_clock=1 / 5,
        width_at_clock=pytest.approx(1.25 / 0.8),
        below=1,
        above=1,
    )


def test_no_band_no_coverage_and_only_the_pipeline_has_one() -> None:
    assert coverage_of([ROWS[5], ROWS[6]]) is None
    assert coverage_of([]) is None
    assert accuracy_of(ROWS, "pipeline").band == coverage_of(ROWS)
    assert accuracy_of(ROWS, "volkov").band is None


def test_a_run_says_its_coverage_and_its_rows_their_bands(tmp_path: Path) -> None:
    table, out = saxpy_table(tmp_path), tmp_path / "rows.csv"
    report = drywarp.validate(table, kernel=SAXPY, gpu="a100", models=["pipeline"], out=out, jobs=1, rows=2, **LAUNCH)
    band = report.best.band
    assert band is not None
    assert band.rows == 2
    assert 1 < band.width_at_clock <= band.width
    assert report_again(out).best.band == band
    with out.open() as file:
        for cells in csv.DictReader(file):
            low, high, inner_low, inner_high = (float(cells[name]) for name in BAND[1:])
            assert low <= inner_low < float(cells["pipeline_s"]) < inner_high <= high


def test_a_file_of_an_earlier_version_has_no_bands_but_is_read(tmp_path: Path) -> None:
    table, out = saxpy_table(tmp_path), tmp_path / "rows.csv"
    drywarp.validate(table, kernel=SAXPY, gpu="a100", models=["pipeline"], out=out, jobs=1, rows=2, **LAUNCH)
    with out.open() as file:
        kept = [{k: v for k, v in cells.items() if k not in BAND} for cells in csv.DictReader(file)]
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(kept[0]))
        writer.writeheader()
        writer.writerows(kept)
    report = report_again(out)
    assert report.best.rows == 2
    assert report.best.band is None
