"""The type checker, beside the tests rather than before them: it keeps one core busy for as long as they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_every_type_is_right() -> None:
    command = [sys.executable, "-m", "mypy", "--no-error-summary"]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
