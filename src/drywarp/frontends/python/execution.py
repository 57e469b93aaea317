"""Running the part of a user's Python file that defines a kernel.

This is the one place where drywarp runs code of the user's on the machine itself: a kernel of Triton or
Numba exists only once Python has run its definition. What is run is what `slicing` keeps.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ...errors import InputFileError, ToolError
from .slicing import needed_part

_PREFIX = "_drywarp_input_"
"""Modules made here are kept under a name of their own, so that a file may be called as a package is."""


def define(path: Path, tree: ast.Module, name: str) -> Any:
    """What the file at `path` defines as `name`, without running more of the file than that needs.

    Raises InputFileError naming file and line where that fails.
    """
    place = os.path.abspath(path)
    module = ModuleType(_PREFIX + path.stem)
    module.__file__ = place
    root, module.__package__ = _package(Path(place))
    part = needed_part(tree, name)
    sys.modules[module.__name__] = module
    with import_folders(os.path.dirname(place), root):
        try:
            exec(compile(part, place, "exec"), module.__dict__)
        except Exception as error:
            raise _failure(error, str(path), place, name) from None
        except SystemExit:
            raise InputFileError(f"{path}: ends the program while {name} is being defined") from None
    if name not in module.__dict__:
        raise InputFileError(f"{path}: defines no {name} (expected it at the outermost level)")
    return module.__dict__[name]


def _package(path: Path) -> tuple[str, str]:
    """The folder that holds the package which a file belongs to, and that package's name, empty where it has none."""
    folder, names = path.parent, list[str]()
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return str(folder), ".".join(names)


@contextlib.contextmanager
def import_folders(*folders: str) -> Iterator[None]:
    """Let imports find what lies beside a file, as `python file.py` does, and the package that it belongs to."""
    before = list(sys.path)
    sys.path[:0] = folders
    try:
        yield
    finally:
        sys.path[:] = before


def _failure(error: Exception, origin: str, place: str, name: str) -> InputFileError | ToolError:
    line = next((f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == place), None)
    where = f"{origin}:{line}" if line else origin
    if isinstance(error, ModuleNotFoundError):
        return InputFileError(f"{where}: kernel {name} needs the module {error.name!r}, which is not installed")
    reason = " ".join(str(error).split())
    return InputFileError(f"{where}: defining {name} failed: {type(error).__name__}: {reason}")
