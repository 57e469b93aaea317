"""A CUBIN to text through nvdisasm."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from ..errors import ToolError
from .toolchain import toolkit_folder

_SECONDS, _SECONDS_PER_MIB = 60, 60
"""What nvdisasm may take: many times what it needs for what a compiler wrote. A damaged file may take for ever."""

_JUMP_TABLE = re.compile(r"\b(?:BRX|JMX)")
"""Jumps whose targets nvdisasm finds by an analysis of data flow, a fifth of its time, which runs for these only."""


def disassemble(cubin: bytes, origin: str) -> str:
    """The code sections with source lines, without encodings. Raises ToolError with nvdisasm's message."""
    tool = toolkit_folder() / "bin" / "nvdisasm"
    seconds = _SECONDS + _SECONDS_PER_MIB * len(cubin) / (1 << 20)
    # nvdisasm reads only files; the name shows in no output of ours.
    with tempfile.NamedTemporaryFile(suffix=".cubin", delete=False) as file:
        file.write(cubin)
    try:
        result = _run(seconds, tool, "-c", "-gi", "-ndf", file.name)
        if result.returncode == 0 and _JUMP_TABLE.search(result.stdout):
            result = _run(seconds, tool, "-c", "-gi", file.name)
        if result.returncode < 0:
            # It crashes on line tables with gaps in their file numbers; the code itself it can still print.
            result = _run(seconds, tool, "-c", file.name)
    except OSError as error:
        raise ToolError(f"nvdisasm cannot be run from {tool}: {error}") from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"{origin}: nvdisasm took longer than {seconds:.0f} s") from None
    finally:
        os.unlink(file.name)
    if result.returncode or not result.stdout:
        message = (result.stderr or "no output").strip().splitlines()[0].replace(file.name, Path(origin).name)
        raise ToolError(f"{origin}: nvdisasm failed: {message}")
    return result.stdout


def _run(seconds: float, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, errors="replace", timeout=seconds)
