"""Keep the output of Python compilers out of drywarp's own output, and check that their packages are installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

from ...errors import ToolError
from ...support.by_name import folders_of


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


def cupy_headers() -> tuple[str, ...]:
    """The folder of the headers that CuPy prepends to every source (`cupy/complex.cuh`), if CuPy is installed."""
    return tuple(str(place / "_core" / "include") for place in folders_of("cupy"))


# Values of the host program that stay unknown: of modules that are not installed, and what only PyTorch could compute.


class UnknownValue(BaseException):
    """Python code asked for a value that is unknown; `value` says which one."""

    def __init__(self, value: Unknown) -> None:
        super().__init__(value.said())
        self.value = value


class Unknown:
    """A value that is not known. What is computed from it is unknown too; only its use in a decision raises.

    `what` names it as the source does, `reason` says why it is unknown. `place` is the file and line to look at; empty
    if that is where it is used.
    """

    def __init__(self, what: str, reason: str, place: str = "") -> None:
        vars(self).update(_what=what, _reason=reason, _place=place)

    def said(self, place: str = "", name: str = "") -> str:
        """One line for a user: that the kernel `name` needs this value; `place` is where it needs it."""
        where = vars(self)["_place"] or place
        needs = f"kernel {name} needs" if name else "needs"
        return f"{where and f'{where}: '}{needs} {vars(self)['_what']}, {vars(self)['_reason']}"

    def at(self, place: str) -> Unknown:
        """The same with a place, unless it already has one."""
        return Unknown(vars(self)["_what"], vars(self)["_reason"], vars(self)["_place"] or place)

    def _part(self, suffix: str) -> Unknown:
        what = vars(self)["_what"]
        # What cannot be imported stays the thing to name.
        missing = what.startswith(("the module ", "the name "))
        return Unknown(what if missing else f"{what}{suffix}", vars(self)["_reason"], vars(self)["_place"])

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._part(f".{name}")

    def __call__(self, *values: object, **named: object) -> Unknown:
        """What a call returns, and what a decorator makes of a function."""
        return self._part("(…)")

    def __getitem__(self, key: object) -> Unknown:
        return self._part("[…]")

    def __setattr__(self, name: str, value: object) -> None:
        """Settings of an absent module change nothing."""

    __setitem__ = __setattr__

    def __enter__(self) -> Unknown:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()

    def __repr__(self) -> str:
        return f"<unknown: {vars(self)['_what']}>"

    __hash__ = object.__hash__


def _derived(value: Unknown, *others: object) -> Unknown:
    return value


def _refused(value: Unknown, *others: object) -> Any:
    raise UnknownValue(value)


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul")
for _name in (*_BINARY, *(f"r{name}" for name in _BINARY), "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs"):
    setattr(Unknown, f"__{_name}__", _derived)
for _name in ("bool", "int", "float", "index", "len", "iter", "contains", "str", "format", "instancecheck"):
    setattr(Unknown, f"__{_name}__", _refused)
