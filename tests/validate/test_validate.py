"""Whole runs: reports, rows in files, runs that are killed and go on, rows that fail, two GPUs, the command line."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from functools import cache
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

import drywarp
from drywarp.cli.main import run
from drywarp.errors import DrywarpError
from drywarp.experiments.rows import Settings
from drywarp.experiments.validate import report_again
from drywarp.experiments.validate.accuracy import ValidationReport
from drywarp.experiments.validate.compare import RowStore, compare_rows, read_rows
from drywarp.experiments.validate.row import RowResult
from tests.counting import no_hang
from tests.rows.worker_hooks import hang_at

from .tables import FLAGS, LAUNCH, SAXPY, saxpy_table

SCHEMA = json.loads((files("drywarp") / "report" / "schema" / "validate.schema.json").read_text(encoding="utf-8"))
QUICK = ["volkov", "roofline"]
"""Models that take no time."""
HEAVY = """
__global__ void heavy(const float* a, float* b) {
  float v[96];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 96; k++) v[k] = a[i + k];
#pragma unroll 1
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int k = 0; k < 96; k++) v[k] = v[k] * v[(k + 1) % 96] + 1.0f;
  float s = 0;
#pragma unroll
  for (int k = 0; k < 96; k++) s += v[k];
  b[i] = s;
}
"""


@cache
def whole(folder: Path) -> tuple[Path, Path, ValidationReport]:
    table, out = saxpy_table(folder), folder / "rows.csv"
    return table, out, drywarp.validate(table, kernel=SAXPY, gpu="a100", models=QUICK, out=out, jobs=1, **LAUNCH)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, ValidationReport]:
    return whole(tmp_path_factory.mktemp("whole"))


def test_the_worst_rows_come_with_a_command(
    done: tuple[Path, Path, ValidationReport], capsys: pytest.CaptureFixture[str]
) -> None:
    table, out, report = done
    factors = {row.row: row.times["volkov"] / row.measured_s for row in report.rows}
    expected = sorted(factors, key=lambda number: -max(factors[number], 1 / factors[number]))
    assert [row.row for row in report.worst(3)] == expected[:3]
    assert [row["row"] for row in report.to_dict(2)["worst"]] == expected[:2]
    worst = report.worst(1)[0]
    program, *line = shlex.split(worst.command)
    assert program == "drywarp"
    assert run([*line, "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert alone["models"]["volkov"]["time_s"] == pytest.approx(worst.predicted_s)
    validate_line = ["validate", str(table), "--kernel", str(SAXPY), "--models", ",".join(QUICK), "--out", str(out)]
    assert run([*validate_line, *FLAGS.split(), "--worst", "2"]) == 0
    text = capsys.readouterr().out
    assert f"row {worst.row}: {worst.command}" in text
    assert len(re.findall(r"^row \d+: drywarp analyze", text, re.MULTILINE)) == 2
    # An output has no launches: the rows are named without a command.
    assert run(["validate", "--report", str(out)]) == 0
    text = capsys.readouterr().out
    assert "rows that volkov predicts worst" in text
    assert "drywarp analyze" not in text


def test_every_row_is_predicted(done: tuple[Path, Path, ValidationReport]) -> None:
    report = done[2]
    assert [row.row for row in report.rows] == [1, 2, 3, 4, 6, 7, 8, 9]
    assert all(row.ok for row in report.rows)
    assert report.left_out == {"status Failed": 1}
    expected = drywarp.analyze(
        SAXPY,
        gpu="a100",
        grid=512,
        block=128,
        args={"n": 65536, "a": 2.0, "x": "f32[65536]:random", "y": "f32[65536]:random"},
    )
    second = report.rows[1]
    assert second.times["volkov"] == pytest.approx(expected.predictions["volkov"].time_s)
    assert second.facts["registers"] == expected.resources.registers
    assert second.facts["warps_per_sm"] == expected.occupancy.warps_per_sm
    assert second.parameters == {"bx": "128", "n": "65536"}
    assert report.best.model == "volkov"
    assert set(report.best.by) >= {"limiter", "n"} - (set() if len(report.best.limiters) > 1 else {"limiter"})
    ratios = [row.times["volkov"] / row.measured_s for row in report.rows]
    assert report.of("volkov").mape == pytest.approx(sum(abs(r - 1) for r in ratios) / len(ratios))


def test_the_file_says_what_the_report_says(done: tuple[Path, Path, ValidationReport]) -> None:
    _, out, report = done
    again = report_again(out)
    assert [m.to_dict() for m in again.models] == [m.to_dict() for m in report.models]
    assert [row.times for row in again.rows] == [row.times for row in report.rows]
    with out.open(newline="") as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["ok"] * 8


def test_a_second_run_predicts_nothing_again(done: tuple[Path, Path, ValidationReport]) -> None:
    table, out, report = done
    before = out.read_bytes()
    told: list[RowResult] = []
    again = drywarp.validate(
        table, kernel=SAXPY, gpu="a100", models=QUICK, out=out, on_row=lambda row, at, of: told.append(row), **LAUNCH
    )
    assert not told
    assert out.read_bytes() == before
    assert [row.times for row in again.rows] == [row.times for row in report.rows]


def test_a_file_of_other_settings_is_refused(done: tuple[Path, Path, ValidationReport], tmp_path: Path) -> None:
    table, out, _ = done
    before = out.read_bytes()
    for wrong, models in ({"gpu": "h100"}, QUICK), ({"settings": Settings(warm_l2=True)}, QUICK), ({}, ["roofline"]):
        with pytest.raises(DrywarpError, match=r"rows\.csv: holds rows"):
            drywarp.validate(table, kernel=SAXPY, out=out, models=models, **{"gpu": "a100", **LAUNCH, **wrong})
    other = saxpy_table(tmp_path, ["64,65536,4.5,Ok"])
    with pytest.raises(DrywarpError, match=r"row 1 is not that of .*another table"):
        drywarp.validate(other, kernel=SAXPY, gpu="a100", out=out, models=QUICK, **LAUNCH)
    assert out.read_bytes() == before


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_rows_survive_a_torn_end(done: tuple[Path, Path, ValidationReport], tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    _, _, report = done
    path = tmp_path / f"rows.{suffix}"
    failed = RowResult(99, "a100", "x", 1.0, {"bx": "1", "n": "2"}, "failed", 'two "words", and\ta comma')
    with RowStore(path, ("bx", "n"), QUICK) as store:
        for row in (*report.rows[:3], failed):
            store.append(row)
    assert read_rows(path)[2] == [*report.rows[:3], failed]
    if suffix != "parquet":
        with path.open("ab") as file:
            file.write(b"7,a100,torn")
        assert len(read_rows(path)[2]) == 4
    with RowStore(path, ("bx", "n"), QUICK) as store:
        assert len(store.rows()) == 4
        store.append(report.rows[4])
        with pytest.raises(DrywarpError, match="another process"), RowStore(path, ("bx", "n"), QUICK):
            pass
    parameters, models, rows = read_rows(path)
    assert (parameters, models) == (("bx", "n"), tuple(QUICK))
    assert [row.row for row in rows] == [1, 2, 3, 99, 6]


def test_a_column_named_as_one_of_ours(tmp_path: Path) -> None:
    row = RowResult(
        1, "a100", "x", 1.0, {"registers": "5", "volkov_s": "b"}, facts={"registers": 9}, times={"volkov": 2.0}
    )
    path = tmp_path / "rows.csv"
    with RowStore(path, ("registers", "volkov_s"), ["volkov"]) as store:
        store.append(row)
    assert read_rows(path) == (("registers", "volkov_s"), ("volkov",), [row])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", "no column 'row'"),
        ("", "holds no rows"),
    ],
)
def test_files_that_are_no_outputs(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(DrywarpError, match=expected):
        report_again(path)
    with pytest.raises(DrywarpError, match=r"expected a name that ends in \.csv"):
        report_again(tmp_path / "rows.txt")
    with pytest.raises(DrywarpError, match="cannot be read"):
        report_again(tmp_path / "none.jsonl")


def children() -> set[int]:
    """The processes that this one has started and that are still there."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found


