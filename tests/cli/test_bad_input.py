"""Bad input at the command line: one clear line, exit status 2, nothing on standard output."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import SAXPY, complaint, installed, run

OUT_OF_BOUNDS = """
__global__ void beyond(float* a) {
  a[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}
"""
ENDLESS = """
__global__ void forever(volatile int* flag) {
  while (*flag == 0) {
  }
}
"""
SYNTAX = """
__global__ void broken(float* a) {
  a[0] = undefined_name;
}
"""
TWO = "__global__ void first(int* a) { a[0] = 1; }\n__global__ void second(int* a) { a[0] = 2; }\n"
BIG_SHARED = "__global__ void big(int* a) { __shared__ int s[8192]; s[threadIdx.x] = 1; a[0] = s[a[0]]; }\n"


@pytest.mark.parametrize(
    ("source", "arguments", "expected"),
    [
        (SYNTAX, "--grid 1 --block 32 --arg a=f32[32]", ["kernel.cu(3)", "undefined_name"]),
        (TWO, "--grid 1 --block 32 --arg a=i32[32]", ["several kernels", "first", "second"]),
        (TWO, "--entry third --grid 1 --block 32 --arg a=i32[32]", ["third", "first", "second"]),
        (
            OUT_OF_BOUNDS,
            "--grid 2 --block 32 --arg a=f32[40]",
            ["kernel.cu:3", "store", "beyond the end of a of 160 bytes"],
        ),
        (OUT_OF_BOUNDS, "--grid 2 --block 32", ["no value for a"]),
        (OUT_OF_BOUNDS, "--grid 2 --block 32 --arg a=3", ["argument a", "expected a buffer"]),
        (OUT_OF_BOUNDS, "--grid 2 --block 32 --arg a=f33[64]", ["f33", "expected one of"]),
        (OUT_OF_BOUNDS, "--grid 2 --block 32 --arg a=f32[64] --arg b=1", ["no parameter named 'b'", "float* a"]),
        (OUT_OF_BOUNDS, "--grid 2 --block 2048 --arg a=f32[4096]", ["2048", "1024"]),
        (OUT_OF_BOUNDS, "--grid 0 --block 32 --arg a=f32[64]", ["grid", "positive"]),
        (OUT_OF_BOUNDS, "--block 32 --arg a=f32[64]", ["no grid given"]),
        (OUT_OF_BOUNDS, "--grid 1 --block 32 --arg a=@none.npy", ["none.npy", "no such file"]),
        (OUT_OF_BOUNDS, "--grid 1 --block 32 --arg a=f32[64] --gpu a1000", ["a1000", "a100"]),
        (OUT_OF_BOUNDS, "--grid 1 --block 32 --arg a=f32[64] --gpu papers/example", ["abstract workloads"]),
        (OUT_OF_BOUNDS, "--grid 1 --block 32 --arg a=f32[64] --scheduler fifo", ["fifo", "loose_round_robin"]),
        (OUT_OF_BOUNDS, "--grid 1 --block 32 --arg a=f32[64] --shared 200000", ["200000"]),
        (BIG_SHARED, "--grid 1 --block 32 --arg a=i32[64] --shared 140000", ["shared memory"]),
        (ENDLESS, "--grid 1 --block 32 --arg flag=i32[1] --lane-steps 1e7", ["loop", "kernel.cu:3"]),
        ("int nothing;\n", "--grid 1 --block 32", ["no __global__ function"]),
        (OUT_OF_BOUNDS, "--grid 1 --block 32 --arg", ["--arg"]),
        (OUT_OF_BOUNDS, "--grid 1 --block 32 --frobnicate", ["--frobnicate"]),
    ],
)
def test_kernel(source: str, arguments: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(source)
    line = complaint(run("analyze", "kernel.cu", *arguments.split(), cwd=tmp_path))
    for text in expected:
        assert text in line
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.cu"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["analyze", "missing.cu"], "missing.cu: no such file"),
        (["analyze", str(SAXPY), "--arg", "n=many"], "argument n (int): got 'many', expected a number"),
        (["analyze", str(SAXPY), "--arg", "n=1.5"], "expected a whole number"),
        (["analyze", str(SAXPY), "--gpu", "none.toml"], "none.toml"),
        (["analyze", str(SAXPY), "--clock", "nan"], "--clock nan: expected a positive number"),
        (["analyze", str(SAXPY), "--clock", "0"], "--clock 0: expected a positive number"),
        (["analyze", str(SAXPY), "--seconds", "-1"], "--seconds -1: expected a positive number"),
        (["analyze", str(SAXPY), "--arg", "n=1", "--arg", "n=2"], "n is given twice"),
        (["gpus", "nothing"], "nothing"),
        (["frobnicate"], "frobnicate"),
        (["analyze"], "FILE"),
    ],
)
def test_command_line(arguments: list[str], expected: str, tmp_path: Path) -> None:
    assert expected in complaint(run(*arguments, cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_help_and_version_work(tmp_path: Path) -> None:
    for arguments in (["--help"], ["analyze", "--help"], ["gpus", "--help"], ["--version"]):
        result = run(*arguments, cwd=tmp_path)
        assert result.returncode == 0
        assert result.stdout
        assert result.stderr == ""


def test_the_program_that_users_start(tmp_path: Path) -> None:
    """As a process of its own: exit status, one line, nothing written."""
    assert installed("--help", cwd=tmp_path).stdout.lstrip().startswith("Usage")
    (tmp_path / "kernel.cu").write_text(OUT_OF_BOUNDS)
    arguments = "--grid 2 --block 32 --arg a=f32[40]".split()
    assert "kernel.cu:3" in complaint(installed("analyze", "kernel.cu", *arguments, cwd=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.cu"]
