"""How far a long run is, where nobody's terminal is there to show it."""

from __future__ import annotations

import pytest

from drywarp.cli.progress import rated


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
