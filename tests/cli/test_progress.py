"""How far a long run is, with and without a terminal, and what an interrupted one has saved."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from drywarp.cli.progress import SILENT_S, Phases, clock_text, rated, resumable, stages
from drywarp.errors import InterruptedRunError
from drywarp.support.folders import Progress, tell_progress
from tests.effort import first

from .command import SAXPY


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_stages_are_shown_on_a_terminal_and_nowhere_else(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with stages() as tell:
        tell("emulating")
    assert ("emulating" in stream.getvalue()) == terminal
    assert bool(stream.getvalue()) == terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_it_can_be_switched_off(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRYWARP_PROGRESS", "off")
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with stages() as stage, rated() as tell:
        stage("emulating")
        tell("first", 1, 1)
    assert stream.getvalue() == ""


def test_what_it_is_set_to_is_checked(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "drywarp", "analyze", str(SAXPY), "--gpu", "a100"]
    environment = os.environ | {"DRYWARP_PROGRESS": "no"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "drywarp: DRYWARP_PROGRESS is 'no': expected off or nothing\n"


def test_the_last_item_is_told_with_rate_and_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = (k / 2 for k in range(100))  # half a second between two looks at it
    monkeypatch.setattr("drywarp.cli.progress.monotonic", lambda: next(clock))
    with rated() as tell:
        # Two items were there before the run.
        tell("third", 3, 4)
        tell("fourth", 4, 4)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "[4/4] 1.00 rows/s, 0:00 left; fourth\n"  # two of this run's rows in two seconds


class Clock:
    """A clock that moves when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("drywarp.cli.progress.monotonic", found)
    return found


def after(clock: Clock, seconds: float, phases: Phases) -> None:
    clock.now += seconds
    phases.look()


def test_without_a_terminal_a_long_run_prints_a_line_a_phase(clock: Clock) -> None:
    lines: list[str] = []
    phases = Phases(lines.append, lines=True)
    phases.stage("compiling for sm_80")
    after(clock, 4, phases)
    phases.stage("emulating a sample of blocks")
    after(clock, 5.5, phases)
    assert lines == []  # ten seconds are not over
    phases.hear(Progress(1e9, 2e9, at_most=True, stage="emulating"))
    after(clock, 2.5, phases)
    after(clock, 2.5, phases)
    phases.stage("modelling memory accesses")
    after(clock, 0.5, phases)  # no second: not worth a line
    phases.stage("simulating")
    phases.hear(Progress(1e9, 2e9, at_most=True, stage="emulating"))  # of no concern here
    after(clock, 3, phases)
    assert lines == ["emulating a sample of blocks, 0:08, at most 0:08 left", "simulating, 0:03"]


def test_one_of_several_has_the_time_left_of_all(clock: Clock) -> None:
    lines: list[str] = []
    phases = Phases(lines.append, lines=True)
    for number in range(1, 5):
        for stage in ("compiling", "emulating a sample of blocks"):
            phases.stage(f"configuration {number} of 4: {stage}")
            after(clock, 6, phases)
    # A line a configuration, not one for each of its stages.
    assert lines == [
        "configuration 1 of 4: emulating a sample of blocks, 0:06",
        "configuration 2 of 4: compiling, 0:18, about 0:54 left",
        "configuration 3 of 4: compiling, 0:30, about 0:30 left",
        "configuration 4 of 4: compiling, 0:42, about 0:14 left",
    ]


def test_only_this_process_listens(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Progress] = []
    monkeypatch.setattr(Phases, "hear", lambda self, told: heard.append(told))
    tell_progress(Progress(1, 3))
    with stages():
        tell_progress(Progress(2, 3))
        monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a fork
        tell_progress(Progress(3, 3))
    assert heard == [Progress(2, 3)]
    assert capsys.readouterr().err == ""


def test_rows_are_told_of_long_runs_only(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with rated(SILENT_S) as tell:
        tell("first", 1, 3)
        assert capsys.readouterr().err == ""
        clock.now += 12
        tell("second", 2, 3)
    assert capsys.readouterr().err == "[2/3] 0.17 rows/s, 0:06 left; second\n"


@pytest.mark.parametrize(
    ("out", "done", "said"),
    [
        ("rows.csv", 2, "interrupted after 2 of 5 rows; they are saved in rows.csv; rerun the same command to resume"),
        (None, 2, "interrupted after 2 of 5 rows; none was saved (use --rows FILE to save rows)"),
        ("rows.csv", 0, "interrupted before another row was done; rows.csv holds the rows of earlier runs, if any"),
        (None, 0, "interrupted before another row was done"),
    ],
)
def test_an_interruption_says_where_the_rows_are(out: str | None, done: int, said: str) -> None:
    def interrupted(tell: Callable[[str, int, int], None]) -> None:
        with resumable(tell, out, "--rows") as on_row:
            for number in range(done):
                on_row("row", number + 1, 5)
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError) as error:
        interrupted(lambda what, done, of: None)
    assert str(error.value) == said


def test_an_interruption_says_what_is_in_the_cache(clock: Clock) -> None:
    def interrupted(*names: str) -> None:
        with stages() as on_stage:
            for name in names:
                on_stage(name)
                clock.now += 5
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match=r"^interrupted after 0:05 while compiling; nothing was saved$"):
        interrupted("compiling")
    with pytest.raises(InterruptedRunError) as error:
        interrupted("compiling", "simulating")
    said = str(error.value)
    assert said.startswith("interrupted after 0:10 while simulating; compiled kernels and finished emulations")
    assert said.endswith("are in the cache, and the same command will not repeat them")


ENDLESS = """
__global__ void forever(const int* step, int* out) {
  unsigned at = threadIdx.x, sum = 0;
  while (at < 4000000000u) { at += step[at & 31]; sum += at; }
  out[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("verb", first(["analyze", "compare", "rank"]))
def test_ctrl_c_is_one_line(verb: str, tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "kernel.cu").write_text(ENDLESS)
    command = [sys.executable, "-m", "drywarp", verb, "kernel.cu"]
    command += ["kernel.cu", "--new", "--block 64"] if verb == "compare" else []
    command += "--grid 1 --block 32 --arg step=i32[32]:ones --arg out=i32[64] --blocks 1 --gpu a100".split()
    command += ["--lane-steps", "1e15", "--recorded-accesses", "1e9"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    until = time.monotonic() + 120
    while not list(own_cache.glob("kernels/*/*")) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1)  # the emulation has begun
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert out == ""
    last = said.splitlines()[-1]
    assert re.match(r"drywarp: interrupted after \d+:\d\d while .*emulating a sample of blocks; compiled kernels", last)
    assert "Traceback" not in said


def test_a_short_run_is_silent(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "drywarp", "analyze", str(SAXPY), "--json"]
    subprocess.run(command, capture_output=True, cwd=tmp_path, check=True)
    began = time.monotonic()
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert found.stdout.startswith("{")
    assert found.stderr == "" or time.monotonic() - began > 10


def test_clock_texts() -> None:
    assert [clock_text(seconds) for seconds in (0.4, 59.6, 187, 7500)] == ["0:00", "1:00", "3:07", "2 h 05"]
