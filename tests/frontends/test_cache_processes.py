"""The cache under several processes at once, and after one was killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "half2.cu"
COMMAND = [sys.executable, "-m", "drywarp", "analyze", str(EXAMPLE), "--json"]


def start(folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "DRYWARP_CACHE_DIR": str(folder)}
    return subprocess.Popen(COMMAND, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> dict[str, object]:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    document: dict[str, object] = json.loads(output)
    del document["timing"]
    return document


def test_processes_share_a_cold_cache_and_agree(tmp_path: Path) -> None:
    # The example includes a header, so that all of them also unpack the compiler's headers.
    processes = [start(tmp_path) for _ in range(3)]
    first, *others = [answer(process) for process in processes]
    assert all(other == first for other in others)
    assert answer(start(tmp_path)) == first


def test_a_killed_process_leaves_a_cache_that_works(tmp_path: Path) -> None:
    for delay in (0.3, 0.5, 0.8):
        process = start(tmp_path)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert answer(start(tmp_path))["kernel"]
