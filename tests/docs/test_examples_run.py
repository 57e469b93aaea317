"""Every command and every Python program that the documents show: run where all it needs is here, else checked."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from docs.site.commands import Block, Command, all_commands, blocks, commands, documents, python_blocks
from typer.main import get_command

from drywarp.cli.main import run, whole_app
from drywarp.errors import ToolError
from tests.effort import first

ROOT = Path(__file__).parents[2]
COMMANDS = list({command.arguments: command for command in all_commands()}.values())
RUN = [command for command in COMMANDS if not command.missing and not command.excuse]
PROGRAMS = python_blocks()
EXTRA_ABSENT = ("pip install 'drywarp[", "clang")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the repository, so that what a command writes does not land there."""
    for name in ("examples", "src", "docs", "benchmarks", "tests"):
        os.symlink(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", first(RUN), ids=str)
def test_a_command_on_files_of_the_repository_runs(
    command: Command, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(list(command.arguments))
    out, err = capsys.readouterr()
    if status == 2 and any(part in err for part in EXTRA_ABSENT):
        pytest.skip(f"an extra is absent: {err.strip()}")
    # Where the machine is slow, phases are told after a while.
    told = [line for line in err.splitlines() if not re.fullmatch(r"drywarp: .*, \d+:\d\d.*", line)]
    assert (status, told) == (0, [])
    assert out
    for option in ("--html", "--trace", "--plot"):
        if option in command.arguments:
            assert (elsewhere / command.arguments[command.arguments.index(option) + 1]).stat().st_size > 1000


@cache
def all_verbs() -> dict[str, Any]:
    return get_command(whole_app()).commands  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_every_option_exists(command: Command) -> None:
    """The verb and its options, with values of the right type; nothing is run."""
    name, *words = command.arguments
    verbs = all_verbs()
    assert name in verbs
    # An ellipsis stands for more arguments, or for the value of an option.
    given = [word for before, word in zip(["", *words], words, strict=False) if word != "…" or before.startswith("-")]
    verbs[name].make_context(name, [word.replace("CLOCK", "1000") for word in given])


@pytest.mark.parametrize("block", first(PROGRAMS), ids=lambda block: f"{block.file}:{block.line}")
def test_a_python_program_runs(block: Block, elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = compile(block.text, f"{block.file}:{block.line}", "exec")
    if block.excuse:
        return  # it is a program, at least
    try:
        exec(code, {"__name__": "__main__"})
    except ToolError as error:
        if "pip install 'drywarp[" not in str(error):
            raise
        pytest.skip(f"an extra is absent: {error}")


def test_there_is_something_to_run_and_nothing_hides_behind_an_excuse() -> None:
    assert len(RUN) > 25
    assert sum(not block.excuse for block in PROGRAMS) >= 3
    excused = [command for command in COMMANDS if command.excuse]
    assert all(len(command.excuse) > 15 for command in excused)
    assert len(excused) < len(RUN) / 2


def test_what_counts_as_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs.site.commands.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n\n    drywarp gpus a100   # what\n    drywarp counts no.cu \\\n        --gpu a100\n\n"
        "<!-- not run: because -->\n\n    drywarp serve\n\ntext\n    drywarp not a block\n\n```sh\ndrywarp gpus\n```\n"
    )
    found = [command for block in blocks(page) for command in commands(block)]
    assert [(c.line, c.arguments, c.excuse, c.missing) for c in found] == [
        (3, ("gpus", "a100"), "", ()),
        (4, ("counts", "no.cu", "--gpu", "a100"), "", ("no.cu",)),
        (9, ("serve",), "because", ()),
        (15, ("gpus",), "", ()),
    ]


def test_documents_are_found() -> None:
    assert {"README.md", "docs/inputs.md"} <= {path.relative_to(ROOT).as_posix() for path in documents()}


def test_the_findings_that_the_page_on_advice_shows(capsys: pytest.CaptureFixture[str]) -> None:
    shown = next(block for block in blocks(ROOT / "docs" / "advice.md") if "What would help" in block.text)
    assert run(["analyze", str(ROOT / "examples" / "transpose_naive.cu")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert " ".join(shown.text.split()) in printed


def test_json_of_a_documented_command_is_one_object(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus", "a100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "a100"
