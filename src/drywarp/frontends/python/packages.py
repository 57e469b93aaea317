"""Packages of Python compilers: whether they are there, which, and whether they can be loaded."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import warnings
from pathlib import Path
from typing import Any

from ...errors import ToolError


def require(module: str, language: str, extra: str, origin: str) -> None:
    """Raise ToolError that says what to install where a module is missing. Does not load it."""
    if importlib.util.find_spec(module) is None:
        raise ToolError(f"{origin}: a {language} kernel needs {language}: pip install 'drywarp[{extra}]'")


def loaded(module: str, origin: str) -> Any:
    """A module, loaded. Raises ToolError where its installation is broken, as one of unlike versions is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ToolError(f"{origin}: {module} cannot be loaded: {reason}") from None


def installed_version(package: str) -> str:
    """The version that pip recorded; empty where it recorded none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def cupy_headers() -> tuple[str, ...]:
    """The folder of the headers that CuPy puts before every source (`cupy/complex.cuh`), where CuPy is installed."""
    spec = importlib.util.find_spec("cupy")
    places = spec.submodule_search_locations or () if spec else ()
    return tuple(str(Path(place) / "_core" / "include") for place in places)
