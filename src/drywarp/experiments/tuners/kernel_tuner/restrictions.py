"""Restrictions on the configurations of a space, in every form that Kernel Tuner accepts.

These are Python expressions, functions of one dictionary or of parameters by name, pairs of a function and its
parameter names, and constraints of the python-constraint package.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import UsageError

# Python expressions in strings, such as ``"block_size_x * tile_size_x"``.
#
# Kernel Tuner accepts them for restrictions, sizes and divisors. Like it, we evaluate them with Python itself: they
# are part of the caller's own program. Strings from files are never evaluated here.


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


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"{text!r}: expected a Python expression over the parameters") from None


Configuration = Mapping[str, Any]


@dataclass(frozen=True)
class Restriction:
    """A condition on a configuration. `names` are the parameters that it uses; all parameters if unknown."""

    holds: Callable[[Configuration], bool]
    names: frozenset[str]

    def __call__(self, parameters: Configuration) -> bool:
        """Whether a configuration is allowed. As in Kernel Tuner, division by zero counts as allowed."""
        try:
            return bool(self.holds(parameters))
        except ZeroDivisionError:
            return True


def restrictions_of(given: Any, names: Sequence[str]) -> tuple[Restriction, ...]:
    """Restrictions over the parameters `names`; None means none. Raises UsageError for an invalid restriction."""
    if given is None:
        return ()
    if not isinstance(given, list):
        pair = isinstance(given, tuple) and len(given) > 1 and callable(given[0]) and not callable(given[1])
        given = [given] if pair or not isinstance(given, tuple) else list(given)
    return tuple(_restriction(item, tuple(names)) for item in given)


def _restriction(item: Any, names: tuple[str, ...]) -> Restriction:
    if isinstance(item, str):
        return Restriction(lambda p: value_of(item, p, "restriction"), names_in(item) & {*names})
    if isinstance(item, tuple) and len(item) >= 2 and isinstance(item[1], list | tuple):
        wanted = tuple(item[1])
        if unknown := [name for name in wanted if name not in names]:
            raise UsageError(f"restriction over {unknown[0]!r}: no such parameter; there are: {', '.join(names)}")
        return _restriction(item[0], wanted) if not isinstance(item[0], str) else _restriction(item[0], names)
    if type(item).__module__.partition(".")[0] == "constraint":
        return _constraint(item, names)
    if callable(item):
        return _function(item, names)
    raise UsageError(f"restriction {item!r}: expected an expression, a function of the parameters, or a constraint")


def _constraint(item: Any, names: tuple[str, ...]) -> Restriction:
    """A constraint of python-constraint, checked with every variable assigned."""
    function = getattr(item, "_func", None)
    if callable(function):
        return _guarded(lambda p: function(*(p[name] for name in names)), names)
    return _guarded(
        lambda p: item(list(names), {name: [p[name]] for name in names}, {name: p[name] for name in names}), names
    )


def _function(item: Callable[..., Any], names: tuple[str, ...]) -> Restriction:
    try:
        taken = list(inspect.signature(item).parameters.values())
    except (TypeError, ValueError):
        return _guarded(lambda p: item(dict(p)), names)
    if any(p.kind is p.VAR_KEYWORD for p in taken):
        return _guarded(lambda p: item(**p), names)
    if any(p.kind is p.VAR_POSITIONAL for p in taken):
        return _guarded(lambda p: item(*(p[name] for name in names)), names)
    wanted = [p.name for p in taken if p.default is p.empty or p.name in names]
    if wanted and {*wanted} <= {*names}:
        return _guarded(lambda p: item(**{name: p[name] for name in wanted}), tuple(wanted))
    if len(wanted) == 1:
        return _guarded(lambda p: item(dict(p)), names)
    raise UsageError(
        f"restriction {getattr(item, '__name__', item)}({', '.join(wanted)}): expected one dictionary, or parameters "
        f"by their names ({', '.join(names)})"
    )


def _guarded(holds: Callable[[Configuration], Any], names: tuple[str, ...]) -> Restriction:
    def asked(parameters: Configuration) -> bool:
        try:
            return bool(holds(parameters))
        except ZeroDivisionError:
            raise
        except Exception as error:
            raise UsageError(f"a restriction failed: {type(error).__name__}: {error}") from None

    return Restriction(asked, frozenset(names))
