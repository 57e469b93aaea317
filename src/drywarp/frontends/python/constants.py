"""Strings in a Python file whose values are known without running it, and values as users type them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Text:
    """A string: its value, and the file line of its first line; 0 if it has no single location."""

    value: str
    line: int


class Unknown(Exception):  # noqa: N818  (no error: a question without an answer)
    """A string whose value is only known at run time; `line` is its location."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def assigned(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Every value assigned to a name by a plain assignment anywhere in the file."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                names = [name]
            case _:
                continue
        for name in names:
            values.setdefault(name, []).append(value)
    return values


class Constants:
    """Evaluates the expressions of a file as far as its text determines them."""

    def __init__(self, tree: ast.Module, source: str) -> None:
        self._values = assigned(tree)
        self._lines = source.splitlines()

    def text(self, node: ast.expr, depth: int = 0) -> Text:
        """Evaluate a string: a literal, a concatenation, an f-string of known values, or a name assigned to one.

        Raises Unknown.
        """
        match node:
            case ast.Constant(value=str() as value):
                return Text(value, self._place(node, value))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return Text(self.text(left, depth).value + self.text(right, depth).value, 0)
            case ast.JoinedStr(values=parts):
                value = "".join(self._part(part, depth) for part in parts)
                return Text(value, self._place(node, value))
            case ast.Name(id=name) if depth < 8 and len(self._values.get(name, ())) == 1:
                return self.text(self._values[name][0], depth + 1)
            case ast.Call(func=ast.Attribute(value=inner, attr="strip" | "lstrip" | "rstrip"), args=[], keywords=[]):
                return Text(self.text(inner, depth).value.strip(), 0)
            case ast.Call(func=ast.Attribute(attr="dedent"), args=[inner], keywords=[]):
                return self.text(inner, depth)  # indentation does not matter in C++
            case _:
                raise Unknown(node.lineno)

    def texts(self, node: ast.expr) -> list[Text]:
        """Evaluate a string, or a list or tuple of strings."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self.text(element) for element in elements]
            case ast.Name(id=name) if len(self._values.get(name, ())) == 1:
                return self.texts(self._values[name][0])
            case _:
                return [self.text(node)]

    def _part(self, node: ast.expr, depth: int) -> str:
        """A piece of an f-string: its text, or a known value without a format."""
        match node:
            case ast.Constant(value=str() as value):
                return value
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self._shown(inner, depth)
            case _:
                raise Unknown(node.lineno)

    def _shown(self, node: ast.expr, depth: int) -> str:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return str(value)
            case ast.Name(id=name) if depth < 8 and len(self._values.get(name, ())) == 1:
                return self._shown(self._values[name][0], depth + 1)
            case _:
                return self.text(node, depth).value

    def _place(self, node: ast.expr, value: str) -> int:
        """The file line of a literal's first line; 0 if its lines differ from the file's."""
        for number, line in enumerate(value.split("\n")):
            at = node.lineno - 1 + number
            if line.strip() and (at >= len(self._lines) or line.rstrip() not in self._lines[at]):
                return 0
        return node.lineno


# Convert values as users type them to the Python objects that a launch in Python would receive.

_WORDS = {"true": True, "false": False, "null": None, "nullptr": None}
_CAST = re.compile(r"^(bool|u?int(?:8|16|32|64)|float(?:16|32|64))\((.*)\)$")


def literal(value: Any) -> Any:
    """Parse a text as a literal (``1024``, ``0.5``, ``True``, ``'tanh'``); other values are returned unchanged.

    `float32(0.5)` gives a NumPy scalar of that type. Values that already are NumPy scalars stay.
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
    """Convert a NumPy scalar to a Python number."""
    return value.item() if isinstance(value, np.generic) else value
