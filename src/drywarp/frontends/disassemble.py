"""A CUBIN to text through nvdisasm."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from ..errors import ToolError
from .toolchain import toolkit_folder


def disassemble(cubin: bytes, origin: str) -> str:
    """The code sections with encodings and source lines. Raises ToolError with nvdisasm's message."""
    tool = toolkit_folder() / "bin" / "nvdisasm"
    # nvdisasm reads only files; the name shows in no output of ours.
    with tempfile.NamedTemporaryFile(suffix=".cubin", delete=False) as file:
        file.write(cubin)
    try:
        result = _run(tool, "-hex", "-c", "-gi", file.name)
        if result.returncode < 0:
            # It crashes on line tables with gaps in their file numbers; the code itself it can still print.
            result = _run(tool, "-hex", "-c", file.name)
    except OSError as error:
        raise ToolError(f"nvdisasm cannot be run from {tool}: {error}") from None
    finally:
        os.unlink(file.name)
    if result.returncode or not result.stdout:
        message = (result.stderr or "no output").strip().splitlines()[0].replace(file.name, Path(origin).name)
        raise ToolError(f"{origin}: nvdisasm failed: {message}")
    return result.stdout


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
