"""What `pip install drywarp` alone gives: every verb that needs no extra works where none is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODULES = {"cuda-bindings": "cuda", "nvidia-ml-py": "pynvml", "mkdocs-material": "material", "pyyaml": "yaml"}
"""Modules that are not called as their package is."""

BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from drywarp.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def absent_modules() -> list[str]:
    """The modules of every extra's packages."""
    needs = {need for extra in PROJECT["optional-dependencies"].values() for need in extra}
    names = {re.split(r"[^A-Za-z0-9_-]", need)[0] for need in needs} - {"drywarp", "nvidia-cuda-nvcc"}
    return sorted(MODULES.get(name, name.replace("-", "_")) for name in names)


def drywarp(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = BLOCKED.format(absent=absent_modules())
    command = [sys.executable, "-c", program, *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_extras_are_found() -> None:
    assert {"matplotlib", "pandas", "pyarrow", "triton", "cuda", "pynvml"} <= set(absent_modules())


@pytest.mark.parametrize(
    "command",
    [
        "analyze SAXPY --gpu a100",
        "analyze SAXPY --gpu a100 --html report.html --trace trace.json",
        "analyze SAXPY --gpu a100 --static",
        "counts SAXPY",
        "models SAXPY",
        "rank SAXPY --gpu a100",
        "compare SAXPY SAXPY --gpu a100",
        "gpus",
        "explain",
        "workloads",
        "cusp --alpha 8",
        "cache",
        "sweep --help",
        "validate --help",
        "measure --help",
        "serve --help",
    ],
)
def test_a_verb_works_without_any_extra(command: str, tmp_path: Path) -> None:
    saxpy = str(ROOT / "examples" / "saxpy.cu")
    ran = drywarp(tmp_path, *(saxpy if word == "SAXPY" else word for word in command.split()))
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr


def test_a_figure_says_what_to_install(tmp_path: Path) -> None:
    ran = drywarp(tmp_path, "analyze", str(ROOT / "examples" / "saxpy.cu"), "--figure", "occupancy=curve.svg")
    assert ran.returncode == 2
    assert ran.stderr == "drywarp: figures need Matplotlib: pip install 'drywarp[plot]'\n"


def test_the_json_answer_is_the_same(tmp_path: Path) -> None:
    import drywarp as package

    ran = drywarp(tmp_path, "analyze", str(ROOT / "examples" / "saxpy.cu"), "--json")
    assert json.loads(ran.stdout)["prediction"]["time_s"] == package.analyze(ROOT / "examples" / "saxpy.cu").time_s
