"""What documents call by name is there: Python files, and modules and names of the package."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from docs.site.links import markdown_files

ROOT = Path(__file__).parents[2]
PAGES = [path for path in markdown_files() if path.name != "CHANGELOG.md"]
FOLDERS = ("src", "tests", "benchmarks", "docs", "examples", "suite")
FILES = {path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
FILES |= {path.name for path in ROOT.glob("*.py")}
ENTRY_POINTS = {"drywarp.rules", "drywarp.formats", "drywarp.gpus"}
"""Groups of entry points, which are no modules."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_files_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"`([\w./-]+\.py)`", page.read_text(encoding="utf-8")))
    assert [
        name for name in sorted(named) if not any(file == name or file.endswith("/" + name) for file in FILES)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_the_package_that_a_page_gives_exist(page: Path) -> None:
    named = re.findall(r"\bdrywarp((?:\.[A-Za-z_]\w*)+)", page.read_text(encoding="utf-8"))
    missing = [f"drywarp{name}" for name in sorted(set(named)) if not _exists(name.split(".")[1:])]
    assert set(missing) - ENTRY_POINTS == set()


def _exists(parts: list[str]) -> bool:
    found = import_module("drywarp")
    for number, part in enumerate(parts, 1):
        if not hasattr(found, part):
            try:
                import_module(".".join(["drywarp", *parts[:number]]))
            except ImportError:
                return False
        found = getattr(found, part)
    return True


def test_the_stages_that_a_benchmark_times_are_there() -> None:
    stages = import_module("benchmarks.row_speed").STAGES
    assert [name for name, module, function in stages if module and not hasattr(import_module(module), function)] == []
