"""`drywarp compare` and `drywarp rank` as installed: exit status, and what stands where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import ROOT, complaint, run

SAXPY = ROOT / "examples" / "saxpy.cu"
NAIVE, PADDED = ROOT / "examples" / "transpose_naive.cu", ROOT / "examples" / "transpose_padded.cu"


def test_the_gate_is_the_exit_status(tmp_path: Path) -> None:
    held = run("compare", str(NAIVE), str(PADDED), "--fail-above", "5%", cwd=tmp_path)
    assert (held.returncode, held.stderr) == (0, "")
    broken = run("compare", str(PADDED), str(NAIVE), "--fail-above", "5%", cwd=tmp_path)
    assert (broken.returncode, broken.stderr) == (1, "")
    assert "more than the 5% allowed" in broken.stdout
    same = run("compare", str(SAXPY), str(SAXPY), "--fail-above", "0%", cwd=tmp_path)
    assert (same.returncode, same.stderr) == (0, "")
    assert " 0% " in same.stdout


def test_json_and_markdown_stand_alone(tmp_path: Path) -> None:
    wanted = ("compare", str(NAIVE), str(PADDED), "--gpu", "a100,h100")
    answer = json.loads(run(*wanted, "--json", cwd=tmp_path).stdout)
    assert [gpu["gpu"] for gpu in answer["gpus"]] == ["a100", "h100"]
    assert run(*wanted, "--markdown", cwd=tmp_path).stdout.startswith("### ")


def test_saved_answers_and_own_launches(tmp_path: Path) -> None:
    base = tmp_path / "base.json"
    base.write_text(run("analyze", str(SAXPY), "--json", cwd=tmp_path).stdout)
    assert run("compare", str(base), str(SAXPY), "--fail-above", "0%", cwd=tmp_path).returncode == 0
    half = run("compare", str(SAXPY), "--new", "--grid 32768 --arg n=8388608", "--json", cwd=tmp_path)
    (gpu,) = json.loads(half.stdout)["gpus"]
    assert gpu["new"]["launch"]["grid"] == [32768, 1, 1]
    assert 0.4 < gpu["ratio"] < 0.6


def test_ranking_as_json(tmp_path: Path) -> None:
    said = run("rank", str(SAXPY), "--gpu", "a100,t4", "--price", "t4=0.3", "--by", "cost", "--json", cwd=tmp_path)
    answer = json.loads(said.stdout)
    assert (said.returncode, answer["by"]) == (0, "cost")
    assert [gpu["gpu"] for gpu in answer["gpus"]] == ["t4", "a100"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["compare", str(SAXPY)], "only one kernel given"),
        (["compare", str(SAXPY), "none.cu"], "new: none.cu: no such file"),
        (["compare", "none.json", str(SAXPY)], "none.json: no such file"),
        (["compare", str(SAXPY), str(SAXPY), "--fail-above", "5"], "a percentage such as 5%"),
        (["compare", str(SAXPY), str(SAXPY), "--fail-above", "-5%"], "a percentage such as 5%"),
        (["compare", str(SAXPY), str(SAXPY), "--fail-above", "x%"], "a percentage such as 5%"),
        (["compare", str(SAXPY), str(SAXPY), "--gpu", "a1000"], "a1000"),
        (["compare", str(SAXPY), str(SAXPY), "--new", "--gird 3"], "--new: unknown option '--gird'"),
        (["compare", str(SAXPY), str(SAXPY), "--new", "--arg 'x"], "--new: "),
        (["compare", str(SAXPY), str(SAXPY), "--json", "--markdown"], "expected only one of them"),
        (["compare", "-", "-"], "standard input"),
        (["rank", str(SAXPY), "--by", "speed"], "expected time, energy or cost"),
        (["rank", str(SAXPY), "--by", "cost"], "needs hourly prices"),
        (["rank", str(SAXPY), "--gpu", "a100", "--price", "a100=cheap"], "expected a number"),
        (["rank", "none.cu"], "none.cu: no such file"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], expected: str, tmp_path: Path) -> None:
    assert expected in complaint(run(*arguments, cwd=tmp_path))
