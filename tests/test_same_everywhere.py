"""The same command gives the same numbers, however slow the machine is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from drywarp.support.folders import cache_folder
from tests.memory.orders import IN_GROUPS, product

ANALYZE = """
import sys
if "slow" in sys.argv:
    # A week passes between any two looks at a clock; but a tool that hangs may be waited for by a true one.
    import itertools, subprocess, time
    clock = itertools.count(step=604800)
    time.monotonic = time.perf_counter = time.process_time = lambda: float(next(clock))
from drywarp.cli.main import run
sys.exit(run(sys.argv[2:]))
"""
MATRICES = [f"--arg={name}=f32[512,512]" for name in "ABC"]


def analyzed(kernel: Path, speed: str, cache: Path) -> dict[str, Any]:
    cache.mkdir()
    # Compiled code is the same anyway, and takes a minute to make.
    (cache / "loops").symlink_to(cache_folder() / "loops")
    launch = ["--gpu", "a100", "--grid", "1024", "--block", "256", *MATRICES, "--arg", "n=512", "--json"]
    found = subprocess.run(
        [sys.executable, "-c", ANALYZE, speed, "analyze", str(kernel), *launch],
        capture_output=True, text=True, check=True, env={**os.environ, "DRYWARP_CACHE_DIR": str(cache)},
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(found.stdout)
    del answer["timing"]
    return answer


def test_a_slow_machine_says_the_same(tmp_path: Path) -> None:
    kernel = tmp_path / "grouped.cu"
    kernel.write_text(product(IN_GROUPS))
    quick, slow = (analyzed(kernel, speed, tmp_path / speed) for speed in ("quick", "slow"))
    assert quick["memory"]["l2_method"] == "followed"
    assert slow == quick
