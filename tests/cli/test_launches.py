"""Launches files: several launches in one run, and what can be wrong with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import complaint, run

SOURCE = """
#include <cstdio>
__global__ void first(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] += SHIFT; }
__global__ void second(float* a) { a[threadIdx.x] = sqrtf(a[threadIdx.x]); }
int main() { first<<<1, 32>>>(nullptr, 0); std::printf("done"); }
"""
LAUNCHES = """
[[launch]]
kernel = "first"
grid = 64
block = [256]
args = { a = "f32[16384]:random", n = 16384 }
defines = { SHIFT = 2 }
times = 3

[[launch]]
kernel = "second"
name = "root"
grid = [1, 1]
block = 256
args = { a = "f32[256]" }
defines = { SHIFT = "1" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "k.cu").write_text(SOURCE)
    (tmp_path / "l.toml").write_text(LAUNCHES)
    return tmp_path


def test_the_total_counts_each_launch_as_often_as_it_runs(folder: Path) -> None:
    result = run("analyze", "k.cu", "--launches", "l.toml", "--json", cwd=folder)
    document = json.loads(result.stdout)
    first, second = document["launches"]
    assert (first["name"], first["times"], second["name"], second["times"]) == ("first", 3, "root", 1)
    assert document["time_s"] == pytest.approx(3 * first["prediction"]["time_s"] + second["prediction"]["time_s"])


def test_grids_may_be_sums(folder: Path) -> None:
    (folder / "l.toml").write_text(LAUNCHES.replace("grid = 64", 'grid = "cdiv(n,256)"'))
    document = json.loads(run("analyze", "k.cu", "--launches", "l.toml", "--json", cwd=folder).stdout)
    assert document["launches"][0]["launch"]["grid"] == [64, 1, 1]


def test_the_table_has_a_row_a_launch(folder: Path) -> None:
    lines = run("analyze", "k.cu", "--launches", "l.toml", cwd=folder).stdout.splitlines()
    assert any(line.startswith("first  ") for line in lines)
    assert any(line.startswith("root  ") for line in lines)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('kernel = "first"', 'kernel = "frist"', "l.toml: launch 1: k.cu: no kernel named 'frist'"),
        ("times = 3", "tmes = 3", "l.toml: Object contains unknown field `tmes`"),
        ("times = 3", "times = 0", "l.toml: Expected `int` >= 1"),
        ("grid = 64\n", "", "l.toml: Object missing required field `grid`"),
        ("times = 3", "config = -1", "l.toml: Expected"),
        ("times = 3", "config = 1", "l.toml: launch 1: k.cu: --config only applies to triton.autotune kernels"),
        ("grid = 64", 'grid = "cdiv(m,2)"', "l.toml: launch 1: grid 'cdiv(m,2)': unknown name 'm'"),
        ("grid = 64", "grid = [1, 2, 3, 4]", "l.toml: Expected"),
        ("grid = 64", "grid = ", "l.toml: not TOML"),
        ('args = { a = "f32[256]" }', "", "l.toml: launch 2: k.cu: second: no value for a"),
    ],
)
def test_bad_files(folder: Path, old: str, new: str, expected: str) -> None:
    (folder / "l.toml").write_text(LAUNCHES.replace(old, new))
    assert expected in complaint(run("analyze", "k.cu", "--launches", "l.toml", cwd=folder))


def test_no_file_and_options_that_it_replaces(folder: Path) -> None:
    assert "no.toml: no such file" in complaint(run("analyze", "k.cu", "--launches", "no.toml", cwd=folder))
    assert "--launches" in complaint(run("analyze", "k.cu", "--launches", "l.toml", "--grid", "1", cwd=folder))
