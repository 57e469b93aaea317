"""Comparisons as text, Markdown and JSON, against the files in `golden`; and what untrusted names may not do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import drywarp
from drywarp.analysis.compare.result import Comparison, GpuComparison, Line, LineChange, Side
from drywarp.report import terminal
from drywarp.report.comparison import change_text, render_comparison
from drywarp.report.comparison_markdown import comparison_markdown
from drywarp.report.text import json_text, markdown_code
from drywarp.support.text import plain

from .test_golden import ROOT, compare

SCHEMA = Path(terminal.__file__).parent / "schema" / "compare.schema.json"


@cache
def found(limit: float | None = 0.05) -> Comparison:
    """A regression on one GPU, with what differs from run to run set to fixed values."""
    examples = ROOT / "examples"
    made = drywarp.compare(
        examples / "transpose_padded.cu", examples / "transpose_naive.cu", gpu="a100,h100", fail_above=limit
    )

    def still(side: Side, file: str) -> Side:
        return msgspec.structs.replace(side, source_file=file, gpu_hash="0", versions={"drywarp": "0"})

    gpus = tuple(
        replace(gpu, old=still(gpu.old, "old/transpose.cu"), new=still(gpu.new, "new/transpose.cu"))
        for gpu in made.gpus
    )
    return replace(made, gpus=gpus, versions={"drywarp": "0"})


def named(text: str) -> Comparison:
    """A comparison whose every name is `text`."""
    (gpu, _) = found().gpus
    line = Line(text, 1, 1.0, 1.0, text, text)
    old, new = (
        msgspec.structs.replace(
            side, kernel=text, source_file=text, gpu=text, gpu_title=text, notes=(text,),
            prediction=msgspec.structs.replace(side.prediction, limiter=text),
        )
        for side in (gpu.old, gpu.new)
    )  # fmt: skip
    lines = (LineChange("edited", line, line, 1.0, 2.0),)
    return Comparison((GpuComparison(old, new, gpu.counts, lines, True, (text,)),), 0.05, {"drywarp": text})


def test_terminal_report(request: pytest.FixtureRequest) -> None:
    compare("compare.txt", render_comparison(found()).plain + "\n", request.config.getoption("--regenerate"))


def test_markdown_report(request: pytest.FixtureRequest) -> None:
    compare("compare.md", comparison_markdown(found()), request.config.getoption("--regenerate"))


def test_json_follows_its_schema() -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(json_text(found().to_dict())), schema)
    jsonschema.validate(json.loads(json_text(found(None).to_dict())), schema)


def test_every_table_of_the_markdown_has_rows_of_one_length() -> None:
    for table in re.findall(r"(?:^\|.*\n?)+", comparison_markdown(found()), re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


NASTY = [
    "<script>alert(1)</script>",
    "`code` | cell | **bold** _it_ ~~no~~",
    "@octocat fixes #1 https://example.org www.example.org :smile:",
    "[link](https://example.org) ![x](y)",
    "line\nbreak\r\n| --- |",
    "</code></details>",
    "&lt;b&gt; &#64;octocat",
    "\x1b[31mred\x1b[0m \u202egnihton \u200b",
    "\\| \\` <!-- -->",
]


@pytest.mark.parametrize("text", NASTY)
def test_names_stay_names_in_markdown(text: str) -> None:
    """Outside of <code> nothing of a name is left, and inside nothing but letters and references."""
    made = comparison_markdown(named(text))
    parser = _Seen()
    parser.feed(made)
    assert parser.tags <= {"code", "details", "summary", "sub"}
    for code in re.findall(r"<code>(.*?)</code>", made, re.DOTALL):
        assert re.fullmatch(r"(?:[^\W_]|[ ,;()=+/%…�]|&#\d+;)*", code), code
    outside = re.sub(r"<code>.*?</code>", "", made, flags=re.DOTALL)
    assert "@" not in outside
    assert "://" not in outside
    assert "octocat" not in outside
    assert "\x1b" not in made
    assert "\u202e" not in made


@given(st.text())
def test_code_reads_back_as_the_text(text: str) -> None:
    parser = _Seen()
    parser.feed(markdown_code(text, 10_000))
    assert parser.tags == {"code"}
    assert parser.text == plain(text, 10_000)
    assert "|" not in markdown_code(text)


@pytest.mark.parametrize("text", NASTY)
def test_names_are_plain_in_the_terminal(text: str) -> None:
    made = render_comparison(named(text)).plain
    assert not set(made) & {"\x1b", "\u202e", "\u200b", "\r"}


def test_nothing_but_no_change_reads_as_none() -> None:
    assert change_text(0.0) == "0%"
    assert change_text(1e-9) == "+<0.01%"
    assert change_text(-0.004) == "-0.40%"
    assert change_text(0.123) == "+12.3%"
    assert change_text(None) == "–"


def test_the_gate_is_said() -> None:
    assert "more than the 5% allowed" in render_comparison(found()).plain
    assert "within" in render_comparison(replace(found(), fail_above=10.0, gpus=tuple(
        replace(gpu, regressed=False) for gpu in found().gpus
    ))).plain  # fmt: skip
    assert "allowed" not in render_comparison(found(None)).plain
