"""Values that depend on the configuration, and arguments that are cheap to pass on: large arrays become files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import UsageError
from .restrictions import value_of

_SMALL_BYTES = 4096
"""Arrays up to this size are sent directly."""


def by_place(arguments: Sequence[Any], folder: Path) -> dict[str, Any]:
    """Arguments under ``arg0``, ``arg1``, …; large arrays are stored in `folder`."""
    return {f"arg{place}": lasting(value, folder, f"arg{place}") for place, value in enumerate(arguments)}


def lasting(value: Any, folder: Path, name: str) -> Any:
    """A value that is cheap to pass on: an array of only zeros or ones becomes its extents, another one a file."""
    if value is None or isinstance(value, str | bytes | int | float | np.generic):
        return value
    if hasattr(value, "select_for_configuration"):
        return value
    array = _array(value, name)
    if array.ndim == 0:
        return array[()]
    extents = ",".join(map(str, array.shape))
    kind = {"f": "f", "i": "i", "u": "u"}.get(array.dtype.kind)
    if array.size == 0:
        raise UsageError(f"argument {name}: an empty array, expected at least one element")
    if kind and array.size and array.flat[0] in (0, 1) and not (array != array.flat[0]).any():
        filling = "" if array.flat[0] == 0 else ":ones"
        return f"{kind}{8 * array.itemsize}[{extents}]{filling}"
    if array.nbytes <= _SMALL_BYTES:
        return array
    content = repr((array.dtype.str, array.shape)).encode() + array.tobytes()
    file = folder / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}.npy"
    np.save(file, array, allow_pickle=False)
    return f"@{file}"


def constants(held: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Contents of constant memory, treated like arguments."""
    return {name: lasting(value, folder, f"constant-{name}") for name, value in held.items()}


def _array(value: Any, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    """The data of an array, also from a GPU; complex numbers as pairs, structures as bytes."""
    for away in ("detach", "cpu", "get"):
        if hasattr(value, away) and not isinstance(value, Mapping):
            value = getattr(value, away)()
    try:
        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
    except Exception as error:
        raise UsageError(f"argument {name}: {type(value).__name__} cannot be read as an array: {error}") from None
    if array.dtype.kind == "c":
        return array.view(f"f{array.itemsize // 2}")
    if array.dtype.kind == "V" and array.ndim:
        return array.view(np.uint8)
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind not in "fiu":
        raise UsageError(f"argument {name}: {type(value).__name__} of {array.dtype}, expected numbers")
    return array


# Values that a configuration decides.


def whole(value: Any, parameters: Mapping[str, Any], what: str) -> int:
    """An integer, given directly, as an expression, or as a function of the configuration."""
    found = given(value, parameters, what)
    try:
        return int(found)
    except (TypeError, ValueError):
        raise UsageError(f"{what}: got {found!r}, expected a whole number") from None


def given(value: Any, parameters: Mapping[str, Any], what: str) -> Any:
    """The value of an expression or a function of the configuration; anything else unchanged."""
    if isinstance(value, str):
        return value_of(value, parameters, what)
    if not callable(value):
        return value
    try:
        return value(dict(parameters))
    except ZeroDivisionError:
        raise
    except Exception as error:
        raise UsageError(f"{what}: the function failed: {type(error).__name__}: {error}") from None


def filled(text: str, parameters: Mapping[str, Any]) -> str:
    """A text with the parameters' names replaced by their values: ``gemm<BM, BN>``."""
    return re.sub(r"\w+", lambda word: str(parameters.get(word[0], word[0])), text)


def chosen(value: Any, parameters: Mapping[str, Any]) -> Any:
    """The value of Kernel Tuner's `Tunable` argument in this configuration; any other argument unchanged."""
    choose = getattr(value, "select_for_configuration", None)
    return choose(dict(parameters)) if callable(choose) else value
