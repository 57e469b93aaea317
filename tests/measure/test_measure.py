"""`drywarp measure` from the suite to the papers' tables: on a simulated GPU, and on a card that is stood in for."""

from __future__ import annotations

import csv
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from drywarp.cli.main import run as main
from drywarp.errors import InputFileError, UsageError
from drywarp.experiments.device import Card, DeviceError
from drywarp.experiments.device.driver import Driver
from drywarp.experiments.measure import Measured, measure
from drywarp.experiments.measure.configuration import Occupied, configurations, occupancies, read_suite
from drywarp.experiments.measure.on_card import CardRunner, Counters, configuration_of
from drywarp.experiments.measure.row import COUNTERS
from drywarp.experiments.measure.simulated import SimulatedRunner
from drywarp.experiments.rows import every_model
from drywarp.experiments.validate import validate
from drywarp.models import get_model

from ..device.fake_driver import LAUNCH_MS, FakeDriver, fake_nvml

SUITE = Path(__file__).parents[2] / "suite"
FEW = ["lud_internal", "time_step"]


def simulated(out: Path, only: list[str] = FEW, seed: int = 0, points: int = 4, **more: Any) -> Measured:
    runner = SimulatedRunner("a100", 7, seed, whole=True)
    return measure(SUITE, out, runner, only=only, small=True, points=points, **more)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("measured") / "measured.csv"
    simulated(out)
    return out


def cells(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


# From the suite to the papers' tables, simulated ---------------------------------------------------------------------


def test_every_row_has_its_occupancy_its_time_and_outputs_that_are_numpys(table: Path) -> None:
    rows = cells(table)
    assert {row["kernel"] for row in rows} == set(FEW)
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["simulated"] for row in rows} == {"1"}
    for row in rows:
        assert float(row["median_us"]) > 0
        assert float(row["off_by"]) <= 1e-5
        assert float(row["clock_mhz"]) == 1410
        assert 0 < float(row["spread"]) < 0.06
    for variant in {(row["kernel"], row["variant"]) for row in rows}:
        curve = [int(row["blocks_per_sm"]) for row in rows if (row["kernel"], row["variant"]) == variant]
        assert len(curve) >= min(3, curve[0]), variant
        assert curve == sorted(curve, reverse=True)
        assert curve[-1] == 1


