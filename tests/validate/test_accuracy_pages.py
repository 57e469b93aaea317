"""The accuracy pages: they say what the kept rows say, and nothing moves unnoticed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.accuracy import targets
from benchmarks.accuracy.__main__ import PAGES, program
from benchmarks.accuracy.budget import CAUSES, shares
from benchmarks.accuracy.drift import COLUMNS, MOST, frozen, moved
from benchmarks.accuracy.pages import pages, parts, pearson
from benchmarks.accuracy.rows import HERE, PRIMARY, Row, of_output, read, sets
from typer.testing import CliRunner


def test_pages_are_up_to_date() -> None:
    written = dict(pages())
    assert {path.name for path in PAGES.iterdir()} == set(written)
    for name, text in written.items():
        assert (PAGES / name).read_text(encoding="utf-8") == text, f"{name}: run python -m benchmarks.accuracy pages"


def test_the_table_of_halves_is_that_of_the_rows() -> None:
    told = (PAGES.parent / "accuracy.md").read_text(encoding="utf-8").splitlines()
    for line in targets.halves(read("hecbench_rtx3080")):
        assert line in told, f"docs/accuracy.md lacks {line}"


def test_targets_follow_from_rows() -> None:
    """Two of four rows are off by more than three times, one of them with a note; half of the bands hold."""
    some = [row(r, band=ends, name=n) for r, n, ends in (
        (1.0, "fhd: a", (90.0, 360.0)), (4.0, "fhd: b", (200.0, 400.0)), (5.0, "fhd: c", (50.0, 200.0)),
        (0.9, "fhd: d", (101.0, 404.0)),
    )]  # fmt: skip
    some[2] = replace(some[2], doubtful=True)
    some[3] = row(0.9, measured=200.0, band=(202.0, 808.0), name="fhd: d")
    rows = {one.name: read(one.name) for one in sets()}
    found = targets.page({**rows, "hecbench_rtx3080": [replace(one, half="even", dram_ratio=1.5) for one in some]})
    assert "| off by more than 3 times without a note | 1 of 4 | none | fhd: b: each warp reads" in found
    assert "| rows inside the 90 % band / its width | 50 % / 4.00 |" in found
    assert "| DRAM bytes, median error | 50.0 % | 5 % |" in found
    assert targets.band(some) == (0.5, 4.0)


def test_every_kept_row_belongs_to_a_set_and_has_a_prediction() -> None:
    kept = {path.stem for path in (HERE / "rows").glob("*.csv")} - {"frozen", "counts"}
    assert kept == {one.name for one in sets()}
    for one in sets():
        rows = read(one.name)
        assert len({row.name for row in rows}) == len(rows)
        assert all(row.measured > 0 and row.times[PRIMARY] > 0 for row in rows)
        for key in one.outliers:
            assert any(key in row.name for row in rows), f"{one.name}: no row is called {key}"
        assert sum(len(some) for some in parts(one, rows).values()) == len(rows)


def row(ratio: float, limiter: str = "lsu", measured: float = 100.0, name: str = "x", **more: object) -> Row:
    return Row(name, "odd", measured, {PRIMARY: ratio * measured}, limiter, **more)  # type: ignore[arg-type]


def test_the_budget_gives_each_row_to_its_first_cause() -> None:
    """Squared logarithms of 2, 4, 2, 2, 2: 1, 4, 1, 1, 1 of 8. A count that is off the other way explains nothing."""
    rows = [
        row(2.0, measured=10.0, dram_ratio=3.0),
        row(0.25, doubtful=True, operations_ratio=0.5),
        row(2.0, operations_ratio=1.5),
        row(0.5, "dram", dram_ratio=0.5, operations_ratio=1.5),
        row(0.5, "latency", dram_ratio=0.5),
    ]
    found = {CAUSES.index((name, next(h for n, h in CAUSES if n == name))): (n, s) for name, n, s in shares(rows) if n}
    assert found == {
        0: (1, pytest.approx(4 / 8)),
        1: (1, pytest.approx(1 / 8)),
        2: (1, pytest.approx(1 / 8)),
        3: (1, pytest.approx(1 / 8)),
        7: (1, pytest.approx(1 / 8)),
    }
    assert sum(share for _, _, share in shares([row(1.0)])) == 0


def test_pearson_is_that_of_the_logarithms() -> None:
    assert pearson([1, 10, 100], [2, 20, 200]) == pytest.approx(1)
    assert pearson([1, 10, 100], [4, 2, 1]) == pytest.approx(-1)
    assert pearson([1, 1, 1], [1, 2, 3]) is None


def test_what_has_moved_is_named() -> None:
    def predicted(kernel: str, time: float) -> dict[str, str]:
        return dict(zip(COLUMNS, (kernel, "TILE=8", "a100", f"{time}", "lsu"), strict=True))

    before = [predicted("still", 10.0), predicted("slower", 10.0), predicted("gone", 1.0)]
    now = [predicted("still", 10 * (1 + 0.9 * MOST)), predicted("slower", 11.0), predicted("new", 1.0)]
    assert list(moved(before, now)) == [
        "slower TILE=8 a100: 10.0 to 11.0 µs (+10.0%), limited by lsu",
        "gone TILE=8 a100: gone",
        "new TILE=8 a100: new",
    ]
    assert len(frozen()) > 80
    assert all(math.isfinite(float(one["time_us"])) for one in frozen())


def test_rows_have_the_names_of_their_table(tmp_path: Path) -> None:
    output, table = tmp_path / "rows.csv", tmp_path / "times.csv"
    output.write_text(
        "row,status,measured_s,wall_s,clock_mhz,band_at_clock_low_s,band_at_clock_high_s,pipeline_s,pipeline_limiter\n"
        "2,ok,2e-6,1,1000,1e-6,4e-6,3e-6,lsu\n1,ok,1e-6,1,1000,,,1e-6,dram\n3,failed,1e-6,1,1000,,,,\n"
    )
    table.write_text("case,time_us\nfirst,1\nsecond,2\nthird,1\n")
    assert [row.name for row in of_output(output)] == ["1", "2"]
    named = of_output(output, table)
    assert [(row.name, row.half, row.measured) for row in named] == [("first", "odd", 1.0), ("second", "even", 2.0)]
    with pytest.raises(ValueError, match=r"rows.csv: expected a column case"):
        of_output(output, output)


def test_another_file_is_refused_in_one_line(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="neither an output of drywarp validate nor"):
        of_output(other)
    for line in (["keep", "gemm_a100", str(other)], ["keep", "none", str(other)]):
        found = CliRunner().invoke(program, line)
        assert found.exit_code == 2
