"""The command line, run in this process or as the program that a user starts."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import traceback
from pathlib import Path
from unittest import mock

from drywarp.cli import main

ROOT = Path(__file__).parents[2]
SAXPY = ROOT / "examples" / "saxpy.cu"
SILENT = {"DRYWARP_PROGRESS": "off"}
"""However slow the machine is, standard error holds complaints alone."""


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run in this process, in a folder of its own, to see that nothing is written there: quicker by the imports."""
    out, err = io.StringIO(), io.StringIO()
    streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with streams[0], streams[1], contextlib.chdir(cwd), mock.patch.dict(os.environ, SILENT):
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
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=900, env=os.environ | SILENT)


def complaint(result: subprocess.CompletedProcess[str]) -> str:
    """The one line that says what was wrong."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("drywarp: ")
    assert "Traceback" not in result.stderr
    return lines[0]
