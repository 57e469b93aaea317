"""Keep the output of Python compilers out of drywarp's own output, and check that their packages are installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import ToolError


@contextlib.contextmanager
def diverted() -> Iterator[list[str]]:
    """Capture everything printed inside the block, including by native code; the list has the text afterwards."""
    kept: list[str] = []
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace", buffering=1) as file:
        sys.stdout.flush()
        sys.stderr.flush()
        saved = os.dup(1), os.dup(2)
        try:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            # Python's own streams may not use these file descriptors, as in a notebook.
            with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                yield kept
        finally:
            for number, copy in enumerate(saved, 1):
                os.dup2(copy, number)
                os.close(copy)
            file.flush()
            file.seek(0)
            kept.append(file.read())


# Packages of Python compilers: whether they are installed, their versions, and whether they can be loaded.


def require(module: str, language: str, extra: str, origin: str) -> None:
    """Raise a ToolError with install instructions if a module is missing. Does not load it."""
    if importlib.util.find_spec(module) is None:
        raise ToolError(f"{origin}: a {language} kernel needs {language}: pip install 'drywarp[{extra}]'")


def loaded(module: str, origin: str) -> Any:
    """Load a module. Raises ToolError if its installation is broken, for example by mismatched versions."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ToolError(f"{origin}: {module} cannot be loaded: {reason}") from None


def installed_version(package: str) -> str:
    """The version recorded by pip; empty if there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def cupy_headers() -> tuple[str, ...]:
    """The folder of the headers that CuPy prepends to every source (`cupy/complex.cuh`), if CuPy is installed."""
    spec = importlib.util.find_spec("cupy")
    places = spec.submodule_search_locations or () if spec else ()
    return tuple(str(Path(place) / "_core" / "include") for place in places)
