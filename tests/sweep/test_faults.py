"""Sweeps that are killed, run out of disk, or find a damaged cache: nothing is lost, nothing stands twice."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import drywarp
from drywarp.cli.main import run
from drywarp.errors import DrywarpError
from tests.counting import calls_of, no_hang
from tests.effort import first
from tests.rows.worker_hooks import die_at, hang_at

from .spaces import FILE, N, space

MANY = {"bx": [32 * k for k in range(1, 11)], "n": [N, 2 * N]}
"""Forty rows on two GPUs."""
KILLS = 20


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table of a sweep that nothing interrupts; leaves the kernel compiled and emulated."""
    out = tmp_path_factory.mktemp("whole") / "rows.csv"
    drywarp.sweep(space(parameters=MANY), jobs=0, out=out)
    return out.read_bytes()


def forked(work: Callable[[], Any]) -> int:
    """The process id of a child that does this and nothing else: no start-up, so that many can be killed."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    finally:
        os._exit(0)


def ended_at_call(number: int, work: Callable[[], Any]) -> None:
    """The work, killed when it calls its function of this number, Python's and C's counted alike."""
    left = number

    def called(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        if event in ("call", "c_call"):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(called)
    work()


def finished(out: Path) -> bool:
    """Whether a file holds all forty rows; Parquet is whole when what it is written from is gone."""
    if out.suffix == ".parquet":
        return out.exists() and not out.with_name(out.name + ".part.jsonl").exists()
    return out.exists() and out.read_text().count("\n") == 40 + (out.suffix == ".csv")


@pytest.mark.parametrize("suffix", first(["csv", "jsonl", "parquet"]))
def test_killed_at_random_moments(tmp_path: Path, whole: bytes, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    out = tmp_path / f"rows.{suffix}"
    expected = drywarp.sweep(space(parameters=MANY), jobs=0, out=tmp_path / f"whole.{suffix}")

    def sweep() -> drywarp.Sweep:
        return drywarp.sweep(space(parameters=MANY), jobs=0, out=out)

    usual = calls_of(sweep)
    moments, cut = random.Random(suffix), 0
    for _ in range(5 * KILLS):
        # Where the last one came to its end, there is nothing left to kill: begin anew.
        if finished(out):
            out.unlink()
        last = moments.randrange(int(0.4 * usual))
        child = forked(lambda last=last: ended_at_call(last, sweep))
        _, status = os.waitpid(child, 0)
        cut += os.WIFSIGNALED(status)
        if cut == KILLS:
            break
    assert cut == KILLS
    again = drywarp.sweep(space(parameters=MANY), jobs=0, out=out)
    assert again.cells() == expected.cells()
    assert out.read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()
    if suffix == "csv":
        assert out.read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"rows.{suffix}", f"whole.{suffix}"]


def many_file(folder: Path) -> Path:
    path = folder / "space.toml"
    path.write_text(FILE.replace("bx = [64, 128, 256]", f"bx = {MANY['bx']}"))
    return path


SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]


@pytest.mark.parametrize(("ended_by", "status"), first(SIGNALS))
def test_the_program_ended_by_signals(tmp_path: Path, whole: bytes, ended_by: signal.Signals, status: int) -> None:
    out = tmp_path / "rows.csv"
    command = [sys.executable, "-m", "drywarp", "sweep", str(many_file(tmp_path)), "--out", str(out), "--jobs", "1"]
    # The run stands still at its fourth row.
    hanging = {**os.environ, **hang_at(tmp_path, 4)}
    # A shell that runs the tests in the background has interrupts ignored, and programs inherit that.
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=hanging,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    with no_hang():
        while not out.exists() or out.read_bytes().count(b"\n") < 4:
            time.sleep(0.01)
    process.send_signal(ended_by)
    said = process.communicate(timeout=600)[1]
    done = out.read_bytes().count(b"\n") - 1
    assert done == 3
    assert process.returncode == status
    if ended_by != signal.SIGKILL:
        *rows, last = said.splitlines()
        assert f"interrupted after {done} of 40 rows; they are saved in {out}; rerun the same command to resume" in last
        assert all(row.startswith("[") for row in rows)  # of a slow machine
    assert run(command[3:]) == 0
    assert out.read_bytes() == whole


def limited(out: Path, limit: int) -> str:
    """What a sweep says that may write files of so many bytes at most."""
    read, write = os.pipe()

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            drywarp.sweep(space(parameters=MANY), jobs=0, out=out)
        except DrywarpError as error:
            os.write(write, str(error).encode())

    child = forked(work)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_no_room_left(tmp_path: Path, whole: bytes, suffix: str) -> None:
    out = tmp_path / f"rows.{suffix}"
    said = limited(out, 3000)
    assert said == f"{out}: cannot be written (File too large); its rows are saved; rerun the same command to resume"
    held = out.read_bytes()
    assert held.endswith(b"\n")
    assert 3 <= held.count(b"\n") < 40
    again = drywarp.sweep(space(parameters=MANY), jobs=0, out=out)
    assert again.there >= 2
    assert len(again.rows) == 40
    nothing = tmp_path / f"nothing.{suffix}"
    assert "cannot be written (File too large)" in limited(nothing, 10)
    assert nothing.read_bytes() == b""
    if suffix == "csv":
        assert out.read_bytes() == whole


def test_no_room_for_the_last_step(tmp_path: Path, whole: bytes) -> None:
    # All rows fit, and their table in canonical order, which is a second file, does not.
    out = tmp_path / "rows.csv"
    lines = whole.splitlines(keepends=True)
    out.write_bytes(lines[0] + b"".join(reversed(lines[1:])))
    assert "cannot be written (File too large)" in limited(out, len(whole) - 1)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
    drywarp.sweep(space(parameters=MANY), jobs=0, out=out)
    assert out.read_bytes() == whole


SMALL = {"parameters": {"bx": [64, 128], "n": [N]}, "gpus": ["a100"]}


def test_a_cache_that_cannot_be_written(own_cache: Path, tmp_path: Path) -> None:
    expected = drywarp.sweep(space(**SMALL), jobs=0)
    # Root may write anywhere: a file in the place of the folder refuses everyone.
    (tmp_path / "file").touch()
    os.environ["DRYWARP_CACHE_DIR"] = str(tmp_path / "file")
    notes: list[str] = []
    found = drywarp.sweep(space(**SMALL), jobs=0, on_note=notes.append)
    assert found.rows == expected.rows
    assert found.notes == tuple(notes)
    assert "cache folder is not writable" in notes[0]


@pytest.mark.parametrize("damage", first(["bits", "cut", "empty"]))
def test_a_damaged_cache(own_cache: Path, damage: str) -> None:
    expected = drywarp.sweep(space(**SMALL), jobs=0)
    entries = list(own_cache.rglob("*.msgpack"))
    assert len(entries) >= 3
    for path in entries:
        data = bytearray(path.read_bytes())
        if damage == "bits":
            for at in range(len(data) // 7, len(data), max(1, len(data) // 97)):
                data[at] ^= 1 << at % 8
        path.write_bytes(data if damage == "bits" else data[: len(data) // 2] if damage == "cut" else b"")
    found = drywarp.sweep(space(**SMALL), jobs=0)
    assert found.rows == expected.rows
    assert found.notes
    assert all(note.startswith(str(own_cache)) and note.endswith("damaged, regenerated") for note in found.notes)
    assert not drywarp.sweep(space(**SMALL), jobs=0).notes


def test_a_worker_that_dies_once_costs_nothing(tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each of the first two workers is killed at its first row, as the system does without memory.
    for name, value in die_at(tmp_path, 1, times=2).items():
        monkeypatch.setenv(name, value)
    notes: list[str] = []
    out = tmp_path / "rows.csv"
    drywarp.sweep(space(parameters=MANY), jobs=1, out=out, on_note=notes.append)
    assert out.read_bytes() == whole
    assert notes == ["a row's process failed (crashed with SIGKILL); retrying the row"]
    assert (tmp_path / "mark1").exists()


def test_a_second_sweep_of_the_same_file_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"

    def again(row: object, done: int, of: int) -> None:
        if done == 1:
            for restart in (False, True):
                with pytest.raises(DrywarpError, match="another process is writing"):
                    drywarp.sweep(space(**SMALL), jobs=0, out=out, restart=restart)

    assert len(drywarp.sweep(space(**SMALL), jobs=0, out=out, on_row=again).rows) == 2
