"""Programs that are compiled once, and run as a user would."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from drywarp.cli import main

SOURCE = Path(__file__).parent / "programs.cu"


@dataclass
class Ran:
    """A finished `drywarp run`."""

    status: int
    output: str
    report: str
    result: dict[str, Any]


def nvcc() -> list[str] | None:
    """The compiler of the `ptx` extra, or the one on the path."""
    for place in (find_spec("nvidia.cu13").submodule_search_locations or ()) if find_spec("nvidia") else ():
        if (found := Path(place) / "bin" / "nvcc").exists():
            return [str(found), f"-L{Path(place) / 'lib'}"]
    return [found] if (found := shutil.which("nvcc")) else None


def built(source: Path, folder: Path, architecture: str = "sm_80") -> Path:
    """A program of one source, which is compiled once for all workers."""
    compiler = nvcc()
    if compiler is None or not shutil.which("g++"):
        pytest.skip("whole programs need nvcc (drywarp[ptx]) and g++")
    # Parallel workers have folders of their own, side by side in one.
    made = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / source.stem
    with open(f"{made}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            command = [*compiler, f"-arch={architecture}", "-o", str(made), str(source)]
            subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(SOURCE, tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def more(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs with several devices, and others that few programs resemble."""
    return built(SOURCE.with_name("more.cu"), tmp_path_factory.getbasetemp())


@pytest.fixture
def run(program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run a program under the command line in this process, which saves the imports; the program is a process."""

    def start(*words: str, options: tuple[str, ...] = (), started: Path = program) -> Ran:
        found = tmp_path / "result.json"
        found.unlink(missing_ok=True)
        words = ("run", "--json", str(found), *options, "--", str(started), *words)
        capfd.readouterr()
        status = main.run([*words])
        said = capfd.readouterr()
        result = json.loads(found.read_text()) if found.exists() else {}
        return Ran(status, said.out, said.err, result)

    return start
