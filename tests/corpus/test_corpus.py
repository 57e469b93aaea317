"""`drywarp corpus` on small folders: what is analysed, what is not and why, and its totals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from drywarp.cli.main import run
from drywarp.frontends.assembler import find_ptxas

EXAMPLES = Path(__file__).parents[2] / "examples"


def corpus(capsys: pytest.CaptureFixture[str], folder: Path, status: int = 0) -> dict[str, Any]:
    assert run(["corpus", str(folder), "--gpu", "a100", "--jobs", "1", "--json"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_good_and_bad_modules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(EXAMPLES / "saxpy.cu", tmp_path)
    (tmp_path / "broken.cu").write_text("__global__ void broken(float* x) { x[0] = nowhere; }\n")
    (tmp_path / "host.cu").write_text("int main() { return 0; }\n")
    (tmp_path / "torn.cubin").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(40))
    found = corpus(capsys, tmp_path)
    by_name = {row["file"]: row for row in found["rows"]}
    assert by_name["saxpy.cu"]["status"] == "analysed"
    assert "nowhere" in by_name["broken.cu"]["reason"]
    assert all(row["wall_s"] >= 0 for row in found["rows"])
    assert found["totals"]["analysed"] == 1
    assert found["totals"]["unclassified_opcodes"] == 0


def test_ptx_is_a_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if find_ptxas() is None:
        pytest.skip("no ptxas")
    shutil.copy(EXAMPLES / "axpy.ptx", tmp_path)
    found = corpus(capsys, tmp_path)
    assert found["totals"]["analysed"] == found["totals"]["modules"] == 1


@pytest.mark.parametrize(("name", "said"), [("nowhere", "nowhere"), ("empty", "empty")])
def test_bad_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    assert run(["corpus", str(tmp_path / name), "--gpu", "a100"]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert said in captured.err
