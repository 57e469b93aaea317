"""Reading measurements: plain tables, Kernel Tuner's files, profilers' exports, and what is wrong with bad ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from drywarp.errors import DrywarpError
from drywarp.experiments.rows.recipe import Recipe, launch_of
from drywarp.experiments.rows.worker import spread
from drywarp.experiments.validate import HALVES, half_of, keep, sample
from drywarp.experiments.validate.compare import check
from drywarp.experiments.validate.read import read_table
from drywarp.experiments.validate.read_csv import MeasuredRow, Table, is_parameter

from ..frontends.profiler_reports import LONG_2019, ROCPROF, WIDE
from .tables import ROWS, saxpy_table

CACHE: dict[str, Any] = {
    "device_name": "some GPU",
    "kernel_name": "k",
    "tune_params_keys": ["bx", "tile"],
    "tune_params": {"bx": [32, 64], "tile": [1, 2]},
    "cache": {
        "32,1": {"bx": 32, "tile": 1, "time": 2.0, "times": [1.0, 1.5, 3.5], "compile_time": 800.0, "GFLOP/s": 3.0},
        "32,2": {"bx": 32, "tile": 2, "time": "CompilationFailedConfig"},
        "64,1": {"bx": 64, "tile": 1, "time": 4.0, "times": [4.0, 4.0], "compile_time": 800.0},
        "64,2": {"bx": 64, "tile": 2, "time": 1e20},
    },
}


def result(bx: int, value: float, unit: str, **more: Any) -> dict[str, Any]:
    measured = [{"name": "time", "value": value, "unit": unit}]
    return {"configuration": {"bx": bx}, "measurements": measured, "invalidity": "correct", **more}


def table(tmp_path: Path, text: str, name: str = "t.csv", **options: Any) -> Table:
    path = tmp_path / name
    path.write_text(text)
    return read_table(path, **options)


def times(found: Table) -> list[float]:
    return pytest.approx([row.time_s for row in found.rows])  # type: ignore[return-value]


def test_a_plain_table(tmp_path: Path) -> None:
    found = read_table(saxpy_table(tmp_path))
    assert found.timed_by == "median_us"
    assert found.parameters == ("bx", "n")
    assert found.left_out == {"status Failed": 1}
    assert [row.number for row in found.rows] == [1, 2, 3, 4, 6, 7, 8, 9]
    assert found.rows[4].place.endswith("saxpy.csv: line 7")
    assert found.rows[0].time_s == pytest.approx(3.9e-6)


@pytest.mark.parametrize(
    ("header", "timed_by", "seconds"),
    [
        ("bx,time_ms,median_ms", "median_ms", 2e-3),
        ("bx,min_us,duration_us", "duration_us", 2e-6),
        ("bx,x,Computation duration (us)", "Computation duration (us)", 2e-6),
        ("bx,gflops,duration_ns", "duration_ns", 2e-9),
        ("bx,x,Time [ms]", "Time [ms]", 2e-3),
        ("bx,x,time_seconds", "time_seconds", 2.0),
    ],
)
def test_the_time_is_found_by_its_usual_names(tmp_path: Path, header: str, timed_by: str, seconds: float) -> None:
    found = table(tmp_path, f"{header}\n32,1,2\n")
    assert found.timed_by == timed_by
    assert found.rows[0].time_s == pytest.approx(seconds)


def test_the_time_that_is_asked_for(tmp_path: Path) -> None:
    text = "bx,time_ms,best\n32,3,5\n"
    assert table(tmp_path, text, time="best:us").rows[0].time_s == pytest.approx(5e-6)
    assert table(tmp_path, text, time="time_ms").rows[0].time_s == pytest.approx(3e-3)
    assert table(tmp_path, text, time="time_ms:s").rows[0].time_s == pytest.approx(3.0)


def test_other_separators_and_compression(tmp_path: Path) -> None:
    assert table(tmp_path, "bx;time_ms\n32;1.5\n").rows[0].cells["bx"] == "32"
    assert table(tmp_path, "bx\ttime_ms\n32\t1.5\n").rows[0].cells["bx"] == "32"
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfbx,time_ms\n32,1.5\n"))
    assert read_table(path).rows[0].cells == {"bx": "32", "time_ms": "1.5"}


def test_a_cache_of_kernel_tuner(tmp_path: Path) -> None:
    found = table(tmp_path, json.dumps(CACHE), "c.json")
    assert found.parameters == ("bx", "tile")
    assert found.timed_by == "median_ms"
    assert [row.cells["runs_spread"] for row in found.rows] == ["2.3333", "1.0000"]
    assert [row.time_s for row in found.rows] == times(found)
    assert [row.time_s for row in found.rows] == pytest.approx([1.5e-3, 4e-3])
    assert found.left_out == {"CompilationFailedConfig": 1, "failed": 1}
    assert table(tmp_path, json.dumps(CACHE), "c.json", time="time_ms").rows[0].time_s == pytest.approx(2e-3)


@pytest.mark.parametrize("cut", ["}}", "}", ""])
def test_a_cache_that_is_not_closed(tmp_path: Path, cut: str) -> None:
    text = json.dumps(CACHE).removesuffix("}}") + (cut or ",")
    assert len(table(tmp_path, text, "c.json").rows) == 2


def test_results_in_the_t4_format(tmp_path: Path) -> None:
    results = [
        result(32, 3.0, "", times={"runtimes": [1.0, 2.0, 6.0]}),
        result(64, 7.0, "", times={"runtimes": [7.0]}, invalidity="compile"),
        result(96, 5.0, "", times={"runtimes": [4.0, 5.0, 6.0]}),
    ]
    found = table(tmp_path, json.dumps({"metadata": {"timeunit": "miliseconds"}, "results": results}), "t4.json")
    assert [row.time_s for row in found.rows] == pytest.approx([2e-3, 5e-3])
    assert found.left_out == {"invalidity compile": 1}
    assert found.parameters == ("bx",)
    assert [row.number for row in found.rows] == [1, 3]
    other = table(tmp_path, json.dumps({"results": [result(32, 3.0, "us")]}), "t4.json")
    assert other.rows[0].time_s == pytest.approx(3e-6)


def test_a_report_of_nsight_compute(tmp_path: Path) -> None:
    found = table(tmp_path, WIDE, "ncu.csv", entry="saxpy")
    assert [row.time_s for row in found.rows] == pytest.approx([456.7e-6])
    assert found.rows[0].cells["grid"] == "65536,1,1"
    assert found.parameters == ()
    assert launch_of(Recipe(), found.rows[0], ())["block"] == "256,1,1"
    with pytest.raises(DrywarpError, match=r"several kernels.*saxpy, scale"):
        table(tmp_path, WIDE, "ncu.csv")
    with pytest.raises(DrywarpError, match=r"no launch of gemm.*saxpy, scale"):
        table(tmp_path, WIDE, "ncu.csv", entry="gemm")
    assert table(tmp_path, LONG_2019, "long.csv").rows[0].time_s == pytest.approx(1.5e-3)
    assert table(tmp_path, ROCPROF, "r.csv", entry="saxpy").rows[0].time_s == pytest.approx(151234e-9)


def test_launches_that_are_alike_are_one_row(tmp_path: Path) -> None:
    line = next(text for text in WIDE.splitlines() if "456.70" in text)
    twice = WIDE + "\n".join(line.replace("456.70", time) for time in ("450", "500")) + "\n"
    found = table(tmp_path, twice, "ncu.csv", entry="saxpy")
    assert [row.time_s for row in found.rows] == pytest.approx([456.7e-6])
    assert found.rows[0].cells["launches"] == "3"


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("", "t.csv", "empty"),
        ("bx,speed\n1,2\n", "t.csv", "no column of times found.*--time COLUMN:UNIT.*bx, speed"),
        ("bx,time_ms\n32,abc\n", "t.csv", "t.csv: line 2: time_ms is 'abc', expected a positive number"),
        ("bx,time_ms\n32,-1\n", "t.csv", "line 2: time_ms is '-1'"),
        ("bx,time_ms\n32,nan\n", "t.csv", "line 2: time_ms is 'nan'"),
        ("bx,time_ms\n32\n", "t.csv", "line 2: 1 cells, expected 2"),
        ("bx,bx,time_ms\n1,2,3\n", "t.csv", "'bx' occurs twice"),
        ("nothing here\n", "t.csv", "line 1: expected the names of several columns"),
        ("bx,time_ms\n", "t.csv", "no row with a time.*none at all"),
        ("bx,time_ms\n32,\n64,\n", "t.csv", "no row with a time.*2 with no time_ms"),
        ("bx,time_ms\n32,1\0\n", "t.csv", "NUL bytes"),
        ("{bad", "c.json", "line 1: not JSON"),
        ("{}", "c.json", "expected Kernel Tuner's cache"),
        ('{"cache": {}}', "c.json", "no row with a time"),
        ('{"results": [3]}', "c.json", "result 1: expected an object"),
        ('{"results": [' + "[" * 100_000, "c.json", "not JSON"),
        ('"ID","Kernel Name"\n', "ncu.csv", "no rows"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, name: str, expected: str) -> None:
    with pytest.raises(DrywarpError, match=expected):
        table(tmp_path, text, name)


def test_bad_files_and_options(tmp_path: Path) -> None:
    with pytest.raises(DrywarpError, match=r"none\.csv"):
        read_table(tmp_path / "none.csv")
    broken = tmp_path / "b.gz"
    broken.write_bytes(b"\x1f\x8b\x08broken")
    with pytest.raises(DrywarpError, match=r"b\.gz: cannot be read"):
        read_table(broken)
    with pytest.raises(DrywarpError, match=r"no column 'other'.*bx, t"):
        table(tmp_path, "bx,t\n1,2\n", time="other:ms")
    with pytest.raises(DrywarpError, match="expected a unit, as in t:ms"):
        table(tmp_path, "bx,t\n1,2\n", time="t")
    with pytest.raises(DrywarpError, match="no column"):
        table(tmp_path, "bx,t\n1,2\n", time="t2:ms")


def test_parameters_are_told_from_results() -> None:
    chosen = ["block_size_x", "BETWEEN_METHOD", "use_padding", "VWM"]
    found = ["time_ms", "status", "smsp__inst_executed.sum", "lts__t_sectors_op_read", "gflops", "grid", "GFLOP/s"]
    assert [name for name in [*chosen, *found] if is_parameter(name)] == chosen


def row(**cells: str) -> MeasuredRow:
    return MeasuredRow(7, "t.csv: line 8", cells, 1.0)


def test_a_launch_by_expressions_over_columns() -> None:
    recipe = Recipe(
        macros=["bx"],
        defines={"N": "4096", "FLAG": ""},
        grid="cdiv(N,bx*tile),min(N, 8)",
        block="bx, 2",
        args={
            "a": "f32[(N-1+tile)*(N-1+tile),2]:random",
            "n": "N*tile",
            "f": "N/8192",
            "x": "2.5",
            "v": "1.0,2.0",
            "p": "null",
            "w": "@w.npy",
            "number": 3,
        },
        shared="4*bx",
        entry="gemm<{bx},{tile}>",
        max_registers="regs",
        clock="regs*50",
    )
    found = launch_of(recipe, row(bx="32", tile="3", regs="20"), ["bx"])
    assert found["grid"] == "43,8"
    assert found["block"] == "32,2"
    assert found["args"] == {
        "a": "f32[16793604,2]:random",
        "n": "12288",
        "f": "0.5",
        "x": "2.5",
        "v": "1.0,2.0",
        "p": "null",
        "w": "@w.npy",
        "number": 3,
    }
    assert found["shared"] == 128
    assert found["entry"] == "gemm<32,3>"
    assert found["max_registers"] == 20
    assert found["clock_mhz"] == 1000
    assert found["defines"] == {"N": "4096", "FLAG": "", "bx": "32"}


@pytest.mark.parametrize("cell", ["64x32x1", "64,32,1", "(64, 32, 1)", "64x32", "64 32 1"])
def test_extents_of_a_column(cell: str) -> None:
    found = launch_of(Recipe(), row(grid=cell), ())["grid"]
    assert [int(part) for part in found.split(",")][:2] == [64, 32]


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (Recipe(grid="cdiv(N,bx)"), "line 8: --grid 'cdiv\\(N,bx\\)': unknown name 'N'; known: bx, word, grid"),
        (Recipe(grid="bx/0"), "line 8: --grid 'bx/0': .*division by zero"),
        (Recipe(grid="bx/64"), "line 8: --grid 'bx/64' is 0.5, expected a whole number"),
        (Recipe(grid="word"), "line 8: --grid 'word': word is the string 'abc', expected a number"),
        (Recipe(grid="1", block="bx-64"), "line 8: --block 'bx-64' is -32"),
        (Recipe(grid="1", clock="bx-32"), "line 8: --clock 'bx-32' is 0, expected a positive number"),
        (Recipe(grid="1", args={"a": "f32[M]"}), "line 8: --arg a 'M': unknown name 'M'"),
        (Recipe(), "line 8: column grid is '1,2,3,4', expected extents as in 64x32x1"),
        (Recipe(grid="__import__('os')"), "line 8: --grid .*expected numbers, names"),
        (Recipe(grid="1", macros=["empty"]), "line 8: column empty, which is a macro, is empty"),
    ],
)
def test_expressions_that_fail_name_row_and_place(recipe: Recipe, expected: str) -> None:
    with pytest.raises(DrywarpError, match=expected):
        launch_of(recipe, row(bx="32", word="abc", grid="1,2,3,4", empty=""), recipe.macros or ())


def test_macros_are_columns_of_the_table(tmp_path: Path) -> None:
    found = read_table(saxpy_table(tmp_path))
    assert check(Recipe(), found) == ("bx", "n")
    assert check(Recipe(macros=["bx"]), found) == ("bx",)
    with pytest.raises(DrywarpError, match="no column 'tile'; it has: bx, n, median_us, status"):
        check(Recipe(macros=["tile"]), found)
    with pytest.raises(DrywarpError, match="no column 'tile'"):
        check(Recipe(entry="k<{tile}>"), found)


def test_conditions(tmp_path: Path) -> None:
    found = read_table(saxpy_table(tmp_path))

    def kept(condition: str) -> list[int]:
        return [row.number for row in keep(found, condition)]

    assert kept("bx>=256 and n==65536") == [3, 4]
    assert kept("not (bx < 512)") == [4, 9]
    assert kept("100 < bx <= 256 or n > 70000 and bx == 64") == [2, 3, 6, 7, 8]
    assert kept("status == 'Ok' and median_us < 3.1") == [3]
    with pytest.raises(DrywarpError, match="matches none of 8 rows"):
        kept("bx > 4096")
    with pytest.raises(DrywarpError, match=r"line 2: --where .*unknown name 'tile'"):
        kept("tile == 1")
    with pytest.raises(DrywarpError, match="expected a sum"):
        kept("bx >")


@pytest.mark.parametrize("count", [1, 2, 7, 64, 100, 1000])
def test_every_beginning_of_the_order_is_spread(count: int) -> None:
    rows = [MeasuredRow(n, "", {}, 1.0) for n in range(1, count + 1)]
    order = [row.number - 1 for row in spread(rows)]
    assert sorted(order) == list(range(count))
    for taken in range(1, count + 1):
        beginning = sorted(order[:taken])
        gaps = [b - a for a, b in zip(beginning, [*beginning[1:], count], strict=True)]
        # A gap is at most the next power of two above the even one.
        assert max(gaps) <= 4 * -(-count // taken)


@pytest.mark.parametrize("count", [8, 50, 64, 500])
def test_halves_are_even_whatever_part_is_taken(count: int) -> None:
    rows = [MeasuredRow(n, "", {}, 1.0) for n in range(1, 1001)]
    for taken in (sample(rows, count), rows[:count], rows[3 : 3 + count : 2]):
        share = sum(half_of(row.number) == HALVES[0] for row in taken) / len(taken)
        assert 0.3 < share < 0.7
    assert len(ROWS) > 8
