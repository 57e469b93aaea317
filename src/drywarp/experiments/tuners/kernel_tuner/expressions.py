"""Python expressions in strings, such as ``"block_size_x * tile_size_x"``.

Kernel Tuner accepts them for restrictions, sizes and divisors. Like it, we evaluate them with Python itself: they are
part of the caller's own program. Strings from files are never evaluated here.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ....errors import UsageError

_FUNCTIONS = {
    **{f.__name__: f for f in (abs, all, any, bool, divmod, float, int, len, max, min, pow, round, set, sum, tuple)},
    "math": math,
    "np": np,
    "numpy": np,
    "ceil": math.ceil,
    "floor": math.floor,
}


def names_in(text: str) -> frozenset[str]:
    """The names that an expression uses. Raises UsageError if the text is not an expression."""
    return frozenset(node.id for node in ast.walk(_tree(text)) if isinstance(node, ast.Name))


def value_of(text: str, parameters: Mapping[str, Any], what: str) -> Any:
    """The value of an expression over a configuration. Raises UsageError that names it by `what`."""
    code = compile(ast.Expression(_tree(text)), "<string>", "eval")
    try:
        return eval(code, {"__builtins__": _FUNCTIONS}, dict(parameters))
    except ZeroDivisionError:
        raise
    except Exception as error:
        raise UsageError(f"{what} {text!r}: {error} (parameters: {', '.join(parameters)})") from None


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


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"{text!r}: expected a Python expression over the parameters") from None
