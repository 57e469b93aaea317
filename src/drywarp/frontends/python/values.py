"""Values as users type them, as the Python objects that a launch in Python would be given."""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

_WORDS = {"true": True, "false": False, "null": None, "nullptr": None}
_CAST = re.compile(r"^(bool|u?int(?:8|16|32|64)|float(?:16|32|64))\((.*)\)$")


def literal(value: Any) -> Any:
    """A text as the literal that it spells (``1024``, ``0.5``, ``True``, ``'tanh'``); else as it is.

    `float32(0.5)` is a NumPy scalar of that type. NumPy scalars that are given as such stay.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if cast := _CAST.match(text):
        inner = literal(cast[2])
        if isinstance(inner, bool | int | float):
            return np.dtype(cast[1]).type(inner)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        return float(text)  # inf, nan
    except ValueError:
        return value


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python number that it holds."""
    return value.item() if isinstance(value, np.generic) else value
