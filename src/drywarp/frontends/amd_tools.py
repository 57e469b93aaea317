"""The clang that compiles OpenCL C and HIP for AMD GPUs, where one is found.

In this order: what `$DRYWARP_CLANG` names; the package `ziglang` (extra `amd`), whose program is a whole clang with
the AMDGPU backend; a clang on the path, the newest first; ROCm's own. Clang 18 and later know what drywarp's headers
ask of it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import ToolError

OLDEST = 18
_NEWEST_TRIED = 30
_ROCM = "/opt/rocm/llvm/bin/clang"
_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Clang:
    """How to start it, where it comes from (``ziglang 0.17.1``, a path), and its own version text."""

    command: tuple[str, ...]
    origin: str
    version: str

    @property
    def major(self) -> int:
        """The number before the first dot; 0 where the text names none."""
        match = re.search(r"clang version (\d+)", self.version)
        return int(match[1]) if match else 0


@cache
def find_clang() -> Clang | None:
    """The first clang that works; None where there is none. Raises ToolError where `$DRYWARP_CLANG` names none."""
    if named := os.environ.get("DRYWARP_CLANG"):
        found = _ask((named,), named)
        if found is None:
            raise ToolError(f"DRYWARP_CLANG={named}: not a clang that runs")
        return found
    for command, origin in _candidates():
        found = _ask(command, origin)
        if found is not None and found.major >= OLDEST:
            return found
    return None


def require_clang() -> Clang:
    """The clang to use. Raises ToolError where none is found."""
    found = find_clang()
    if found is None:
        raise ToolError(
            "no clang for AMD GPUs found (expected: pip install 'drywarp[amd]', "
            f"or a clang of version {OLDEST} or later on the path)"
        )
    return found


def _candidates() -> list[tuple[tuple[str, ...], str]]:
    candidates: list[tuple[tuple[str, ...], str]] = []
    spec = importlib.util.find_spec("ziglang")
    for place in spec.submodule_search_locations or () if spec else ():
        program = Path(place) / "zig"
        if program.is_file():
            candidates.append(((str(program), "clang"), f"ziglang {_zig_version()}"))
    names = [f"clang-{major}" for major in range(_NEWEST_TRIED, OLDEST - 1, -1)]
    for name in (*names, "clang", _ROCM):
        if path := shutil.which(name):
            candidates.append(((path,), path))
    return candidates


def _zig_version() -> str:
    try:
        return importlib.metadata.version("ziglang")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _ask(command: tuple[str, ...], origin: str) -> Clang | None:
    """Start a clang and ask for its version and its targets; None where it fails or cannot compile for AMD GPUs."""
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True)
        targets = subprocess.run(
            [*command, "-print-targets"], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    version = done.stdout.partition("\n")[0].strip()
    return Clang(command, origin, version) if "amdgcn" in targets.stdout else None


def amd_tool_versions() -> dict[str, str]:
    """The clang in use as the answer states it; ``missing`` where there is none (ready assembly needs none)."""
    try:
        found = find_clang()
    except ToolError:
        found = None
    return {"clang": f"{found.version} ({found.origin})" if found else "missing"}
