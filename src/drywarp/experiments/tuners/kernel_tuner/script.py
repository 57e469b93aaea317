"""Reads the space of a tuning script by running it up to its first call of `tune_kernel`.

This needs neither Kernel Tuner nor a GPU: stubs replace both of its functions that need one.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ....errors import InputFileError, UsageError
from ....frontends.load import read_input
from .space import TuningSpace, is_file, tuning_space

_PACKAGE = "kernel_tuner"
_ORDER = (
    *("kernel_name", "kernel_source", "problem_size", "arguments", "tune_params", "grid_div_x", "grid_div_y"),
    *("grid_div_z", "restrictions", "answer", "atol", "verify", "verbose", "lang", "device", "platform", "smem_args"),
    *("cmem_args", "texmem_args", "compiler", "compiler_options", "defines", "log", "iterations", "block_size_names"),
    *("quiet", "strategy", "strategy_options", "cache", "metrics", "simulation_mode"),
)
"""Arguments of `kernel_tuner.tune_kernel` by position."""


class _Reached(BaseException):
    """Raised by the awaited call; a BaseException, so that no script catches it with `except Exception`."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given


def read_script(path: str | Path) -> TuningSpace:
    """The space of a tuning script. The script is **executed** in its own folder up to its first `tune_kernel`.

    Raises InputFileError with the script's line if it ends or fails before that.
    """
    file = Path(path).absolute()
    read_input(file)
    try:
        with _stood_in(), _as_program(file):
            runpy.run_path(str(file), run_name="__main__")
    except _Reached as reached:
        return _space(reached.given, file)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error} (before tune_kernel)"
        raise InputFileError(f"{path}{_line(error, file)}: {what}") from None
    raise InputFileError(f"{path}: ended without calling tune_kernel (expected a Kernel Tuner script)")


def _space(given: Mapping[str, Any], file: Path) -> TuningSpace:
    held = dict(given)
    source = held.get("kernel_source")
    listed: list[Any] = source if isinstance(source, list) else [source]
    placed = [file.parent / item if is_file(item) else item for item in listed]
    held["kernel_source"] = placed if isinstance(source, list) else placed[0]
    try:
        return tuning_space(**held)
    except TypeError as error:
        raise UsageError(f"{file.name}: tune_kernel: {error}") from None


def _tune_kernel(*args: Any, **named: Any) -> None:
    raise _Reached({**dict(zip(_ORDER, args, strict=False)), **named})


def _run_kernel(
    kernel_name: Any, kernel_source: Any, problem_size: Any, arguments: Any, *args: Any, **named: Any
) -> Any:
    """Stub for a run that computes reference results: returns the arguments unchanged."""
    return list(arguments)


@contextlib.contextmanager
def _stood_in() -> Iterator[None]:
    """Replace the package's functions that need a GPU by stubs; if it is not installed, provide a stub package."""
    functions = {"tune_kernel": _tune_kernel, "run_kernel": _run_kernel}
    finder = _Finder()
    missing = importlib.util.find_spec(_PACKAGE) is None
    if missing:
        sys.meta_path.insert(0, finder)
    package = importlib.import_module(_PACKAGE)
    places = [package] if missing else [package, importlib.import_module(f"{_PACKAGE}.interface")]
    before = [{name: getattr(place, name) for name in functions} for place in places]
    try:
        for place in places:
            vars(place).update(functions)
        yield
    finally:
        for place, own in zip(places, before, strict=True):
            vars(place).update(own)
        if missing:
            sys.meta_path.remove(finder)
            for name in [n for n in sys.modules if n.partition(".")[0] == _PACKAGE]:
                del sys.modules[name]


class _Anything(ModuleType):
    """A module in which every name is a function that takes anything and returns None."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **named: None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The stub module for the package and its submodules."""
        if name.partition(".")[0] != _PACKAGE:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """A stub module."""
        return _Anything(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: there is no code to run."""


@contextlib.contextmanager
def _as_program(file: Path) -> Iterator[None]:
    """Set the folder and arguments as if the script had been started in its own folder."""
    here, arguments, places = os.getcwd(), sys.argv, list(sys.path)
    os.chdir(file.parent)
    sys.argv = [str(file)]
    sys.path.insert(0, str(file.parent))
    try:
        yield
    finally:
        os.chdir(here)
        sys.argv, sys.path[:] = arguments, places


def _line(error: BaseException, file: Path) -> str:
    """The script line that raised an error, as ``:12``."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}" if error.filename == str(file) else ""
    line, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line
