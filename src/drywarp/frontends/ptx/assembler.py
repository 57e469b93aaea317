"""Assemble PTX to a CUBIN with an installed ptxas.

NVIDIA's smaller nvJitLink is not a substitute. It compiles for linking: device functions remain calls, and atomics
whose result is unused still return it. `nvcc` generates different code.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...errors import CompileError, ToolError, UsageError
from ...support.folders import scratch_folder
from ..cache import toolkit_folder

_ERROR = re.compile(r"line (\d+); (?:error|fatal)\s*:\s*(.*)$", re.M)
_FATAL = re.compile(r"^ptxas (?:error|fatal)\s*:\s*(.*)$", re.M)


@dataclass(frozen=True, slots=True)
class Assembled:
    """A CUBIN and ptxas' verbose log."""

    cubin: bytes
    log: str


VARIABLE = "DRYWARP_PTXAS"
"""Environment variable with the path of the ptxas to use, such as the one in the user's own toolkit."""


def find_ptxas() -> Path | None:
    """Find ptxas: `$DRYWARP_PTXAS`, then pip's, `$CUDA_HOME`, `$CUDA_PATH`, PATH and Triton's own.

    Raises ToolError if the variable does not name a program.
    """
    if chosen := os.environ.get(VARIABLE):
        if not os.access(chosen, os.X_OK):
            raise ToolError(f"{VARIABLE}={chosen}: no such program (expected the path of a ptxas)")
        return Path(chosen)
    return next((path for path in places() if os.access(path, os.X_OK)), None)


def places() -> Iterator[Path]:
    """Candidate paths of ptxas, in order of preference."""
    with contextlib.suppress(ToolError):
        yield toolkit_folder() / "bin" / "ptxas"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder) / "bin" / "ptxas"
    if found := shutil.which("ptxas"):
        yield Path(found)
    # Found without importing it, which would take a second.
    spec = importlib.util.find_spec("triton")
    for place in spec.submodule_search_locations or () if spec else ():
        for name in ("ptxas-blackwell", "ptxas"):
            yield Path(place) / "backends" / "nvidia" / "bin" / name


@cache
def ptxas_version(path: Path) -> str:
    """The release that a ptxas reports, such as ``13.5.37``; empty if it cannot be run."""
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
    match = re.search(r"\bV(\d[\d.]*)", text)
    return match[1] if match else ""


def needed_ptxas(origin: str) -> Path:
    """Like `find_ptxas`, but raises a ToolError with install instructions if there is none."""
    path = find_ptxas()
    if path is None:
        raise ToolError(
            f"{origin}: PTX needs an assembler: pip install 'drywarp[ptx]', or a ptxas on PATH or in $CUDA_HOME"
        )
    return path


def machine_for(target: str, arch: str, origin: str) -> str:
    """The architecture to assemble PTX with this `target` for, to run on a GPU of `arch` (both as ``sm_90``).

    PTX runs on its target and on anything newer; ``sm_90a`` on that target only, ``sm_100f`` within its family.
    Raises UsageError if the PTX cannot run on the GPU.
    """
    wanted, number = _number(arch), _number(target)
    suffix = target[-1] if target[-1:].isalpha() else ""
    fits = number == wanted if suffix == "a" else number <= wanted
    if suffix == "f":
        fits = fits and number // 10 == wanted // 10
    if not fits:
        reach = {"a": "only", "f": "and newer ones of its family"}.get(suffix, "and newer")
        raise UsageError(f"{origin}: its .target {target} runs on sm_{number} {reach}; the GPU is {arch}")
    return f"sm_{wanted}{suffix}"


def _number(arch: str) -> int:
    return int("".join(c for c in arch.partition("_")[2] if c.isdigit()))


def assemble(ptx: str, arch: str, origin: str, flags: Sequence[str] = ()) -> Assembled:
    """Assemble for `arch`, with line numbers; `flags` are further options of ptxas.

    Raises CompileError naming `origin` and the line in it.
    """
    tool = needed_ptxas(origin)
    with scratch_folder("ptx") as folder:
        source, made = folder / "kernel.ptx", folder / "kernel.cubin"
        source.write_text(ptx, encoding="utf-8")
        command = [str(tool), f"--gpu-name={arch}", "-lineinfo", "-v", str(source), "-o", str(made), *flags]
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
        except OSError as error:
            raise ToolError(f"ptxas cannot be run from {tool}: {error}") from None
        log = run.stdout + run.stderr
        if run.returncode or not made.exists():
            raise CompileError(_message(log, origin), log)
        return Assembled(made.read_bytes(), log)


def _message(log: str, origin: str) -> str:
    """The first error on one line, in compiler format, and the number of further errors."""
    errors = _ERROR.findall(log)
    if errors:
        line, text = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return f"{origin}({line}): error: {text.strip()}{more}"
    fatal = _FATAL.search(log)
    return f"{origin}: ptxas: {fatal[1].strip() if fatal else 'failed without a message'}"
