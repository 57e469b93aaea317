"""The page on Hopper shows what its commands print now, and its kernels' times."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from docs.site.commands import blocks

from drywarp.cli.main import run
from tests.effort import first

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "hopper.md"
SHOWN = list(blocks(PAGE))
REPORTS = [
    (command.text.strip(), shown.text)
    for command, shown in pairwise(SHOWN)
    if shown.language == "text" and command.text.strip().startswith("drywarp analyze")
]


def figures(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def words(text: str) -> str:
    return re.sub(r"[\s\d.]+", " ", text).strip()


def test_both_examples_are_shown() -> None:
    assert [command.split()[2] for command, _ in REPORTS] == [
        "examples/hopper/wgmma_tile.cu",
        "examples/hopper/attention.cu",
    ]


@pytest.mark.parametrize(
    ("command", "shown"), first(REPORTS), ids=lambda text: text.split()[2][16:] if " " in text else ""
)
def test_the_reports_are_those_of_the_commands(
    command: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(command.split()[1:]) == 0
    printed = capsys.readouterr().out
    assert words(printed) == words(shown)
    assert figures(printed) == pytest.approx(figures(shown), rel=0.03)
