"""A calibration that was stopped goes on; files that are something else are said."""

from __future__ import annotations

import resource
import signal
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from drywarp.errors import InputFileError, UsageError
from drywarp.experiments.calibrate import calibrate
from drywarp.experiments.calibrate.device import Program, Run, Timing
from drywarp.experiments.calibrate.journal import Journal

from .model_card import ModelCard

COMMAND = import_module("drywarp.experiments.calibrate")


class Stopping(ModelCard):
    """Stops after so many launches."""

    def __init__(self, after: int = 10**9) -> None:
        super().__init__()
        self.left, self.asked = after, 0

    def time(self, run: Run, repeats: int) -> Sequence[Timing]:
        self.asked += 1
        if self.asked > self.left:
            raise KeyboardInterrupt
        return super().time(run, repeats)


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "x.journal.jsonl"
    with pytest.raises(KeyboardInterrupt):
        calibrate(Stopping(10), only=["issue"], repeats=3, journal=path)
    # It was stopped in the middle of a line.
    with path.open("a") as file:
        file.write('{"run": {"temp')
    again, whole = Stopping(), Stopping()
    found = calibrate(again, only=["issue"], repeats=3, journal=path)
    fresh = calibrate(whole, only=["issue"], repeats=3)
    assert again.asked == whole.asked - 10
    assert found.figures == fresh.figures
    last = Stopping()
    assert calibrate(last, only=["issue"], repeats=3, journal=path).figures == fresh.figures
    assert last.asked == 0


def test_a_head_that_was_torn_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "x.journal.jsonl"
    with Journal(path, ModelCard().attributes, {"repeats": 3}):
        head = path.read_bytes()
    path.write_bytes(head[:20])
    with Journal(path, ModelCard().attributes, {"repeats": 3}) as journal:
        assert (path.read_bytes(), journal.known) == (head, {})


def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x.journal.jsonl"
    with Journal(path, ModelCard().attributes, {}), pytest.raises(UsageError, match="another process is writing to it"):
        Journal(path, ModelCard().attributes, {}).__enter__()
    with Journal(path, ModelCard().attributes, {}):
        pass


def test_a_full_disk_is_said_in_one_line_and_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.journal.jsonl"
    runs = [Run(Program("chain"), grid, 32, {}) for grid in (1, 2)]
    with Journal(path, ModelCard().attributes, {}) as journal:
        journal.add(runs[0], [Timing(1.0, 2.0, 3.0)])
        before = path.read_bytes()
        limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
        try:
            with pytest.raises(UsageError, match=r"x\.journal\.jsonl: cannot be written \(File too large\)"):
                journal.add(runs[1], [Timing(1.0, 2.0, 3.0)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    with Journal(path, ModelCard().attributes, {}) as journal:
        assert journal.find(runs[0]) == [Timing(1.0, 2.0, 3.0)]


def test_another_devices_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.journal.jsonl"
    calibrate(ModelCard(), only=["issue"], repeats=3, journal=path)
    with pytest.raises(UsageError, match="timings of another repeats"):
        calibrate(ModelCard(), only=["issue"], repeats=4, journal=path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(COMMAND, "__version__", "0.0.1")
        with pytest.raises(UsageError, match=r"timings of another drywarp \(.*; this is 0\.0\.1\)"):
            calibrate(ModelCard(), only=["issue"], repeats=3, journal=path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(COMMAND, "tool_versions", lambda: {"nvrtc": "1.0"})
        with pytest.raises(UsageError, match="timings of another compiler"):
            calibrate(ModelCard(), only=["issue"], repeats=3, journal=path)
    with pytest.raises(UsageError, match="timings of another device"):
        calibrate(ModelCard(arch="sm_86", capability="8.6"), only=["issue"], repeats=3, journal=path)


@pytest.mark.parametrize(
    "content", [b"a line without its end", b'{"run": 1}', b"hello\n", b"[]\n", b"\xff\xfe\n", b'{"device": 1}\n']
)
def test_what_is_no_journal_is_said_with_its_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises((InputFileError, UsageError), match=r"notes\.txt"):
        calibrate(ModelCard(), only=["issue"], repeats=3, journal=path)
    assert path.read_bytes() == content
