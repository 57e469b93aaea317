"""What `pip install drywarp` alone gives: every verb that needs no extra works where none is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

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
"""
ONE = BLOCKED + "sys.exit(run(sys.argv[1:]))"
IN_TURN = (
    BLOCKED
    + """
import contextlib, io, json
results = []
for line in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as complaints:
        try:
            status = run(line.split())
        except SystemExit as end:
            status = end.code or 0
    results.append((status, complaints.getvalue()))
print(json.dumps(results))
"""
)


def absent_modules() -> list[str]:
    """The modules of every extra's packages."""
    needs = {need for extra in PROJECT["optional-dependencies"].values() for need in extra}
    names = {re.split(r"[^A-Za-z0-9_-]", need)[0] for need in needs} - {"drywarp", "nvidia-cuda-nvcc"}
    return sorted(MODULES.get(name, name.replace("-", "_")) for name in names)


def drywarp(folder: Path, *arguments: str, program: str = ONE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program.format(absent=absent_modules()), *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_extras_are_found() -> None:
    assert {"matplotlib", "pandas", "pyarrow", "triton", "cuda", "pynvml"} <= set(absent_modules())


SAXPY = ROOT / "examples" / "saxpy.cu"
COMMANDS = (
    f"analyze {SAXPY} --gpu a100",
    f"analyze {SAXPY} --gpu a100 --html report.html --trace trace.json",
    f"analyze {SAXPY} --gpu a100 --static",
    f"counts {SAXPY}",
    f"models {SAXPY}",
    f"rank {SAXPY} --gpu a100",
    f"compare {SAXPY} {SAXPY} --gpu a100",
    "gpus",
    "explain",
    "workloads",
    "cusp --alpha 8",
    "cache",
    "sweep --help",
    "validate --help",
    "measure --help",
    "serve --help",
)


def test_verbs_work_without_any_extra(tmp_path: Path) -> None:
    ran = drywarp(tmp_path, *COMMANDS, program=IN_TURN)
    assert ran.returncode == 0, ran.stderr
    assert dict(zip(COMMANDS, json.loads(ran.stdout), strict=True)) == {command: [0, ""] for command in COMMANDS}


def test_a_figure_says_what_to_install(tmp_path: Path) -> None:
    ran = drywarp(tmp_path, "analyze", str(SAXPY), "--figure", "occupancy=curve.svg")
    assert ran.returncode == 2
    assert ran.stderr == "drywarp: figures need Matplotlib: pip install 'drywarp[plot]'\n"


def test_the_json_answer_is_the_same(tmp_path: Path) -> None:
    import drywarp as package

    ran = drywarp(tmp_path, "analyze", str(SAXPY), "--json")
    assert json.loads(ran.stdout)["prediction"]["time_s"] == package.analyze(SAXPY).time_s
