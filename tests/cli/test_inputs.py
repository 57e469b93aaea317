"""Other inputs than CUDA C++, through the installed command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import complaint, run

EXAMPLES = Path(__file__).parents[2] / "examples"
RAW = """import cupy
kernel = cupy.RawKernel(r'''
extern "C" __global__ void scale(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= 2;
}
''', "scale")
"""
LAUNCH = "--grid cdiv(n,64) --block 64 --arg n=1000 --arg a=f32[1000]".split()


def test_ptx(tmp_path: Path) -> None:
    (tmp_path / "axpy.ptx").write_text((EXAMPLES / "axpy.ptx").read_text())
    result = run("analyze", "axpy.ptx", "--json", cwd=tmp_path)
    document = json.loads(result.stdout)
    assert document["launch"]["grid"] == [4096, 1, 1]
    assert document["versions"]["ptxas"]
    assert document["lines"][0]["file"] == "axpy.ptx"
    assert document["lines"][0]["text"].startswith("fma.rn.f32")
    assert "predicted for axpy (4096)x(256) on" in run("analyze", "axpy.ptx", cwd=tmp_path).stdout


def test_source_in_a_python_file(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(RAW)
    document = json.loads(run("analyze", "program.py", *LAUNCH, "--json", cwd=tmp_path).stdout)
    assert document["launch"]["grid"] == [16, 1, 1]
    assert {line["file"] for line in document["lines"]} == {"program.py"}
    assert document["lines"][0]["text"] == "if (i < n) a[i] *= 2;"


def test_counters_and_models_take_them_too(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(RAW)
    counted = json.loads(run("counts", "program.py", *LAUNCH, "--json", cwd=tmp_path).stdout)
    assert counted["kernel"] == "scale"
    compared = json.loads(run("models", "program.py", *LAUNCH, "--json", cwd=tmp_path).stdout)
    assert compared["workload"] == "scale"


@pytest.mark.parametrize(
    ("name", "text", "arguments", "expected"),
    [
        (
            "k.ptx",
            ".version 8.0\n.target sm_90\n.visible .entry k() { ret; }",
            "",
            ["k.ptx: its .target sm_90", "sm_80"],
        ),
        ("k.ptx", ".version 8.0\n.target sm_80\n.visible .entry k() { reet; }", "", ["k.ptx(3): error: ", "reet"]),
        ("k.py", "import cupy\n", "", ["k.py: no kernel found"]),
        ("k.py", "def k(:\n", "", ["k.py:1: not Python"]),
        ("k.py", RAW, "--entry other", ["k.py: no kernel named 'other'; it holds: scale"]),
        ("k.py", RAW, "--block 64 --grid n/3 --arg n=10 --arg a=f32[10]", ["grid 'n/3': is 3.33333; expected a whole"]),
        (
            "k.py",
            RAW,
            "--config best --grid 1 --block 64 --arg n=1 --arg a=f32[1]",
            ["--config best", "no configurations"],
        ),
        ("k.py", RAW, "--config fast --grid 1 --block 64", ["--config 'fast': expected a number, best, or best:N"]),
        ("k.py", "# drywarp: --gird 4\n" + RAW, "", ["k.py:1: launch comment: unknown option '--gird'"]),
        ("no.py", "", "--missing", ["no such option"]),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, name: str, text: str, arguments: str, expected: list[str]) -> None:
    (tmp_path / name).write_text(text)
    line = complaint(run("analyze", name, *arguments.split(), cwd=tmp_path))
    assert all(part.lower() in line.lower() for part in expected), line


def test_a_missing_file_says_what_is_taken(tmp_path: Path) -> None:
    line = complaint(run("analyze", "nothing.py", cwd=tmp_path))
    expected = "CUDA C++ source, PTX, machine code, a kept launch or a Python file"
    assert line == f"drywarp: nothing.py: no such file (expected {expected})"