def rows_in(path: Path) -> list[int]:
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[1:-1]
    return [int(line.split(",")[0]) for line in lines]


def test_a_run_that_is_killed_goes_on(tmp_path: Path) -> None:
    rows = [f"{32 * (1 + n % 8)},{4096 * (1 + n // 8)},{3 + n / 10},Ok" for n in range(24)]
    table, out = saxpy_table(tmp_path, rows), tmp_path / "rows.csv"
    command = [sys.executable, "-m", "drywarp", "validate", str(table), "--kernel", str(SAXPY), "--out", str(out)]
    command += [*FLAGS.split(), "--models", ",".join(QUICK), "--jobs", "1", "--json"]
    # The run stands still at its fifth row, and is killed there.
    hanging = {**os.environ, **hang_at(tmp_path, 5)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=hanging)
    try:
        with no_hang():
            while len(rows_in(out)) < 4:
                time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = rows_in(out)
    assert len(before) == 4
    finished = subprocess.run(command, capture_output=True, text=True, timeout=900, env={**os.environ})
    assert finished.returncode == 0, finished.stderr
    after = rows_in(out)
    assert after[: len(before)] == before
    assert Counter(after) == Counter(range(1, 25))
    assert json.loads(finished.stdout)["rows"] == {"total": 24, "predicted": 24}


