"""How far a long run is, where nobody's terminal is there to show it."""

from __future__ import annotations

import re

import pytest

from drywarp.cli.progress import rated


def test_the_last_item_is_told_with_rate_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    with rated() as tell:
        # Two items were there before the run.
        tell("third", 3, 4)
        tell("fourth", 4, 4)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.fullmatch(r"\[4/4\] [\d.]+ rows/s, 0:00 left; fourth\n", captured.err)