@pytest.mark.exhaustive
def test_one_command_validates_all_kernels_with_every_model(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(table), "--gpu", "a100", "--jobs", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"]["predicted"] == report["rows"]["total"] == len(cells(table))
    assert [kernel["kernel"] for kernel in report["kernels"]] == FEW
    assert [model["model"] for model in report["models"]] == list(every_model())
    for kernel in report["kernels"]:
        assert kernel["curves"] == 3
        assert set(kernel["models"]) == set(every_model())
        # What was measured is this model's own time, with noise of which the median of seven samples has a half left.
        assert kernel["models"]["pipeline"]["mape"] < 0.01
        assert kernel["models"]["pipeline"]["mape_shape"] < 0.01
        assert kernel["models"]["volkov"]["mape"] > kernel["models"]["pipeline"]["mape"]


@pytest.mark.exhaustive
def test_the_tables_of_the_papers_are_printed(table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    given = ["validate", str(table), "--jobs", "1", "--models", "pipeline,volkov", "--out", str(out)]
    assert main(given) == 0
    text = capsys.readouterr().out
    assert "MAPE / shape, %" in text
    assert "\naverage " in text
    # And again from what was predicted, without the table.
    assert main(["validate", str(out), "--report"]) == 0
    assert "MAPE / shape, %" in capsys.readouterr().out
    assert main(given) == 0


def test_the_figures_of_a_kernel_are_those_of_the_paper(table: Path) -> None:
    """MAPE of the performance per curve, and the curves' mean."""
    report = validate(table, models=["volkov"], jobs=1, where="kernel=='time_step'")
    curves: dict[str, list[float]] = {}
    for row in report.rows:
        curves.setdefault(row.parameters["variant"], []).append(abs(row.measured_s / row.times["volkov"] - 1))
    means = [sum(errors) / len(errors) for errors in curves.values()]
    assert report.kernels[0].models["volkov"].mape == pytest.approx(sum(means) / len(means))


def test_the_clock_is_the_one_that_was_read_unless_another_is_named(table: Path, tmp_path: Path) -> None:
    rows = cells(table)
    slow = tmp_path / "slow.csv"
    with slow.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerow(rows[0] | {"clock_mhz": "705", "file": os.path.relpath(SUITE / "lud_internal.cu", tmp_path)})
    half = validate(slow, models=["pipeline"], jobs=1).rows[0]
    whole = validate(slow, models=["pipeline"], jobs=1, clock=1410).rows[0]
    assert (half.facts["clock_mhz"], whole.facts["clock_mhz"]) == (705, 1410)
    assert half.times["pipeline"] > whole.times["pipeline"]


def test_a_run_goes_on_where_it_was_stopped(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "again.csv"
    lines = table.read_bytes().splitlines(keepends=True)
    # Killed in the middle of the sixth row.
    torn = b"".join(lines[:6]) + lines[6][:40]
    out.write_bytes(torn)
    rows = cells(table)
    moved = [row | {"file": os.path.relpath(SUITE / Path(row["file"]).name, tmp_path)} for row in rows]
    found = simulated(out)
    assert found.before == 5
    assert len(found.rows) == len(rows)
    assert [row | {"file": ""} for row in cells(out)] == [row | {"file": ""} for row in moved]
    assert simulated(out).before == len(rows)


def test_the_seed_is_the_noise(table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    simulated(other, ["time_step"], seed=1)
    first = {row["launch"]: float(row["median_us"]) for row in cells(table)}
    ratios = [float(row["median_us"]) / first[row["launch"]] for row in cells(other)]
    assert all(ratio != 1 for ratio in ratios)
    assert all(abs(ratio - 1) < 0.05 for ratio in ratios)


# On a card -----------------------------------------------------------------------------------------------------------


def on_card(out: Path, driver: FakeDriver, only: list[str] = FEW, **more: Any) -> Measured:
    with Card(Driver(driver), nvml=fake_nvml()) as card:
        return measure(SUITE, out, CardRunner(card, 5), only=only, small=True, points=3, **more)


@pytest.mark.exhaustive
def test_a_card_runs_the_same_table(tmp_path: Path) -> None:
    out, driver = tmp_path / "card.csv", FakeDriver()
    found = on_card(out, driver)
    assert found.count("ok") == len(found.rows) == len(cells(out))
    for row in found.rows:
        assert row.device == "NVIDIA H100 80GB HBM3"
        assert row.driver == "580.65.06, CUDA 13.0"
        assert (row.clock_mhz, row.memory_clock_mhz, row.temperature_c, row.power_w) == (1620, 2619, 54, None)
        assert row.median_us == pytest.approx(LAUNCH_MS * 1e3)
        # Samples of two milliseconds at least.
        assert row.launches * LAUNCH_MS >= 2
        assert not row.simulated
    assert {(row.dynamic_shared, row.blocks_per_sm) for row in found.rows if row.variant == "BLOCK=192"} == {
        (0, 10), (32512, 6), (115968, 1),
    }  # fmt: skip
    assert not driver.held
    # As many blocks as drywarp's own calculator says, so that validate predicts the occupancy that was measured.
    report = validate(out, gpu="h100", models=["pipeline"], jobs=1, rows=4)
    by_number = dict(enumerate(found.rows, 1))
    for predicted in report.rows:
        assert predicted.ok, predicted.reason
        assert predicted.facts["warps_per_sm"] == by_number[predicted.row].resident_warps
        assert predicted.facts["clock_mhz"] == 1620


@pytest.mark.exhaustive
def test_a_wrong_output_is_a_row_that_validate_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "wrong.csv"
    found = on_card(out, FakeDriver(broken=True), ["time_step"])
    assert {row.status for row in found.rows} == {"wrong output"}
    assert "variables is off by" in found.rows[0].reason
    assert main(["validate", str(out), "--gpu", "h100"]) == 2
    assert "no row with a time (rows left out: 9 with status wrong output)" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_a_kernel_for_which_memory_lacks_fails_and_the_others_go_on(tmp_path: Path) -> None:
    found = on_card(tmp_path / "short.csv", FakeDriver(memory=70_000), ["nw_kernel1", "time_step"])
    assert {row.kernel for row in found.rows if row.status == "failed"} == {"nw_kernel1"}
    assert {row.kernel for row in found.rows if row.ok} == {"time_step"}


def test_a_card_that_fails_ends_the_run_and_keeps_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, driver = tmp_path / "broken.csv", FakeDriver()
    done = [0]
    good = driver.cuCtxSynchronize

    def wait() -> tuple[int]:
        done[0] += 1
        return (719,) if done[0] == 3 else good()

    driver.cuCtxSynchronize = wait  # type: ignore[method-assign]
    with pytest.raises(DeviceError, match=r"lud_internal .*cuCtxSynchronize: FAILED; rows so far are in .*broken\.csv"):
        on_card(out, driver)
    assert len(cells(out)) == 2


def test_counters_come_from_ncu_which_is_told_to_leave_clocks_alone(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, "print('\"ID\",\"Kernel Name\",\"smsp__inst_executed.sum\",\"dram__sectors_read.sum\"');"
                   "print('\"\",\"\",\"inst\",\"sector\"'); print('\"0\",\"time_step\",\"1234\",\"77\"')")  # fmt: skip
    counters = Counters(str(ncu), small=True)
    found = on_card(tmp_path / "counted.csv", FakeDriver(), ["time_step"], profile=counters)
    assert counters.note == ""
    profiled = [row for row in found.rows if row.counters]
    # Once for each block size, at its highest occupancy.
    assert [row.variant for row in profiled] == ["BLOCK=192", "BLOCK=96", "BLOCK=384"]
    assert profiled[0].counters == {COUNTERS[0]: 1234, "dram__sectors_read.sum": 77}
    asked = json.loads((tmp_path / "asked.json").read_text())
    assert asked[asked.index("--clock-control") + 1] == "none"
    assert asked[asked.index("--cache-control") + 1] == "none"
    assert configuration_of(json.loads(asked[-1])).variant == "BLOCK=384"


def test_counters_that_may_not_be_read_are_said_once(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, "print('==ERROR== ERR_NVGPUCTRPERM - no permission'); sys.exit(1)")
    counters = Counters(str(ncu), small=True)
    chosen = configurations(next(k for k in read_suite(SUITE) if k.entry.name == "time_step"), small=True)[0]
    assert counters(chosen, Occupied(0, 1)) == {}
    assert "ERR_NVGPUCTRPERM" in counters.note
    (tmp_path / "asked.json").unlink()
    assert counters(chosen, Occupied(0, 1)) == {}
    assert not (tmp_path / "asked.json").exists()


def fake_ncu(folder: Path, body: str) -> Path:
    ncu = folder / "ncu"
    asked = folder / "asked.json"
    ncu.write_text(
        f"#!{sys.executable}\nimport json, sys\njson.dump(sys.argv[1:], open({str(asked)!r}, 'w'))\n{body}\n"
    )
    ncu.chmod(ncu.stat().st_mode | stat.S_IEXEC)
    return ncu


# Occupancies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [1, 2, 5, 8, 40])
def test_occupancies_fall_from_the_highest_to_one_block(points: int) -> None:
    def blocks(dynamic: int) -> int:
        return min(16, 100_000 // (dynamic + 1024))

    found = occupancies(blocks, 0, 99_000 - 1024, points)
    assert len(found) == min(points, 16)
    assert found[0] == Occupied(0, 16)
    assert points == 1 or found[-1].blocks == 1
    for step in found[1:]:
        assert blocks(step.dynamic_shared) == step.blocks
        # The least that does.
        assert blocks(step.dynamic_shared - 256) > step.blocks


def test_occupancies_that_cannot_be_reached_are_left_out() -> None:
    # At most 48 KiB of a hundred: two blocks always fit.
    found = occupancies(lambda dynamic: min(4, 100_000 // max(dynamic, 1)), 0, 49_152, 8)
    assert [step.blocks for step in found] == [4, 3, 2]
    assert occupancies(lambda dynamic: 0, 0, 49_152, 8) == []
    assert [s.blocks for s in occupancies(lambda dynamic: 1, 0, 0, 8)] == [1]


# Bad input -----------------------------------------------------------------------------------------------------------


def test_without_a_gpu_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    out = tmp_path / "m.csv"
    assert main(["measure", str(SUITE), "-o", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "no GPU can be used" in said
    assert not out.exists()


ONE = '[[kernel]]\nname = "a"\nfile = "a.cu"\ngrid = "1"\nblock = "32"\nreference = "r.py:f"\nargs = {}\n'


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, r"holds no TOML file that names kernels"),
        ({"a.toml": "kernel = 3"}, r"a\.toml: Expected `array`"),
        ({"a.toml": "[[kernel]"}, r"a\.toml: .*line 1"),
        ({"a.toml": ONE + 'gird = "2"\n'}, r"a\.toml: .*unknown field `gird`"),
        ({"a.toml": ONE}, r"kernel 'a': .*a\.cu: no such file"),
        ({"a.toml": ONE + ONE, "a.cu": ""}, r"kernel 'a' is already defined in .*a\.toml"),
        ({"a.toml": ONE.replace('"1"', '"n+1"'), "a.cu": ""}, r"a\.toml: kernel 'a': grid 'n\+1'"),
        ({"a.toml": ONE.replace('"32"', '"0"'), "a.cu": ""}, r"a\.toml: kernel 'a': block '0'"),
        ({"a.toml": ONE, "a.cu": "__global__ void a() {}"}, r"reference 'r\.py:f': .*r\.py: no such Python file"),
        ({"a.toml": ONE, "a.cu": "__global__ void a() {}", "r.py": "f = 1"}, r"r\.py has no function 'f'"),
        ({"a.toml": ONE, "a.cu": "__global__ void a() {}", "r.py": "1/0"}, r"r\.py: ZeroDivisionError"),
        (
            {"a.toml": ONE, "a.cu": "__global__ void a() {}", "r.py": "def f(given): return {'x': 1}"},
            r"its reference returns 'x', which is not a buffer of the kernel",
        ),
    ],
)
def test_a_suite_that_cannot_be_used_says_where_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], reason: str
) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    for name, text in files.items():
        (suite / name).write_text(text)
    with pytest.raises(InputFileError, match=reason):
        measure(suite, tmp_path / "m.csv", SimulatedRunner("a100", 3, whole=True))
    assert main(["measure", str(suite), "-o", str(tmp_path / "m.csv"), "--simulated", "a100", "--small"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_kernel_that_does_not_compile_is_a_row_that_failed(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(ONE)
    (tmp_path / "a.cu").write_text("__global__ void a() { nothing(); }")
    (tmp_path / "r.py").write_text("def f(given): return {}")
    found = measure(tmp_path, tmp_path / "m.csv", SimulatedRunner("a100", 3))
    assert [row.status for row in found.rows] == ["failed"]
    assert "nothing" in found.rows[0].reason
    # It is not tried again, and nothing is said twice.
    assert len(measure(tmp_path, tmp_path / "m.csv", SimulatedRunner("a100", 3)).rows) == 1


def test_a_kernel_with_textures_is_a_row_that_failed(tmp_path: Path) -> None:
    args = 'args = { t = "texture:f32[64]" }'
    (tmp_path / "a.toml").write_text(ONE.replace("args = {}", args))
    (tmp_path / "a.cu").write_text("__global__ void a(cudaTextureObject_t t) {}")
    (tmp_path / "r.py").write_text("def f(given): return {}")
    found = measure(tmp_path, tmp_path / "m.csv", SimulatedRunner("a100", 3))
    assert [(row.status, row.reason) for row in found.rows] == [
        ("failed", "a: argument t: only kernels with buffers and plain values can be measured")
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: "kernel,median_us\nsaxpy,3\n", r"line 2: no column .group. \(expected rows that"),
        (lambda text: text.replace(",ok,", ",", 1), r"line 2: 38 cells, expected 39"),
        (lambda text: text.replace(",256,0,", ",256,none,", 1), r"line \d+: dynamic_shared is .none., expected a"),
        (lambda text: text.replace("a100 (simulated)", "h100 (simulated)"), r"holds rows of h100 \(simulated\)"),
    ],
)  # fmt: skip
def test_a_table_that_is_not_this_runs_is_refused(table: Path, tmp_path: Path, change: Any, reason: str) -> None:
    out = tmp_path / "m.csv"
    before = change(table.read_text())
    assert before != table.read_text()
    out.write_text(before)
    with pytest.raises(InputFileError, match=reason):
        simulated(out)
    assert out.read_text() == before


def test_a_source_that_has_changed_since_is_refused_by_both(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.csv"
    old = cells(table)[0]["source_hash"]
    text = table.read_text().replace(old, "0123456789ab")
    out.write_text(text.replace("../" * 20, ""))
    with pytest.raises(InputFileError, match=r"kernel 'lud_internal' was measured with a different version"):
        simulated(out)
    with pytest.raises(InputFileError, match=r"line 2: .*lud_internal\.cu differs from the source that was measured"):
        validate(out, kernel=table.parent, models=["pipeline"])


def test_what_validate_cannot_use_of_a_described_table(table: Path, tmp_path: Path) -> None:
    moved = tmp_path / "far" / "m.csv"
    moved.parent.mkdir()
    moved.write_text(table.read_text().replace("suite/lud_internal.cu", "suite/gone.cu"))
    with pytest.raises(
        InputFileError, match=r"m\.csv: line 2: .*: no such file \(expected it relative to the table's folder"
    ):
        validate(moved)
    with pytest.raises(UsageError, match=r"--grid: not allowed, because each row of this table has its own launch"):
        validate(table, grid="1")
    with pytest.raises(UsageError, match=r"clock 'fast': expected MHz"):
        validate(table, clock="fast")
    broken = tmp_path / "broken.csv"
    broken.write_text(table.read_text().replace("--grid", "--gird"))
    with pytest.raises(InputFileError, match=r"line 2: column launch: unknown option '--gird'"):
        validate(broken, kernel=table.parent)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["--only", "nothing"], r"--only nothing: the suite has no such kernel; it has: .*Fan2"),
        (["-o", "m.json"], r"m\.json: expected a name that ends in \.csv"),
        (["--simulated", "abacus"], r"abacus"),
        (["--simulated", "mi300x"], r"mi300x cannot be simulated here"),
    ],
)
def test_wrong_usage_is_one_line(
    given: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["measure", str(SUITE), "-o", "m.csv", "--simulated", "a100", *given]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    import re

    assert re.search(reason, error), error


def test_the_command_says_what_came_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "m.csv"
    given = ["measure", str(SUITE), "-o", str(out), "--simulated", "t4", "--small", "--only", "kmeans_swap"]
    assert main([*given, "--occupancies", "2", "--samples", "3"]) == 0
    said = capsys.readouterr().out
    assert "6 rows of t4 (simulated)" in said
    assert "outputs compared with NumPy's in 6 rows; 0 wrong, 0 could not be measured" in said
    assert get_model("pipeline")
