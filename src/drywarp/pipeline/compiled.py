"""How the simulation's loops are compiled: once per machine, then kept on disk.

Each loop that Python calls is one function with all that it calls inside, so that it is stored as one piece
of machine code (`stored_code.py`), under a name that holds a hash of all that it is made of. Numba is only imported
where there is none yet: until then what the decorators make stands for the functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..folders import sources_digest
from ..stored_code import Stored

F = TypeVar("F", bound=Callable[..., Any])

SOURCES = ("pipeline", "bound.py")
"""What the loops are made of: the functions here, and the constants that they import."""

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""Threads run at once, nothing checks for a division by zero, and no references are counted."""


class Deferred:
    """A function that loops call, until one of them is compiled."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options = function, options
        self._made: Any = None

    @property
    def made(self) -> Any:
        """The function as Numba knows it."""
        if self._made is None:
            from numba import njit

            self._made = njit(**self.options)(self.function)
        return self._made

    def __call__(self, *arguments: Any) -> Any:
        """Compile all and call it, from Python."""
        _make_all()
        return self.made(*arguments)


def _make_all() -> None:
    """Put the functions in the place of all that stand for them: a loop's code names them."""
    for module in [m for name, m in sys.modules.items() if name.startswith(__package__ + ".")]:
        for name, value in list(vars(module).items()):
            if isinstance(value, Deferred):
                setattr(module, name, value.made)


def _compile(function: Callable[..., Any]) -> Any:
    from numba import njit

    _make_all()
    return njit(**OPTIONS)(function)


def loop(function: F) -> F:
    """A function that Python calls: its machine code is stored."""
    return cast(F, Stored(function, _compile, f"{function.__qualname__} {sources_digest(*SOURCES)}"))


def part(function: F) -> F:
    """A function that loops call now and then."""
    return cast(F, Deferred(function, OPTIONS))


def step(function: F) -> F:
    """A piece of a loop's own code."""
    return cast(F, Deferred(function, {"inline": "always"}))
