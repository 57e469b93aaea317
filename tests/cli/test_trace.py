"""`drywarp analyze --trace` as installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import ROOT, complaint, run

SAXPY = ROOT / "examples" / "saxpy.cu"
SMALL = ("--grid", "540", "--arg", "n=138240")


def test_the_file_is_written_beside_the_answer(tmp_path: Path) -> None:
    said = run("analyze", str(SAXPY), *SMALL, "--trace", "t.json", cwd=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    count = len(json.loads((tmp_path / "t.json").read_text())["traceEvents"])
    assert f"{count:,} events in t.json" in said.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_json_stays_one_object(tmp_path: Path) -> None:
    said = run("analyze", str(SAXPY), *SMALL, "--trace", "t.json", "--events", "1000", "--json", cwd=tmp_path)
    notes = json.loads(said.stdout)["notes"]
    assert any("the trace ends after" in note for note in notes)
    assert json.loads((tmp_path / "t.json").read_text())["otherData"]["notes"] == notes[-1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--trace", "none/t.json"], "--trace none/t.json: expected a file in an existing folder"),
        (["--trace", "."], "--trace .: expected"),
        (["--events", "5000"], "--events requires --trace"),
        (["--trace", "t.json", "--events", "3"], "1000"),
        (["--trace", "t.json", "--launches", "l.toml"], "cannot be combined with --launches"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], expected: str, tmp_path: Path) -> None:
    assert expected in complaint(run("analyze", str(SAXPY), *arguments, cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []
