"""The pages on Hopper and Blackwell show what their commands print now, and their kernels' times."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from docs.site.commands import blocks

from drywarp.cli.main import run
from tests.effort import first

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / name for name in ("hopper.md", "blackwell.md")]
REPORTS = [
    (command.text.strip(), shown.text)
    for page in PAGES
    for command, shown in pairwise(blocks(page))
    if shown.language == "text" and command.text.strip().startswith("drywarp analyze")
]


def figures(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def words(text: str) -> str:
    return re.sub(r"[\s\d.]+", " ", text).strip()


def test_the_examples_are_shown() -> None:
    assert [command.split()[2] for command, _ in REPORTS] == [
        "examples/hopper/wgmma_tile.cu",
        "examples/hopper/attention.cu",
        "examples/blackwell/tcgen05_tile.cu",
        "examples/blackwell/tcgen05_pair.cu",
    ]


@pytest.mark.parametrize(
    ("command", "shown"), first(REPORTS), ids=lambda text: text.split()[2][9:] if " " in text else ""
)
def test_the_reports_are_those_of_the_commands(
    command: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(command.split()[1:]) == 0
    printed = capsys.readouterr().out
    assert words(printed) == words(shown)
    assert figures(printed) == pytest.approx(figures(shown), rel=0.03)
