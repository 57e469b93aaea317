"""`drywarp calibrate`: files that come out, and bad input in one line with exit status 2."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from drywarp.cli.main import run
from drywarp.experiments.calibrate import calibrate, experiment_names
from drywarp.report.html.calibration import calibration_page

from .model_card import ModelCard


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--simulated", "nosuch"], "unknown GPU 'nosuch'"),
        (["--simulated", "papers/example"], "cannot be simulated here"),
        (["--simulated", "mi210"], "cannot be simulated here"),
        (["--simulated", "a100", "--only", "chain"], "unknown experiment 'chain'; there are: issue, chains"),
        (["--simulated", "a100", "--repeats", "1"], "--repeats"),
    ],
)
def test_bad_input(arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate", "-o", str(tmp_path / "x.toml"), *arguments]) == 2
    complaint = capsys.readouterr().err
    assert said in complaint
    assert complaint.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_experiments_are_named_without_a_file_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate", "--list"]) == 0
    assert capsys.readouterr().out.split() == experiment_names()
    assert run(["calibrate", "--simulated", "a100"]) == 2
    complaint = capsys.readouterr().err
    assert "missing option -o" in complaint
    assert complaint.count("\n") == 1


def test_bad_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate", "-o", str(tmp_path / "x.txt"), "--simulated", "a100"]) == 2
    assert "expected a file name that ends in .toml" in capsys.readouterr().err
    assert run(["calibrate", "-o", str(tmp_path / "no" / "x.toml"), "--simulated", "a100"]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_a_part_of_it_writes_report_and_data_and_says_why_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = ["calibrate", "-o", str(tmp_path / "x.toml"), "--simulated", "a100", "--only", "blocks", "--json"]
    assert run(wanted) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema_version"] == 1
    assert answer["device"]["simulated"] is True
    launch = next(f for f in answer["figures"] if f["key"] == "device.block_launch_latency")
    assert launch["value"] == pytest.approx(201, rel=0.05)
    assert launch["ns"] == pytest.approx(launch["value"] / 1.41, rel=0.01)
    assert json.loads((tmp_path / "x.calibration.json").read_text()) == answer
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"x.html", "x.calibration.json", "x.journal.jsonl"}
    # The same seed gives the same, from the journal or not.
    (tmp_path / "x.journal.jsonl").unlink()
    assert run(wanted[:-1]) == 0
    assert json.loads((tmp_path / "x.calibration.json").read_text())["figures"] == answer["figures"]
    assert "no GPU file written: memory.dram.read_gbs" in capsys.readouterr().out


class Tags(HTMLParser):
    """Collects what a page fetches, and its circles."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.circles = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.circles += tag == "circle"
        self.fetched += [v for k, v in attrs if k in ("src", "href") and v and not v.startswith(("#", "data:"))]


def test_the_report_is_self_contained_and_holds_every_point() -> None:
    found = calibrate(ModelCard(), only=["barrier", "blocks"], repeats=3)
    page = calibration_page(found)
    tags = Tags()
    tags.feed(page)
    assert tags.fetched == []
    assert tags.circles == sum(len(curve.x) for curve in found.curves)
    assert "<script" not in page
    assert "max" not in page or "nan" not in page.lower()
    for curve in found.curves:
        assert curve.title in page
