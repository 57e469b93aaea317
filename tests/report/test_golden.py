"""Whole answers, as text and JSON, against the files in `golden`.

`pytest tests/report --regenerate` rewrites them. What differs from run to run (versions, our own time)
is set to fixed values first; numbers are compared as they print.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

import drywarp
from drywarp.analysis.result import Timing
from drywarp.report import terminal
from drywarp.report.gpus import gpu_dict, render_gpu
from drywarp.report.text import json_text

from .reading import found

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
SCHEMA = Path(terminal.__file__).parent / "schema" / "analyze.schema.json"
CASES = [("tiled_matmul", "a100"), ("tiled_matmul", "h100"), ("saxpy", "a100"), ("collatz", "h100")]


@cache
def answer(example: str, gpu: str) -> drywarp.Analysis:
    result = drywarp.analyze(ROOT / "examples" / f"{example}.cu", gpu=gpu)
    file = f"examples/{example}.cu"
    return replace(
        result,
        timing=Timing(0.0, 0.0, 0.0, 0.0),
        versions={"drywarp": "0"},
        source_file=file,
        lines=tuple(replace(cost, file=file) for cost in result.lines),
        findings=tuple(
            replace(found, places=tuple(replace(place, file=file) for place in found.places))
            for found in result.findings
        ),
    )


def compare(name: str, text: str, regenerate: bool) -> None:
    path = GOLDEN / name
    if regenerate:
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def printed(result: drywarp.Analysis, width: int, **how: bool) -> str:
    out = io.StringIO()
    terminal.print_analysis(result, Console(file=out, width=width, highlight=False), **how)
    return out.getvalue()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("example", "gpu"), CASES)
def test_terminal_report(example: str, gpu: str, full: bool, request: pytest.FixtureRequest) -> None:
    name = f"{example}-{gpu}{'-full' if full else ''}.txt"
    compare(name, printed(answer(example, gpu), 80, full=full), request.config.getoption("--regenerate"))


@pytest.mark.parametrize("width", [40, 60, 100, 120])
@pytest.mark.parametrize(("example", "gpu"), CASES)
def test_no_width_loses_a_column(example: str, gpu: str, width: int) -> None:
    """Only source lines are cut; all other words stand there at every width, and no line is longer than it."""
    for how in ({}, {"full": True}, {"curve": True}):
        text, wide = printed(answer(example, gpu), width, **how), printed(answer(example, gpu), 10_000, **how)
        assert all(len(line) <= width and line == line.rstrip() for line in text.splitlines())
        words = Counter(re.findall(r"[\w%×–.]+", text))
        units = {
            "part",
            "units",
            "unit",
            "slots",
            "datapath",
            "cores",
        }
        for line in wide.splitlines():
            source = re.match(r"\s*\d+%  (\w+) +(\d+)  ", line)
            wanted = source.groups() if source else re.findall(r"[\w%×–.]+", line)
            # Below 60 columns the parts of the GPU go by their short names.
            short_names = width < 60 and "(" in line and re.search(r"%  [█▏▎▍▌▋▊▉]", line)
            missing = [word for word in wanted if not words[word] and word not in units]
            assert not missing or short_names, (line, missing)


def test_the_short_answer_is_short() -> None:
    """About ten lines, without those that a terminal wraps, and nothing is broken where output is piped."""
    for example, gpu in CASES:
        lines = [line for line in printed(answer(example, gpu), terminal.UNWRAPPED).splitlines() if line]
        assert 10 <= len([line for line in lines if not line.startswith("note: ")]) <= 13


def test_the_readme_shows_the_answer() -> None:
    block = found(r"^```\n(\d+ µs  predicted[\s\S]*?)^```", (ROOT / "README.md").read_text())[1]
    assert block == (GOLDEN / "tiled_matmul-a100.txt").read_text()


@pytest.mark.parametrize(("example", "gpu"), CASES)
def test_json_report(example: str, gpu: str, request: pytest.FixtureRequest) -> None:
    text = json_text({**answer(example, gpu).to_dict(), "gpu_hash": "0"})
    compare(f"{example}-{gpu}.json", text, request.config.getoption("--regenerate"))


@pytest.mark.parametrize(("example", "gpu"), CASES)
def test_json_follows_its_schema(example: str, gpu: str) -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(json_text(answer(example, gpu).to_dict())), schema)


def test_markup_in_names_stays_text() -> None:
    out = io.StringIO()
    named = replace(answer("saxpy", "a100"), kernel="f<[red]x[/red]>", source_file="[bold]a.cu", gpu_title="[link]G")
    for full in (False, True):
        terminal.print_analysis(named, Console(file=out, width=120), full=full)
    assert "f<[red]x[/red]>" in out.getvalue()
    assert "[bold]a.cu" in out.getvalue()
    assert "[link]G" in out.getvalue()


@pytest.mark.parametrize("name", drywarp.gpu_names())
def test_every_number_of_a_gpu_is_shown_with_its_source(name: str) -> None:
    gpu = drywarp.load_gpu(name)
    text = render_gpu(gpu).plain
    for key, fact in gpu.facts():
        assert any(line.startswith(key + " ") and line.endswith(fact.source) for line in text.splitlines())
    assert set(gpu_dict(gpu)["facts"]) == {key for key, _ in gpu.facts()}
