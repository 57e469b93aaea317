"""Whole sweeps: rows, files, changed spaces, failures, and the command line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

import drywarp
from drywarp.cli.main import run
from drywarp.errors import DrywarpError
from drywarp.experiments.rows.row_file import RowFile, read_file
from drywarp.experiments.sweep.result import SweepResult, write_rows
from drywarp.experiments.sweep.row import SweepRow, form_of
from drywarp.experiments.sweep.space import read_space
from drywarp.experiments.validate.read import read_table

from .spaces import EXAMPLES, FILE, SAXPY, N, space

SCHEMA = json.loads((files("drywarp") / "report" / "schema" / "sweep.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> SweepResult:
    return drywarp.sweep(space(), jobs=0)


def test_every_configuration_is_predicted(found: SweepResult) -> None:
    assert [row.number for row in found.rows] == list(range(1, 13))
    assert all(row.ok for row in found.rows)
    assert found.rows[0].wall_s > 0
    row = next(r for r in found.rows if (r.gpu, r.parameters["bx"], r.parameters["n"]) == ("h100", 128, N))
    expected = drywarp.analyze(
        SAXPY, gpu="h100", grid=N // 128, block=128, args={"n": N, "a": 2.0, "x": f"f32[{N}]", "y": f"f32[{N}]"}
    )
    assert row.time_s == pytest.approx(expected.predictions["roofline"].time_s)
    assert row.limiter == expected.predictions["roofline"].limiter
    assert row.facts["registers"] == expected.resources.registers
    assert row.facts["warps_per_sm"] == expected.occupancy.warps_per_sm
    assert "compile_s" not in row.facts
    assert not any(name.startswith("band") for name in found.columns())


def test_the_best(found: SweepResult) -> None:
    best = found.best(2, gpu="a100", n=N)
    assert all((row.gpu, row.parameters["n"]) == ("a100", N) for row in best)
    assert [row.time_s for row in found.best(12)] == sorted(row.time_s or 0.0 for row in found.rows)
    assert len(found.prune(0.05).rows) == 4


def test_workers_and_this_process_agree(found: SweepResult, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    other = drywarp.sweep(
        space(), jobs=2, out=tmp_path / "rows.csv", on_row=lambda row, done, of: told.append((done, of))
    )
    assert other.rows == found.rows
    assert told == [(done, 12) for done in range(1, 13)]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_files_hold_what_was_found(found: SweepResult, tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    out = tmp_path / f"rows.{suffix}"
    first = drywarp.sweep(space(), jobs=0, out=out)
    whole = out.read_bytes()
    told: list[SweepRow] = []
    again = drywarp.sweep(space(), jobs=0, out=out, on_row=lambda row, done, of: told.append(row))
    assert first.rows == found.rows
    assert not told
    assert again.there == 12
    assert again.cells() == found.cells()
    assert out.read_bytes() == whole
    drywarp.sweep(space(), jobs=0, out=out, restart=True, on_row=lambda row, done, of: told.append(row))
    assert len(told) == 12
    assert out.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_whole_numbers_among_others_come_back_from_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    wanted = space(parameters={"bx": [64], "n": [N], "a": [0, 0.5, 1, 1.0]}, gpus=["a100"])
    wanted["args"]["a"] = "a"
    out = tmp_path / "rows.parquet"
    first = drywarp.sweep(wanted, jobs=0, out=out)
    notes: list[str] = []
    again = drywarp.sweep(wanted, jobs=0, out=out, on_note=notes.append)
    assert (again.there, notes) == (4, [])
    assert again.cells() == first.cells()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_rows_are_written_in_the_place_of_others(found: SweepResult, tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    form = form_of(found.parameters, found.models, found.band)
    path = tmp_path / f"kept.{suffix}"
    path.write_text("another file")
    write_rows(path, found, found.rows[:2])
    assert [row.number for row in read_file(path, form)[1]] == [1, 2]
    with RowFile(path, form) as file:
        file.append(found.rows[2])
        before = {item.name: item.read_bytes() for item in tmp_path.iterdir()}
        with pytest.raises(DrywarpError, match="another process is writing"):
            write_rows(path, found, found.rows)
        assert {item.name: item.read_bytes() for item in tmp_path.iterdir()} == before
    (tmp_path / f"folder.{suffix}").mkdir()
    with pytest.raises(DrywarpError, match="cannot be written"):
        write_rows(tmp_path / f"folder.{suffix}", found, found.rows)


def test_a_data_frame(found: SweepResult) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = found.to_pandas()
    assert list(frame.columns) == list(found.columns())
    assert len(frame) == 12
    assert frame["time_s"].min() == found.best()[0].time_s


def test_a_space_that_grows_and_shrinks(found: SweepResult, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    drywarp.sweep(space(parameters={"bx": [128, 512], "n": [N]}), jobs=0, out=out)
    notes: list[str] = []
    told: list[SweepRow] = []
    other = drywarp.sweep(space(), jobs=0, out=out, on_note=notes.append, on_row=lambda row, done, of: told.append(row))
    assert notes == [f"{out}: dropped 2 rows of configurations that are no longer in the space"]
    assert other.notes == tuple(notes)
    assert len(told) == 10
    assert other.cells() == found.cells()


def test_what_changed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "rows.csv"
    kernel = tmp_path / "k.cu"
    kernel.write_text(SAXPY.read_text())
    small = {"parameters": {"bx": [64], "n": [N]}, "kernel": str(kernel), "gpus": ["a100"]}
    drywarp.sweep(space(**small), jobs=0, out=out)
    before = out.read_bytes()

    def refused(expected: str, **changes: Any) -> None:
        with pytest.raises(DrywarpError, match=rf"rows.csv: row 1 was predicted from {expected} \(expected another"):
            drywarp.sweep(space(**{**small, **changes}), jobs=0, out=out)
        assert out.read_bytes() == before

    refused("another launch", grid="cdiv(n,bx)+1")
    refused("another options", warm_l2=True)
    kernel.write_text(SAXPY.read_text() + "\n")
    refused("another kernel")
    refused("another kernel and another launch", args={**space()["args"], "a": 3.0})
    kernel.write_text(SAXPY.read_text())
    machine = drywarp.load_gpu("a100")
    device = msgspec.structs.replace(machine.device, sm_count=107)
    smaller = replace(machine, sections={**machine.sections, "device": device})
    refused("another GPU file", gpus=[smaller])
    with monkeypatch.context() as patch:
        patch.setattr("drywarp.experiments.rows.identity.__version__", "9.9")
        refused(r"drywarp 0\.\d+\.\d+ \(this is 9\.9\)")
    changed = drywarp.sweep(space(**small, warm_l2=True), jobs=0, out=out, restart=True)
    assert len(changed.rows) == 1
    with pytest.raises(DrywarpError, match=r"holds rows with other columns|no column 'tile'"):
        drywarp.sweep(space(**{**small, "parameters": {"bx": [64], "n": [N], "tile": [1]}}), jobs=0, out=out)


def test_failed_configurations_are_rows(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    bad = space(parameters={"bx": [64, 100, 2048], "n": [N, 150]}, grid="n/bx", gpus=["a100"])
    result = drywarp.sweep(bad, jobs=0, out=out)
    reasons = [row.reason for row in result.rows]
    assert [row.ok for row in result.rows] == [True, False, False, False, False, False]
    assert reasons[1] == "grid 'n/bx' is 2.34375, expected a whole number"
    assert sum(result.failed.values()) == 5
    with out.open(newline="") as file:
        assert [row["reason"] for row in csv.DictReader(file)] == reasons
    told: list[int] = []
    drywarp.sweep(bad, jobs=0, out=out, retry_failed=True, on_row=lambda row, done, of: told.append(row.number))
    assert sorted(told) == [2, 3, 4, 5, 6]
    with out.open(newline="") as file:
        assert [row["reason"] for row in csv.DictReader(file)] == reasons


KERNEL = """
template <int W, typename T> __global__ void scale(T* x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] *= FACTOR(W);
}
"""


def test_templates_macros_and_register_caps() -> None:
    launch: dict[str, Any] = {"grid": 4, "block": (64, 1), "args": {"x": "f64[256]"}}
    result = drywarp.sweep(
        drywarp.Space(
            kernel=KERNEL,
            configurations=[{"w": 1, "t": "float", "cap": 0}, {"w": 2, "t": "double", "cap": 16}],
            macros=[],
            defines={"FACTOR(x)": "(x + {w*3})"},
            entry="scale<{w*2},{t}>",
            max_registers="cap",
            models=["volkov"],
            grid=4,
            block=[64, 1],
            args=launch["args"],
        ),
        jobs=0,
    )
    for row, entry, offset in zip(result.rows, ("scale<2,float>", "scale<4,double>"), (3, 6), strict=True):
        expected = drywarp.analyze(KERNEL, entry=entry, defines={"FACTOR(x)": f"(x + {offset})"}, **launch)
        assert row.time_s == pytest.approx(expected.predictions["volkov"].time_s)
    assert float(result.rows[1].facts["registers"]) <= 16


def test_sums_read_arguments_that_are_numbers(found: SweepResult) -> None:
    args = {**space()["args"], "n": 2 * N}
    other = drywarp.sweep(space(parameters={"bx": [64, 128, 256]}, problem=[], args=args), gpus="a100", jobs=0)
    assert [row.time_s for row in other.rows] == [
        row.time_s for row in found.rows if (row.gpu, row.parameters["n"]) == ("a100", 2 * N)
    ]


@pytest.mark.exhaustive
def test_the_example_is_predicted() -> None:
    example = msgspec.structs.replace(read_space(EXAMPLES / "tiled_matmul_sweep.toml"), models=["roofline"])
    found = drywarp.sweep(example, gpus="h100", jobs=0)
    assert len(found.rows) == 10
    assert not found.failed
    assert [kept.of for kept in found.prune(0.25).groups] == [5, 5]


def test_objects_and_impossible_wishes(tmp_path: Path) -> None:
    with pytest.raises(DrywarpError, match="expected jobs=0"):
        drywarp.sweep(space(kernel=object()))
    with pytest.raises(DrywarpError, match="expected a positive number, or 0"):
        drywarp.sweep(space(), jobs=-1)
    with pytest.raises(DrywarpError, match="unknown model"):
        drywarp.sweep(space(models=["pipelined"]))
    with pytest.raises(DrywarpError, match="nonsense"):
        drywarp.sweep(space(policy="nonsense"))
    with pytest.raises(DrywarpError, match=r"none\.cu: no such file"):
        drywarp.sweep(space(kernel="none.cu"))
    with pytest.raises(DrywarpError, match=r"expected a name that ends in \.csv"):
        drywarp.sweep(space(), out=tmp_path / "rows.txt")
    with pytest.raises(DrywarpError, match="cannot be written"):
        drywarp.sweep(space(), out=tmp_path / "none" / "rows.csv")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "space.toml"
    path.write_text(FILE)
    return path


def test_the_command_line(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, kept = tmp_path / "rows.csv", tmp_path / "kept.csv"
    command = ["sweep", str(file), "--out", str(out), "--jobs", "1"]
    assert run([*command, "--prune", "0.4", "--kept", str(kept), "--best", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "12 of 12 configurations predicted" in captured.out
    assert "expected regret" in captured.out
    with kept.open(newline="") as opened:
        assert len(list(csv.DictReader(opened))) == 8
    assert run([*command, "--json", "--prune", "0.4"]) == 0
    object_ = json.loads(capsys.readouterr().out)
    jsonschema.validate(object_, SCHEMA)
    assert len(object_["rows"]) == 8
    assert [(group["kept"], group["of"]) for group in object_["pruned"]["groups"]] == [(2, 3)] * 4
    assert run([*command, "--json"]) == 0
    object_ = json.loads(capsys.readouterr().out)
    jsonschema.validate(object_, SCHEMA)
    assert object_["configurations"] == {"total": 12, "predicted": 12}
    assert run(["sweep", str(file), "--count", "--gpu", "a100"]) == 0
    assert capsys.readouterr().out == "6\n"


def test_where_all_rows_fail_the_reasons_are_said(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILE.replace("cdiv(n,bx)", "n/(bx*0.3)"))
    kept = tmp_path / "kept.csv"
    command = ["sweep", str(file), "--jobs", "1", "--prune", "0.4"]
    assert run([*command, "--json"]) == 0
    object_ = json.loads(capsys.readouterr().out)
    jsonschema.validate(object_, SCHEMA)
    assert object_["pruned"] is None
    assert sum(object_["failed"].values()) == len(object_["rows"]) == 12
    assert run([*command, "--kept", str(kept)]) == 2
    captured = capsys.readouterr()
    assert "expected a whole number" in captured.out
    assert "nothing was predicted: no configuration to keep" in captured.err
    assert not kept.exists()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--prune 5", "--prune 5: expected a fraction above 0"),
        ("--kept rows.csv", "--kept requires --prune"),
        ("--prune 0.5 --kept rows.txt", "expected a name that ends in .csv"),
        ("--prune 0.5 --kept none/rows.csv", "none/rows.csv: cannot be written (no folder none)"),
        ("--prune 0.5 --kept a.csv --out ./a.csv", "a.csv: is --out, which holds all rows"),
        ("--gpu a1000", "a1000"),
        ("--gpu a100,a100", "each once"),
        ("--out rows.txt", "expected a name that ends in .csv"),
        ("--time-limit 0", "--time-limit 0: expected a positive number"),
        ("--jobs 0", "--jobs"),
    ],
)
def test_bad_command_lines(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, flags: str, expected: str
) -> None:
    monkeypatch.setattr("drywarp.experiments.sweep.run_rows", lambda *_: pytest.fail("something was predicted"))
    assert run(["sweep", str(file), *flags.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert expected in captured.err


# Files for other tuners.


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SweepResult]:
    """One GPU and problem; blocks of 2048 threads do not run."""
    folder = tmp_path_factory.mktemp("exported")
    one = drywarp.sweep(space(gpus=["h100"], parameters={"n": [N], "bx": [64, 2048, 128], "fast": [True]}), jobs=0)
    one.export(folder / "cache.json")
    one.export(folder / "t4.json", "t4")
    return folder, one


@pytest.mark.parametrize("name", ["cache.json", "t4.json"])
def test_exported_files_hold_every_prediction(name: str, exported: tuple[Path, SweepResult]) -> None:
    """They are read back as tables of measurements, which is what they are to other tools."""
    folder, one = exported
    table = read_table(folder / name, time="time_ms")
    good = [row for row in one.rows if row.ok]
    assert [row.cells["bx"] for row in table.rows] == ["64", "128"] == [str(row.parameters["bx"]) for row in good]
    assert [row.time_s for row in table.rows] == pytest.approx([row.time_s for row in good])
    assert sum(table.left_out.values()) == 1
    assert all("n" not in row.cells for row in table.rows)  # it is the problem


def test_kernel_tuner_simulates_an_exported_cache(exported: tuple[Path, SweepResult]) -> None:
    tuner = pytest.importorskip("kernel_tuner", reason="the extra `kernel-tuner`")
    folder, one = exported
    before = (folder / "cache.json").read_bytes()
    parameters = {"bx": [64, 2048, 128], "fast": [True]}
    results, found = tuner.tune_kernel(
        "saxpy", "", (N,), [], parameters, simulation_mode=True, cache=str(folder / "cache.json"), quiet=True,
        block_size_names=["bx"],
    )  # fmt: skip
    best = one.best()[0]
    assert {key: found["best_config"][key] for key in parameters} == {
        key: value for key, value in best.parameters.items() if key != "n"
    }
    assert found["best_config"]["time"] == pytest.approx(1e3 * (best.time_s or 0.0))
    assert [result["bx"] for result in results if "__error__" not in result] == [64, 128]
    assert found["device_name"] == "h100 (predicted by drywarp)"
    assert (folder / "cache.json").read_bytes() == before


def test_t4_files_follow_the_schemas_of_kernel_tuner(exported: tuple[Path, SweepResult]) -> None:
    schema = pytest.importorskip("kernel_tuner.file_utils", reason="the extra `kernel-tuner`").output_file_schema
    folder = exported[0]
    results = json.loads((folder / "t4.json").read_text())
    jsonschema.validate(results, schema("results")[1])
    jsonschema.validate(json.loads((folder / "t4-metadata.json").read_text()), schema("metadata")[1])
    assert [result["invalidity"] for result in results["results"]] == ["correct", "runtime", "correct"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--export", "FOLDER/a.json"], "hold one GPU, the sweep has a100, h100 (expected --gpu a100)"),
        (["--gpu", "a100", "--export", "FOLDER/a.json"], f"hold one problem, n is {N}, {2 * N}"),
        (["--export", "FOLDER/a.csv"], "expected a file name that ends in .json"),
        (["--export", "FOLDER/none/a.json"], "in an existing folder"),
        (["--export", "FOLDER/a.json", "--format", "t5"], "--format t5: expected kernel-tuner or t4"),
    ],
)
def test_what_cannot_be_exported_is_said_first(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "space.toml"
    path.write_text(FILE)
    assert run(["sweep", str(path), *(word.replace("FOLDER", str(tmp_path)) for word in options)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_line_exports(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(FILE.replace(f"n = [{N}, {2 * N}]", f"n = [{N}]"))
    assert run(["sweep", str(path), "--gpu", "a100", "--export", str(tmp_path / "a.json"), "--format", "t4"]) == 0
    assert {each.name for each in tmp_path.iterdir()} == {"space.toml", "a.json", "a-metadata.json"}


SHARES = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void shares(const float* in, float* out) {
  __shared__ float held[256];
  cg::cluster_group cluster = cg::this_cluster();
  held[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  cluster.sync();
  float sum = 0;
  for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) sum += cluster.map_shared_rank(held, rank)[threadIdx.x];
  out[blockIdx.x * 256 + threadIdx.x] = sum;
  cluster.sync();
}
"""


