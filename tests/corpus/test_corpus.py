"""`drywarp corpus` on small folders: what is analysed, what is not and why, and its totals."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from drywarp.cli.main import run
from drywarp.errors import UsageError
from drywarp.experiments.corpus import RowsFile
from drywarp.experiments.corpus.examine import Watched
from drywarp.experiments.corpus.files import Settings, guessed_macros
from drywarp.experiments.corpus.result import Row
from drywarp.frontends.ptx.assembler import find_ptxas
from drywarp.support.child import Child
from drywarp.support.folders import OutOfTimeError, time_box

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


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, kept = tmp_path / "suite", tmp_path / "rows.jsonl"
    folder.mkdir()
    for name in ("a.cu", "b.cu"):
        (folder / name).write_text("int main() { return 0; }\n")
    command = ["corpus", str(folder), "--gpu", "a100", "--jobs", "1", "--rows", str(kept), "--json"]
    assert run(command) == 0
    first = json.loads(capsys.readouterr().out)
    # What the file holds is taken as it is; what it lacks is looked at, half a line of it too.
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join([lines[0], lines[1].replace("no __global__ function", "as kept"), lines[2][:20]]))
    assert run(command) == 0
    again = json.loads(capsys.readouterr().out)
    assert [row["reason"] for row in again["rows"]] == ["as kept", "no __global__ function"]
    assert [row["file"] for row in again["rows"]] == [row["file"] for row in first["rows"]]
    assert len(kept.read_text().splitlines()) == 3
    # Other settings give other rows.
    assert run([*command, "--time-limit", "7"]) == 2
    assert "expected a new file" in capsys.readouterr().err
    kept.write_text("no rows\n")
    assert run(command) == 2
    assert "not the rows of a run" in capsys.readouterr().err


def test_macros_of_build_files(tmp_path: Path) -> None:
    (tmp_path / "deep" / "src").mkdir(parents=True)
    (tmp_path / "deep" / "Makefile").write_text(
        "# -DNOT_THIS\nCFLAGS = -O3 -DSIZE=16 -D NAME -DHERE=$(PWD) -arch=sm_80 x-Dno\n"
    )
    (tmp_path / "CMakeLists.txt").write_text("target_compile_definitions(app PRIVATE FAST WIDTH=4)\n")
    found = guessed_macros(tmp_path / "deep" / "src" / "k.cu", tmp_path)
    assert found["SIZE"] == "16"
    assert found["NAME"] == ""
    assert not {"NOT_THIS", "HERE", "no"} & set(found)
    assert guessed_macros(tmp_path / "k.cu", tmp_path) == {"FAST": "", "WIDTH": "4"}


def test_macros_are_tried_where_a_source_needs_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Makefile").write_text("FLAGS = -DSIZE=16\n")
    (tmp_path / "needs.cu").write_text("__global__ void k(float* x) { x[0] = SIZE; }\n")
    (tmp_path / "fine.cu").write_text("__global__ void k(float* x) { x[0] = 1; }\n")
    rows = {row["file"]: row for row in corpus(capsys, tmp_path)["rows"]}
    assert rows["needs.cu"]["status"] == "analysed"
    assert rows["needs.cu"]["notes"] == ["macros taken from the build files: -DSIZE=16"]
    assert rows["needs.cu"]["kernels"][0]["static_time_s"] > 0
    assert rows["fine.cu"]["notes"] == []


def swallow() -> None:
    """Endless work that catches all that it can."""
    while True:
        with contextlib.suppress(Exception):
            sum(range(1000))


def test_a_box_of_time() -> None:
    with pytest.raises(OutOfTimeError), time_box(0.05):
        swallow()
    before = signal.getsignal(signal.SIGALRM)
    with time_box(1000):
        pass
    # What was in time leaves no alarm behind.
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == before


def test_what_is_analysed_stays_so_where_a_prediction_takes_too_long() -> None:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    process.start()
    watched = Watched(Child(process, here))
    there.send(("stage", "predict"))
    there.send(("analysed", {"status": "analysed", "notes": ("a note",)}))
    watched.started -= 100
    assert watched.look(Settings(time_limit_s=50))
    assert watched.found == {"status": "analysed", "notes": ("a note", "no static times: time limit of 50 s")}
    assert not process.is_alive()


def test_one_run_at_a_time_writes_a_file_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowsFile(path, "hash", Settings()) as first:
        first.add(Row("a.cu", "analysed", "done"))
        with pytest.raises(UsageError, match="another process is writing to it"):
            RowsFile(path, "hash", Settings()).__enter__()
    torn = path.read_bytes()
    path.write_bytes(torn + b'{"file": "b.cu"')
    with RowsFile(path, "hash", Settings()) as again:
        assert [*again.rows] == ["a.cu"]
    assert path.read_bytes() == torn
    path.write_bytes(torn[:20])  # stopped while its first line was written
    with RowsFile(path, "hash", Settings()) as anew:
        assert anew.rows == {}
