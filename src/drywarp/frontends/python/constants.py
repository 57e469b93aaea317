"""Texts in a Python file that can be told without running it."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """A string: its value, and the line of the file that its first line stands on, 0 where it has no one place."""

    value: str
    line: int


class Unknown(Exception):  # noqa: N818  (no error: a question without an answer)
    """A text that only running the program would tell; `line` is where."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def assigned(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Every value that a name is given by a plain assignment anywhere in the file."""
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
    """Answers what an expression of a file is, as far as its text tells."""

    def __init__(self, tree: ast.Module, source: str) -> None:
        self._values = assigned(tree)
        self._lines = source.splitlines()

    def text(self, node: ast.expr, depth: int = 0) -> Text:
        """A string: a literal, a sum of strings, an f-string of known values, or a name that was given one.

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
                return self.text(inner, depth)  # indentation means nothing in C++
            case _:
                raise Unknown(node.lineno)

    def texts(self, node: ast.expr) -> list[Text]:
        """A string, or a list or tuple of strings."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self.text(element) for element in elements]
            case ast.Name(id=name) if len(self._values.get(name, ())) == 1:
                return self.texts(self._values[name][0])
            case _:
                return [self.text(node)]

    def _part(self, node: ast.expr, depth: int) -> str:
        """A piece of an f-string: its text, or a known value that stands in it without a format."""
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
        """The line of the file on which a literal's first line stands; 0 where its lines are not the file's."""
        for number, line in enumerate(value.split("\n")):
            at = node.lineno - 1 + number
            if line.strip() and (at >= len(self._lines) or line.rstrip() not in self._lines[at]):
                return 0
        return node.lineno
