"""Option values as users type them: what they mean, and what is refused."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from drywarp.cli import values
from drywarp.cli.main import run
from drywarp.cli.papers import parse_alphas
from drywarp.errors import UsageError

from .test_every_verb import SAXPY, say


@pytest.mark.parametrize(
    ("text", "fraction"), [("5%", 0.05), ("0%", 0.0), ("12.5%", 0.125), ("250%", 2.5), (None, None)]
)
def test_percentages(text: str | None, fraction: float | None) -> None:
    assert values.parse_percent(text, "--fail-above") == fraction


@pytest.mark.parametrize(
    ("text", "warps"),
    [("8", [8]), ("8,16,64", [8, 16, 64]), ("8-11", [8, 9, 10, 11]), ("7-7", [7]), (None, None)],
)
def test_occupancies(text: str | None, warps: list[int] | None) -> None:
    found = values.parse_occupancies(text)
    assert found == warps if found is None else list(found) == warps


@pytest.mark.parametrize(
    ("text", "blocks"), [("12", 12), ("1", 1), ("all", "all"), ("0,5,9", [0, 5, 9]), ("0,0", [0, 0]), (None, None)]
)
def test_blocks(text: str | None, blocks: object) -> None:
    assert values.parse_blocks(text) == blocks


def test_names_with_values() -> None:
    assert values.pairs(["x=f32[8]:random", "n=a=b", "e="], "--arg") == {"x": "f32[8]:random", "n": "a=b", "e": ""}
    assert values.pairs(["TILE=16", "FAST"], "-D", value_needed=False) == {"TILE": "16", "FAST": ""}
    assert values.pairs(None, "--arg") == {}
    assert values.numbers_by_name(["a100=1.2", "t4=3"], "--price") == {"a100": 1.2, "t4": 3.0}
    assert values.parse_trips(["L1=64", "a.cu:21=0"]) == {"L1": 64, "a.cu:21": 0}
    assert values.parse_shares(["21=0.25"]) == {"21": 0.25}


def test_a_launch_of_ones_own() -> None:
    assert values.launch_values(None, "--new") == {}
    found = values.launch_values("--grid 64,2 --block 32 -D TILE=16 --arg n=8 --shared 0", "--new")
    assert (found["defines"], found["args"], found["shared"]) == ({"TILE": "16"}, {"n": "8"}, 0)
    assert {"grid", "block"} <= set(found)
    assert "entry" not in found


def test_ranges_of_alpha_are_geometric_with_both_ends() -> None:
    found = parse_alphas("1-8")
    assert (found[0], found[-1], len(found)) == (1, 8, 7)  # steps of √2: six of them from 1 to 8
    assert all(b / a == pytest.approx(math.sqrt(2)) for a, b in pairwise(found))
    assert parse_alphas("1-7")[-2:] == pytest.approx([4 * math.sqrt(2), 7])
    assert (parse_alphas("4-4"), parse_alphas("8,16.5")) == ([4], [8, 16.5])


@pytest.mark.parametrize("value", [0.5, 1e-9, 3, None])
def test_what_is_positive_is_taken(value: float | None) -> None:
    values.check_positive(value, "--clock")


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_what_is_not_positive_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match=r"^--clock .*: expected a positive number$"):
        values.check_positive(value, "--clock")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: values.parse_percent("5", "-f"), "a percentage such as 5%"),
        (lambda: values.parse_percent("-5%", "-f"), "a percentage such as 5%"),
        (lambda: values.parse_percent("inf%", "-f"), "a percentage such as 5%"),
        (lambda: values.parse_occupancies("8-9-10"), "expected numbers of warps"),
        (lambda: values.parse_occupancies("many"), "expected numbers of warps"),
        (lambda: values.parse_blocks("0"), "expected a number of blocks"),
        (lambda: values.parse_blocks("3,-1"), "expected a number of blocks"),
        (lambda: values.parse_blocks("some"), "expected a number of blocks"),
        (lambda: values.pairs(["n"], "--arg"), "expected NAME=VALUE"),
        (lambda: values.pairs(["=1"], "-D", value_needed=False), "expected NAME=VALUE"),
        (lambda: values.pairs(["n=1", "n=2"], "--arg"), "n is given twice"),
        (lambda: values.numbers_by_name(["a=x"], "--price"), "expected a number"),
        (lambda: values.parse_trips(["L1=1.5"]), "expected a whole number"),
        (lambda: values.parse_shares(["21=half"]), "expected a fraction between 0 and 1"),
        (lambda: parse_alphas("0-8"), "expected a range of positive numbers"),
        (lambda: parse_alphas("1-1e9"), "expected a range of positive numbers"),
        (lambda: parse_alphas("a-b"), "expected a range such as 1-512"),
    ],
)
def test_what_is_malformed_is_refused(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call()


# What goes with what, asked of every verb before anything takes time.
USAGE = [
    ("calibrate", "missing option -o"),
    ("calibrate -o none/mine.toml", "the folder none does not exist"),
    ("analyze a.cu --trip L1=3", "--trip, --taken, --access and --list-loops require --static"),
    ("analyze a.cu --list-loops", "--list-loops require --static"),
    ("analyze a.cu --other-gpu h100", "--other-gpu requires --advice"),
    ("analyze a.cu --events 5", "--events requires --trace FILE"),
    ("analyze a.cu --trace t.json --events 999", "expected 1000 or more with --trace"),
    ("analyze a.cu --trace none/t.json", "--trace none/t.json: expected a file in an existing folder"),
    ("analyze a.cu --html .", "--html .: expected a file in an existing folder"),
    ("analyze a.cu --html a.html --launches l.toml", "--html shows one launch"),
    ("analyze a.cu --launches l.toml --grid 3", "--launches replaces --grid"),
    ("analyze a.cu --lane-steps 0", "--lane-steps 0: expected a positive number"),
    ("models papers/example --trip L1=3", "--trip requires --static"),
    ("counts a.cu --seconds 0", "--seconds 0: expected a positive number"),
    ("rank a.cu --by speed", "--by 'speed': expected time, energy or cost"),
    ("compare a.cu b.cu --json --markdown", "--json and --markdown: expected only one of them"),
    ("compare - -", "standard input can hold only one kernel: expected - at most once"),
    ("sweep a.toml --kept a.csv", "--kept requires --prune"),
    ("sweep a.toml --prune 0", "--prune 0: expected a fraction above 0 and at most 1"),
    ("sweep a.toml --prune 1.5", "--prune 1.5: expected a fraction above 0 and at most 1"),
    ("sweep a.toml --time-limit 0", "--time-limit 0: expected a positive number"),
    ("validate a.csv b.csv", "2 tables, expected one (two with --compare)"),
    ("validate a.csv --compare", "--compare: 1 files, expected two outputs of this verb"),
    ("validate a.csv b.csv --compare --plot a.svg", "--plot cannot be combined with --compare"),
    ("validate a.csv --report --kernel a.cu", "--report reads an output of this verb: it cannot be"),
    ("corpus . --time-limit 0", "--time-limit 0: expected a positive number"),
    ("corpus . --static-limit -1", "--static-limit -1: expected a positive number"),
    ("corpus . --memory-limit 0", "--memory-limit 0: expected a positive number"),
]


@pytest.mark.parametrize(("line", "expected"), USAGE)
def test_wrong_usage_is_one_line(line: str, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    said = say(line)
    assert (said.status, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
    assert expected in said.err
    assert not list(tmp_path.iterdir())


def test_a_kernel_from_standard_input_is_the_kernel_of_its_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SAXPY.read_bytes())))
    assert run(["compare", "-", str(SAXPY), "--grid", "2000", "--fail-above", "0%"]) == 0
    assert "takes the same time" in capsys.readouterr().out


def test_standard_input_that_is_no_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    said = say("analyze -")
    assert (said.status, said.out) == (2, "")
    assert "standard input: not text" in said.err
