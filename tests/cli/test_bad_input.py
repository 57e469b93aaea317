"""Bad input at the command line: one clear line, exit status 2, nothing on standard output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.effort import first

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
            ["kernel.cu:3", "store", "just past the end of a (160 bytes)"],
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
        (["analyze", str(SAXPY), "--clock", "fast"], "clock 'fast': expected MHz or one of base, boost, highest"),
        (
            ["analyze", str(SAXPY), "--gpu", "a4000", "--clock", "sustained"],
            "no published figures give a rule; expected MHz as measured under load, or one of base, boost, highest"
            " (735, 1560, 1841 MHz here)",
        ),
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


SEVERAL = "__global__ void k(float* a) {\n  a[0] = one + two;\n  a[1] = three;\n}\n"


def test_further_messages_of_the_compiler_are_one_option_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRYWARP_NVCC", "off")
    (tmp_path / "k.cu").write_text(SEVERAL)
    said = complaint(run("analyze", "k.cu", "--static", cwd=tmp_path))
    assert said == 'drywarp: k.cu(2): error: identifier "one" is undefined (and 2 more: --verbose)'
    for arguments in (["analyze", "k.cu", "--static", "--verbose"], ["--verbose", "models", "k.cu", "--static"]):
        result = run(*arguments, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, "")
        first, *others = result.stderr.splitlines()
        assert first == 'drywarp: k.cu(2): error: identifier "one" is undefined (and 2 more)'
        for name, line in (("one", 2), ("two", 2), ("three", 3)):
            assert f'k.cu({line}): error: identifier "{name}" is undefined' in others
    # It holds for one command only.
    complaint(run("analyze", "k.cu", "--static", cwd=tmp_path))


@pytest.mark.parametrize("encoding", first(["ascii:strict", "ascii"]))
def test_terminals_without_unicode(encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    monkeypatch.setenv("LC_ALL", "C")
    (tmp_path / "k.cu").write_text("__global__ void k(float* größe) { größe = 1; }\n")
    assert complaint(installed("analyze", "k.cu", "--static", cwd=tmp_path))
    result = installed("explain", "atomics", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    result = installed("analyze", "--help", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "--verbose" in result.stdout


def test_a_cache_that_cannot_be_used_is_mentioned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(float* a) { a[0] = 1; }\n")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(tmp_path / "file"))
    result = run("analyze", "k.cu", "--static", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stderr == (
        f"drywarp: the cache {tmp_path}/file is not writable, so every run starts from scratch "
        "(set DRYWARP_CACHE_DIR to use another)\n"
    )
    assert complaint(run("analyze", "none.cu", "--static", cwd=tmp_path))
    assert run("gpus", cwd=tmp_path).stderr == ""


def test_folders_that_cannot_be_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user without permission; the superuser that tests may run as has all of them."""
    locked = tmp_path / "locked"
    real = os.stat

    def stat(path: str | Path, *given: object, **more: object) -> os.stat_result:
        if str(path).startswith(f"{locked}/"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *given, **more)  # type: ignore[arg-type]

    locked.mkdir()
    (tmp_path / "k.cu").write_text("__global__ void k(float* a) { a[0] = 1; }\n")
    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(locked / "cache"))
    result = run("analyze", "k.cu", "--static", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert run("cache", cwd=tmp_path).returncode == 0
    assert "Traceback" not in run("doctor", cwd=tmp_path).stderr


def test_trouble_with_files_that_nothing_else_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device", "some.file")

    monkeypatch.setattr("drywarp.frontends.cache.writable", fail)
    (tmp_path / "k.cu").write_text("__global__ void k(float* a) { a[0] = 1; }\n")
    result = run("analyze", "k.cu", "--static", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (2, "drywarp: some.file: No space left on device\n")
