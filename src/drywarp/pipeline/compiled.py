"""How the loops are compiled: the decorators that all compiled code here shares.

No array is made or kept in compiled code, so that Numba need not count references to them; without that
the loops run a third faster. Numba stores machine code for the file of the function alone, and would not
notice that a function that it calls has changed: so the stored name holds a hash of all files here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""Threads run at once, nothing checks for a division by zero, and no references are counted."""


@cache
def _version() -> str:
    digest = sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def loop(function: F) -> F:
    """A function that Python calls: its machine code is stored."""
    function.__qualname__ += f"_{_version()}"
    return cast(F, njit(cache=True, **OPTIONS)(function))


def part(function: F) -> F:
    """A function that loops call now and then."""
    return cast(F, njit(**OPTIONS)(function))


def step(function: F) -> F:
    """A piece of a loop's own code."""
    return cast(F, njit(inline="always")(function))
