"""The cache under several processes at once, and after one was killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drywarp.support.folders import cache_folder

EXAMPLE = Path(__file__).parents[2] / "examples" / "half2.cu"
COMMAND = [sys.executable, "-m", "drywarp", "analyze", str(EXAMPLE), "--json"]
KILLED = """
import os, signal, sys
place = os.environ.get("KILLED_WHERE")
def look(event, arguments):
    if event == "os.rename" and place in str(arguments[0]):
        os.kill(os.getpid(), signal.SIGKILL)
if place:
    sys.addaudithook(look)
"""


def start(folder: Path, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **variables, "DRYWARP_CACHE_DIR": str(folder)}
    return subprocess.Popen(COMMAND, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> dict[str, object]:
    output, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors
    document: dict[str, object] = json.loads(output)
    del document["timing"]
    return document


@pytest.fixture(scope="module")
def expected() -> dict[str, object]:
    """What a process says that is alone."""
    return answer(start(cache_folder()))


def test_processes_share_a_cold_cache_and_agree(tmp_path: Path, expected: dict[str, object]) -> None:
    # The example includes a header, so that all of them also unpack the compiler's headers.
    folder = tmp_path / "cache"
    processes = [start(folder) for _ in range(2)]
    assert [answer(process) for process in processes] == [expected] * 2
    assert answer(start(folder)) == expected


def test_a_killed_process_leaves_a_cache_that_works(tmp_path: Path, expected: dict[str, object]) -> None:
    """Killed when all is written and not yet in its place: the headers, a compiled kernel, an emulation."""
    folder = tmp_path / "cache"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(KILLED)
    path = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH")]))
    for place in ("drywarp-headers", "kernels", "emulations"):
        process = start(folder, PYTHONPATH=path, KILLED_WHERE=f"{os.sep}{place}{os.sep}")
        process.communicate()
        assert process.returncode == -signal.SIGKILL, f"nothing was kept under {place}"
    assert answer(start(folder)) == expected
