"""How far a long run is, where nobody's terminal is there to show it."""

from __future__ import annotations

import io
import sys

import pytest

from drywarp.cli.progress import rated, stages


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
