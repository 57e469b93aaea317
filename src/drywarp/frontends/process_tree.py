"""A compiler that starts others, run within a time limit: when that is over, all of them end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import ToolError


def run_limited(command: Sequence[str], seconds: float, environment: Mapping[str, str], name: str) -> tuple[int, str]:
    """Exit status and all output of a command. Raises ToolError where it cannot be run, or not in time."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise ToolError(f"{name} cannot be run from {command[0]}: {error.strerror}") from None
    try:
        output, _ = process.communicate(timeout=seconds)
    except BaseException as error:
        # Not a process group of its own: whoever ends ours is to end the compiler with it.
        for pid in reversed(_tree(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise ToolError(f"{name} took longer than {seconds:g} s") from None
        raise
    return process.returncode, output


def _tree(root: int) -> list[int]:
    """A process and all that it started, itself or through others."""
    found = [root]
    for pid in found:
        with contextlib.suppress(OSError, ValueError):
            found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return found
