"""The command line, run in this process or as the program that a user starts."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import traceback
from pathlib import Path

from drywarp.cli import main

ROOT = Path(__file__).parents[2]
SAXPY = ROOT / "examples" / "saxpy.cu"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run in this process, in a folder of its own, to see that nothing is written there: quicker by the imports."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(cwd):
        try:
            status = main.run([*arguments])
        except Exception:  # what a user would see
            traceback.print_exc()
            status = 1
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0
    return subprocess.CompletedProcess([*arguments], status, out.getvalue(), err.getvalue())


def installed(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run as a program of its own."""
    command = [sys.executable, "-m", "drywarp", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=900)


def complaint(result: subprocess.CompletedProcess[str]) -> str:
    """The one line that says what was wrong."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("drywarp: ")
    assert "Traceback" not in result.stderr
    return lines[0]
