"""Loads the core, and calls its functions with NumPy's arrays."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ToolError, UsageError
from .build import CUDA_FOLDER, CUDA_LIBRARY, LIBRARY, build, digest, sources

MODE_VARIABLE, LIBRARY_VARIABLE = "DRYWARP_CORE", "DRYWARP_CORE_LIBRARY"
_CODES = {"a": ctypes.c_void_p, "n": ctypes.c_int64}


@cache
def library() -> ctypes.CDLL:
    """The compiled core, or $DRYWARP_CORE_LIBRARY. In a checkout whose sources have changed since, it is built again.

    Raises ToolError if it is missing and cannot be built.
    """
    if other := os.environ.get(LIBRARY_VARIABLE):
        return ctypes.CDLL(other)
    if sources() and (not LIBRARY.exists() or _digest_of(ctypes.CDLL(str(LIBRARY))) != digest()):
        try:
            build(LIBRARY)
        except (OSError, RuntimeError) as error:
            raise ToolError(f"drywarp's core ({LIBRARY}) does not match its sources: {error}") from None
        # The loader knows the old library by its name.
        return ctypes.CDLL(f"{LIBRARY.parent}{os.sep}.{os.sep}{LIBRARY.name}")
    return ctypes.CDLL(str(LIBRARY))


def cuda_library() -> Path:
    """The library that stands in the place of the CUDA runtime, built again in a checkout whose sources have changed.

    Raises ToolError if it is missing and cannot be built.
    """
    stated = f"drywarp {digest(CUDA_FOLDER)}".encode()
    if sources(CUDA_FOLDER) and not (CUDA_LIBRARY.exists() and stated in CUDA_LIBRARY.read_bytes()):
        try:
            build(CUDA_LIBRARY, CUDA_FOLDER)
        except (OSError, RuntimeError) as error:
            raise ToolError(f"{CUDA_LIBRARY} does not match its sources: {error}") from None
    return CUDA_LIBRARY


def _digest_of(found: ctypes.CDLL) -> str:
    found.drywarp_digest.restype = ctypes.c_char_p
    return str(found.drywarp_digest().decode())


class Function:
    """A function of the core. `takes` has a letter for each argument: ``a`` for an array, ``n`` for an integer.

    Arrays must be contiguous and of the type that the function's header states; nothing is copied or checked here.
    The interpreter lock is released while it runs.
    """

    def __init__(self, name: str, takes: str) -> None:
        self.name, self.takes = name, takes
        self._call: Any = None

    def __call__(self, *arguments: Any) -> int:
        """Call it; returns its result."""
        if self._call is None:
            call = getattr(library(), f"drywarp_{self.name}")
            call.argtypes, call.restype = [_CODES[code] for code in self.takes], ctypes.c_int64
            self._call = call
        return int(self._call(*(_address(one) if isinstance(one, np.ndarray) else one for one in arguments)))


_LEVELS = {"baseline": 1, "avx2": 3}


def mode() -> str:
    """$DRYWARP_CORE: `reference` (opcodes in NumPy), `baseline` (code for any x86-64), `avx2` or nothing.

    Raises UsageError for something else.
    """
    asked = os.environ.get(MODE_VARIABLE, "")
    if asked not in ("", *_LEVELS, "reference"):
        raise UsageError(f"{MODE_VARIABLE} is {asked!r}: expected baseline, avx2, reference or nothing")
    return asked


def level() -> int:
    """The level of x86-64 that the core uses (1, 3 or 4): the highest that the processor has, unless told otherwise."""
    return min(_level(), _LEVELS.get(mode(), 4))


_level = Function("level", "")


def record(names: Sequence[str], values: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    """A struct of the core with these fields: integers, and the addresses of arrays, which must outlive it.

    Raises KeyError if a value is missing; others are ignored.
    """
    given = (values[name] for name in names)
    return np.array([_address(one) if isinstance(one, np.ndarray) else int(one) for one in given], np.int64)


def _address(array: np.ndarray[Any, Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
