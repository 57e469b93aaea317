"""Programs that are compiled once, and run as a user would."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

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


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = nvcc()
    if compiler is None or not shutil.which("g++"):
        pytest.skip("whole programs need nvcc (drywarp[ptx]) and g++")
    made = tmp_path_factory.mktemp("programs") / "programs"
    subprocess.run([*compiler, "-arch=sm_80", "-o", str(made), str(SOURCE)], check=True, capture_output=True)
    return made


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Any:
    def start(*words: str, options: tuple[str, ...] = (), started: Path = program) -> Ran:
        found = tmp_path / "result.json"
        found.unlink(missing_ok=True)
        words = ("run", "--json", str(found), *options, "--", str(started), *words)
        ended = subprocess.run([sys.executable, "-m", "drywarp", *words], capture_output=True, text=True, check=False)
        result = json.loads(found.read_text()) if found.exists() else {}
        return Ran(ended.returncode, ended.stdout, ended.stderr, result)

    return start
