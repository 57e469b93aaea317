"""CUDA C++ to a CUBIN through an installed nvcc: the last resort for what NVRTC refuses. Never needed.

nvcc reads a file as the host's compiler does too, so that headers of the host are no obstacle. What it makes
for a GPU is what NVRTC of the same version makes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from ..errors import CompileError, ToolError
from .nvrtc import Compiled, first_error
from .process_tree import run_limited
from .stand_ins import RELOCATABLE
from .toolchain import library_folders
from .translation import Translation

VARIABLE = "DRYWARP_NVCC"
"""Environment variable with the path of the nvcc to use, or ``off``."""

SECONDS = 300
"""What nvcc may take for one file."""

_OFF = ("off", "0", "no", "none")
_NEEDS_LINKING = re.compile(r"Unresolved extern|separate compilation mode|-rdc|requires relocatable", re.I)
_RELAXED = ("--expt-relaxed-constexpr", "--extended-lambda", "-allow-unsupported-compiler", "-w")
"""Flags that allow more sources and change no code."""

_REMOVED = {
    "cudaThreadExit": "cudaDeviceReset",
    "cudaThreadSetCacheConfig": "cudaDeviceSetCacheConfig",
    "cudaThreadSetLimit": "cudaDeviceSetLimit",
    "cudaThreadSynchronize": "cudaDeviceSynchronize",
}
"""Functions of the host that CUDA 13 has no longer, and those that took their place."""


def find_nvcc() -> Path | None:
    """The nvcc that is used: `$DRYWARP_NVCC`; else `$CUDA_HOME`'s or `$CUDA_PATH`'s, PATH's, /usr/local/cuda's.

    None where there is none, or the variable is ``off``. Raises ToolError where the variable names no program.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        if chosen.lower() in _OFF:
            return None
        if not (os.path.isfile(chosen) and os.access(chosen, os.X_OK)):
            raise ToolError(f"{VARIABLE}={chosen}: no such program (expected the path of an nvcc, or off)")
        return Path(chosen)
    return next((path for path in _places() if path.is_file() and os.access(path, os.X_OK)), None)


def _places() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder) / "bin" / "nvcc"
    if found := shutil.which("nvcc"):
        yield Path(found)
    yield Path("/usr/local/cuda/bin/nvcc")


@cache
def nvcc_version(tool: Path) -> str:
    """The release that an nvcc names, such as ``13.0.88``; empty where it cannot be run."""
    try:
        text = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\bV(\d[\d.]*)", text)
    return match[1] if match else ""


def nvcc_state(tool: Path) -> str:
    """What tells one nvcc from another, without running it."""
    state = tool.resolve().stat()
    return f"{tool} {state.st_size} {state.st_mtime_ns}"


def compile_with_nvcc(
    tool: Path, translation: Translation, arch: str, flags: Sequence[str], seconds: float = SECONDS
) -> Compiled:
    """Compile a source for `arch` (``sm_80``) with nvcc. `flags` are `-D`, `-I` and others, as NVRTC spells them.

    Raises CompileError with nvcc's first error, ToolError where it cannot be run or takes longer than `seconds`.
    """
    name = f"nvcc {nvcc_version(tool)}".strip()
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "source.cu", Path(folder) / "source.cubin"
        # The directive gives line numbers the user's own file; the folder, its includes.
        place = os.path.abspath(translation.origin).replace("\\", "\\\\").replace('"', '\\"')
        source.write_text(f'#line 1 "{place}"\n{translation.text}', encoding="utf-8")
        beside = [f"-I{translation.folder.resolve()}"] if translation.folder else []
        removed = [f"-D{old}={new}" for old, new in _REMOVED.items()]
        libraries = [f"-I{library}" for library in library_folders()]
        fixed = ["-cubin", f"-arch={arch}", "-lineinfo", "-Xptxas=-v", *_RELAXED, str(source), "-o", str(made)]
        linked: list[str] = []
        while True:
            command = [str(tool), *fixed, *linked, *beside, *removed, *flags, *libraries]
            status, log = run_limited(command, seconds, {**os.environ, "TMPDIR": folder}, name)
            if status == 0 and made.exists():
                return Compiled(made.read_bytes(), log, {}, compiler=name)
            if linked or not _NEEDS_LINKING.search(log):
                raise CompileError(f"{name}: {first_error(log)}", log)
            linked = [RELOCATABLE]


def expressions_of(tool: Path, symbols: Sequence[str], expressions: Sequence[str]) -> Mapping[str, str]:
    """The symbol of each kernel name, templates with their arguments, among those that nvcc emitted.

    Names that no symbol stands for are left out: nvcc emits the instances that the source itself uses.
    """
    known = dict(zip(symbols, _demangled(tool, symbols), strict=True))
    found = {}
    for expression in expressions:
        meant = _plain(expression)
        matches = [symbol for symbol, name in known.items() if meant in (symbol, name)]
        if len(matches) == 1:
            found[expression] = matches[0]
    return found


def _demangled(tool: Path, symbols: Sequence[str]) -> list[str]:
    """The symbols as the source spells them, without parameters; as they are where no demangler is installed."""
    beside = tool.resolve().parent / "cu++filt"
    program = str(beside) if beside.is_file() else shutil.which("c++filt")
    if program is None or not symbols:
        return list(symbols)
    text = "\n".join(symbols) + "\n"
    try:
        run = subprocess.run([program], input=text, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return list(symbols)
    lines = run.stdout.splitlines()
    return [plain_name(line) for line in lines] if len(lines) == len(symbols) else list(symbols)


def plain_name(signature: str) -> str:
    """A kernel's name with its template arguments, such that all spellings of them are equal."""
    return _plain(_without_parameters(signature))


def _without_parameters(signature: str) -> str:
    """`void f<(int)4>(float*)` as `f<(int)4>`."""
    depth, end, start = 0, len(signature), 0
    for at, char in enumerate(signature):
        if char == "(" and depth == 0 and at and signature[at - 1] not in "<, ":
            end = at
            break
        if char == " " and depth == 0:
            start = at + 1
        depth += (char in "<(") - (char in ">)")
    return signature[start:end]


def _plain(name: str) -> str:
    """A name such that two spellings of the same template arguments are equal."""
    name = re.sub(r"\((?:unsigned |signed )?(?:int|long|long long|short|char|bool)\)", "", name)
    name = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", name))
    name = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", name)
    return re.sub(r"\s+", "", name).removeprefix("::")