def test_cluster_sizes_are_swept_and_validated(tmp_path: Path) -> None:
    (tmp_path / "shares.cu").write_text(SHARES)
    args = {"in": "f32[65536]:random", "out": "f32[65536]"}
    launch = {"kernel": str(tmp_path / "shares.cu"), "grid": "256", "block": "256", "args": args}
    swept = drywarp.sweep(
        {**launch, "gpus": ["h100"], "macros": [], "parameters": {"blocks": [2, 8]}, "cluster": "blocks"}, jobs=0
    )
    one_by_one = {
        size: drywarp.analyze(tmp_path / "shares.cu", gpu="h100", grid=256, block=256, args=args, cluster=size).time_s
        for size in (2, 8)
    }
    times = {row.parameters["blocks"]: row.time_s for row in swept.rows}
    assert times == pytest.approx(one_by_one)
    assert times[8] > times[2]
    table = tmp_path / "measured.csv"
    table.write_text("half,time_us\n1,10\n4,20\n")
    options = ["-use_fast_math"]
    found = drywarp.validate(table, gpu="h100", cluster="half*2", macros=[], jobs=1, compiler_options=options, **launch)
    worst = found.worst(1)[0].command
    assert "--compiler-option=-use_fast_math" in worst
    assert re.search(r"--cluster [28] ", worst)
    predicted = [row.times["pipeline"] for row in sorted(found.rows, key=lambda row: row.row)]
    assert predicted == pytest.approx(list(one_by_one.values()))
