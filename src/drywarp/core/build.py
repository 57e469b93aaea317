"""Compiles the native libraries: the core, and what stands in the place of the CUDA runtime (`program/native`).

That happens when the package is built (`hatch_build.py`), and in a checkout whose sources have changed since.

Imports nothing of drywarp's, because the build hook loads this file on its own.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
LIBRARY = FOLDER / "_core.so"
CUDA_FOLDER = FOLDER.parent / "program"
CUDA_LIBRARY = CUDA_FOLDER / "_cuda.so"
"""What stands in the place of the CUDA runtime under `drywarp run`."""
FLAGS = (
    *("-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"),
    # The same bits from every compiler and on every processor.
    *("-ffp-contract=off", "-fno-fast-math"),
    # Nobody looks at errno or the floating-point flags, which would keep loops from becoming vector instructions.
    *("-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"),
)


def compiler() -> list[str] | None:
    """The C compiler's command: `$CC`, one on the path, or that of ziglang; None if there is none."""
    if given := os.environ.get("CC"):
        return shlex.split(given)
    if found := next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None):
        return [found]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=undefined"]
    return None


def sources(folder: Path | None = None) -> list[Path]:
    """The C files of a room (None: the core), headers and versions of symbols included."""
    folder = folder or FOLDER
    return sorted((folder / "native").glob("*.[ch]")) + sorted((folder / "native").glob("*.map"))


@cache
def digest(folder: Path | None = None) -> str:
    """Identifies the sources; a built library states the one that it was built from."""
    parts = hashlib.sha256(" ".join(FLAGS).encode())
    for path in sources(folder):
        parts.update(path.name.encode() + b"\0" + path.read_bytes())
    return parts.hexdigest()[:32]


def _run(words: list[str]) -> None:
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode:
        raise RuntimeError(f"{words[0]} failed on drywarp's core: {made.stderr.strip()}")


def build(target: Path = LIBRARY, folder: Path | None = None) -> None:
    """Compile the sources to a shared library, which replaces an older one at once. Raises RuntimeError."""
    command = compiler()
    if command is None:
        raise RuntimeError("no C compiler found (cc, gcc, clang, or the Python package ziglang)")
    handle, name = tempfile.mkstemp(".so", dir=target.parent)
    os.close(handle)
    try:
        found = sources(folder)
        units = [str(path) for path in found if path.suffix == ".c"]
        versions = [f"-Wl,--version-script={path}" for path in found if path.suffix == ".map"]
        # With versions the linker writes down a name of the library: without this one that of the temporary file.
        versions += [f"-Wl,-soname,{target.name}"] * bool(versions)
        words = [*command, *FLAGS, f'-DDRYWARP_DIGEST="{digest(folder)}"']
        with tempfile.TemporaryDirectory() as objects, ThreadPoolExecutor(os.cpu_count()) as pool:
            made = [str(Path(objects, f"{Path(unit).stem}.o")) for unit in units]
            list(pool.map(_run, ([*words, "-c", unit, "-o", to] for unit, to in zip(units, made, strict=True))))
            _run([*words, *made, *versions, "-lm", "-ldl", "-lpthread", "-o", name])
        os.chmod(name, 0o755)
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)
