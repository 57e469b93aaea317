"""A compiler of the user's own choice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from drywarp.frontends.cache import packaged_library

SAXPY = Path(__file__).parents[2] / "examples" / "saxpy.cu"


def drywarp(*arguments: str, compiler: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DRYWARP_NVRTC": compiler}
    command = [sys.executable, "-m", "drywarp", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_missing_compiler_is_named(tmp_path: Path) -> None:
    done = drywarp("analyze", str(SAXPY), compiler=str(tmp_path / "libnvrtc.so"))
    assert done.returncode == 2
    assert "DRYWARP_NVRTC" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_no_compiler_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "libnvrtc.so"
    wrong.write_bytes(b"no library")
    done = drywarp("analyze", str(SAXPY), compiler=str(wrong))
    assert done.returncode == 2
    assert str(wrong) in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_chosen_compiler_stands_in_the_versions() -> None:
    library = packaged_library()
    done = drywarp("counts", str(SAXPY), "--json", compiler=str(library))
    assert done.returncode == 0, done.stderr
    assert str(library.resolve()) in json.loads(done.stdout)["versions"]["nvrtc"]