def test_rows_that_fail_keep_their_reasons(tmp_path: Path) -> None:
    # Blocks of 2,048 threads are no launch; a grid for n = 0 has no blocks.
    table = saxpy_table(tmp_path, ["128,65536,3.0,Ok", "2048,65536,3.0,Ok", "128,0,1.0,Ok"])
    report = drywarp.validate(table, kernel=SAXPY, gpu="a100", models=QUICK, jobs=1, **LAUNCH)
    assert [row.ok for row in report.rows] == [True, False, False]
    assert "2048" in report.rows[1].reason
    assert "grid" in report.rows[2].reason
    assert sum(report.failed.values()) == 2
    assert report.best.rows == 1


def test_a_row_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that would never end, one after the other: each is ended, and the next one has a process of its own."""
    for name, value in hang_at(tmp_path, 1).items():
        monkeypatch.setenv(name, value)
    table = saxpy_table(tmp_path, ["128,65536,3.0,Ok", "256,65536,3.0,Ok"])
    before = children()
    with no_hang():
        report = drywarp.validate(table, kernel=SAXPY, gpu="a100", models=QUICK, jobs=1, time_limit_s=0.01, **LAUNCH)
    assert [row.reason for row in report.rows] == ["time limit of 0.01 s"] * 2
    assert children() <= before
    assert report.best.rows == 0
    assert report.best.mape is None


def test_a_worker_that_dies_costs_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A site hook kills the worker at its first row, as a crash of the compiler would.
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os, pathlib, sys\n"
        "if 'drywarp.experiments.rows.worker' in ' '.join(sys.orig_argv):\n"
        "    mark = pathlib.Path(os.environ['MARK'])\n"
        "    if not mark.exists():\n"
        "        mark.touch()\n"
        "        os.abort()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    table = saxpy_table(tmp_path, ["128,65536,3.0,Ok", "256,65536,3.0,Ok"])
    report = drywarp.validate(table, kernel=SAXPY, gpu="a100", models=QUICK, jobs=1, **LAUNCH)
    assert sorted(row.reason for row in report.rows) == ["", "crashed with SIGABRT"]


@pytest.mark.exhaustive
def test_a_kernel_with_too_many_registers_is_capped(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("bx,time_us\n128,5\n1024,5\n")
    report = drywarp.validate(
        path, kernel=HEAVY, grid="4", block="bx", args={"a": "f32[8192]:random", "b": "f32[8192]"}, models=QUICK, jobs=1
    )
    small, large = report.rows
    assert small.facts["register_cap"] == 0
    assert small.facts["registers"] > 64
    assert large.facts["register_cap"] == 64
    assert large.facts["registers"] <= 64
    capped = drywarp.validate(
        path,
        kernel=HEAVY,
        grid="4",
        block="bx",
        args={"a": "f32[8192]:random", "b": "f32[8192]"},
        max_registers="40*(bx==128)",
        where="bx==128",
        models=QUICK,
        jobs=1,
    )
    assert capped.rows[0].facts["registers"] <= 40


def test_halves_and_samples(done: tuple[Path, Path, ValidationReport]) -> None:
    table, out, report = done
    even, odd = (report_again(out, split=half) for half in ("even", "odd"))
    assert {row.row for row in even.rows} | {row.row for row in odd.rows} == {row.row for row in report.rows}
    assert not {row.row for row in even.rows} & {row.row for row in odd.rows}
    assert even.aside == "even"
    few = drywarp.validate(table, kernel=SAXPY, gpu="a100", models=QUICK, out=out, rows=2, where="n==65536", **LAUNCH)
    assert [row.row for row in few.rows] == [1, 3]


def test_two_gpus(done: tuple[Path, Path, ValidationReport], tmp_path: Path) -> None:
    table, out, report = done
    faster = tmp_path / "h100.csv"
    other = drywarp.validate(table, kernel=SAXPY, gpu="h100", models=QUICK, out=faster, jobs=1, **LAUNCH)
    found = compare_rows(out, faster)
    assert (found.gpus, found.matched) == (("a100", "h100"), 8)
    # The times are the same in both tables: the measured ratio is 1, so that the error is the predicted one's.
    ratios = sorted(b.times["volkov"] / a.times["volkov"] - 1 for a, b in zip(report.rows, other.rows, strict=True))
    model = found.models[0]
    assert model.measured_median == 1
    assert model.mape == pytest.approx(sum(map(abs, ratios)) / 8)
    jsonschema.validate(found.to_dict(), SCHEMA)
    with RowStore(tmp_path / "none.csv", ("tile",), QUICK) as store:
        store.append(RowResult(1, "h100", "x", 1.0, {"tile": "1"}))
    with pytest.raises(DrywarpError, match="no parameter in common"):
        compare_rows(out, tmp_path / "none.csv")


def test_the_configurations_of_another_output(done: tuple[Path, Path, ValidationReport], tmp_path: Path) -> None:
    out = done[1]
    rows = ["512,262144,9.0,Ok", "96,65536,9.0,Ok", "64,65536,9.0,Ok"]
    table = saxpy_table(tmp_path, rows)
    found = drywarp.validate(table, kernel=SAXPY, gpu="h100", models=QUICK, jobs=1, like=out, **LAUNCH)
    assert [row.row for row in found.rows] == [1, 3]
    with pytest.raises(DrywarpError, match="no row has the parameters of a row of"):
        drywarp.validate(table, kernel=SAXPY, where="bx==96", like=out, **LAUNCH)


def test_a_clock_for_each_row(tmp_path: Path) -> None:
    table = saxpy_table(tmp_path, ["128,65536,3.0,Ok", "256,65536,3.0,Ok"])
    found = drywarp.validate(table, kernel=SAXPY, models=QUICK, jobs=1, clock="4*bx", **LAUNCH)
    assert [row.facts["clock_mhz"] for row in found.rows] == [512, 1024]
    expected = drywarp.analyze(
        SAXPY,
        grid=512,
        block=128,
        args={"n": 65536, "a": 2.0, "x": "f32[65536]:random", "y": "f32[65536]:random"},
        clock_mhz=512,
    )
    assert found.rows[0].times["volkov"] == pytest.approx(expected.predictions["volkov"].time_s)


def test_all_models_are_asked_unless_said(tmp_path: Path) -> None:
    table = saxpy_table(tmp_path, ["128,65536,3.0,Ok"])
    report = drywarp.validate(table, kernel=SAXPY, gpu="a100", jobs=1, **LAUNCH)
    assert [m.model for m in report.models][:3] == ["pipeline", "volkov", "roofline"]
    assert len(report.models) > 20
    silent = report.of("cuda_guide")
    assert silent.rows == 0
    assert silent.not_applicable
    jsonschema.validate(report.to_dict(), SCHEMA)


def test_the_command_line(
    done: tuple[Path, Path, ValidationReport], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out, report = done
    command = ["validate", str(table), "--kernel", str(SAXPY), *FLAGS.split(), "--models", "volkov,roofline"]
    plot = tmp_path / "plot.svg"
    pytest.importorskip("matplotlib", reason="figures are drawn with Matplotlib, the extra `plot`")
    assert run([*command, "--out", str(out), "--plot", str(plot)]) == 0
    text = capsys.readouterr().out
    assert "8 of 8 rows predicted" in text
    assert "excluded: 1 rows with status Failed" in text
    assert f"{report.best.mape:.1%}" in text
    counts = [f"{limiter} ({count})" for limiter, count in report.best.limiters.items()]
    texts = {"".join(text.itertext()) for text in ElementTree.parse(plot).iterfind(".//{*}text")}
    assert {*counts, "measured time"} <= texts
    assert run(["validate", str(out), "--report", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert found["models"][0]["mape"] == pytest.approx(report.best.mape)
    assert run(["validate", str(out), str(out), "--compare", "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), SCHEMA)
    assert run(["validate", str(out), str(out), "--compare"]) == 0
    assert "8 configurations" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", "expected --kernel FILE"),
        ("--kernel none.cu", "none.cu: no such file"),
        ("--kernel {saxpy} --grid m --block 32", "line 2: --grid 'm': unknown name 'm'; known: bx, n, median_us"),
        ("--kernel {saxpy} --grid 1 --block 32 --macros tile", "no column 'tile'"),
        ("--kernel {saxpy} --time speed:ms", "no column 'speed'"),
        ("--kernel {saxpy} --where bx>5000", "matches none of"),
        ("--kernel {saxpy} --where bx>", "expected a sum"),
        ("--kernel {saxpy} --models pipelined", "unknown model 'pipelined'"),
        ("--kernel {saxpy} --split middle", "--split middle: expected one of even, odd"),
        ("--kernel {saxpy} --gpu a1000", "a1000"),
        ("--kernel {saxpy} --out rows.txt", "expected a name that ends in .csv"),
        ("--kernel {saxpy} --plot rows.pdf", "expected a file name that ends in .svg or .png"),
        ("--kernel {saxpy} --report", "cannot be combined with --kernel"),
        ("--kernel {saxpy} --time-limit 0", "--time-limit 0: expected a positive number"),
        ("--kernel {saxpy} --rows 0", "--rows"),
        ("--compare", "expected two outputs"),
    ],
)
def test_bad_command_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: str, expected: str) -> None:
    table = saxpy_table(tmp_path)
    assert run(["validate", str(table), *flags.format(saxpy=SAXPY).split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert expected in captured.err
