"""Evaluate C++ expressions in host code over known names: numbers as C computes them, `dim3` values, sizes of types."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...kernel.launch.arguments import number_code
from .host_scope import FUNCTIONS, OPERATIONS, Scope, Value, extents, plain_type

_TOKEN = re.compile(
    r"\s*(?:(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?[fFlL]?|\d+[eE][-+]?\d+[fFlL]?)"
    r"|(?P<int>0[xX][\da-fA-F]+|0[bB][01]+|\d+)[uUlLzZ]*"
    r"|(?P<name>[A-Za-z_]\w*(?:(?:::|\.|->)[A-Za-z_]\w*)*)|(?P<sign><<|>>|[<>=!]=|&&|\|\||[-+*/%<>!~?:()&|^,{}\[\]]))"
)
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"))
_LEVEL = {sign: level for level, signs in enumerate((*_LEVELS, ("*", "/", "%"))) for sign in signs}
_NAMED_TEMPLATE = re.compile(r"\b((?:static|reinterpret|const)_cast|(?:std::)?(?:min|max))\s*<([^<>()]*)>")
_DEEPEST = 8
_LARGEST = 1 << 63


def evaluate(text: str, scope: Scope, depth: int = 0) -> Value | None:
    """The value of an expression; None if it needs anything that the scope does not hold."""
    if depth > _DEEPEST or len(text) > 2000:
        return None
    text = _NAMED_TEMPLATE.sub(lambda m: f"({m[2]})" if m[1].endswith("_cast") else m[1], text)
    tokens, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    reader = _Reader(tokens, scope, depth)
    try:
        value = reader.ternary()
    except (IndexError, ArithmeticError, ValueError, TypeError):
        return None
    return value if reader.at == len(tokens) else None


class _Reader:
    """Reads and computes at once: an operand that is not known makes the result unknown, unless it is not needed."""

    def __init__(self, tokens: Sequence[tuple[str, str]], scope: Scope, depth: int) -> None:
        self.tokens, self.scope, self.depth, self.at = tokens, scope, depth, 0

    def next_is(self, *signs: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][1] in signs

    def take(self, sign: str = "") -> tuple[str, str]:
        token = self.tokens[self.at]
        if sign and token[1] != sign:
            raise ValueError(sign)
        self.at += 1
        return token

    def ternary(self) -> Value | None:
        test = self.binary(0)
        if not self.next_is("?"):
            return test
        self.take()
        yes = self.ternary()
        self.take(":")
        no = self.ternary()
        return None if test is None else yes if test else no

    def binary(self, level: int) -> Value | None:
        if level == len(_LEVELS) + 1:
            return self.unary()
        left = self.binary(level + 1)
        while self.at < len(self.tokens) and _LEVEL.get(self.tokens[self.at][1]) == level:
            sign = self.take()[1]
            left = _combined(left, sign, self.binary(level + 1))
        return left

    def unary(self) -> Value | None:
        kind, text = self.take()
        if kind == "int":
            digits = text if text[:1] != "0" or text[1:2] in ("x", "X", "b", "B", "") else f"0o{text[1:]}"
            return int(digits, 0)
        if kind == "float":
            return float(text.rstrip("fFlL"))
        if kind == "name":
            return self.named(text)
        if text == "(":
            return self.bracket()
        value = self.unary()
        if not isinstance(value, int | float) or text not in "-+!~":
            return None
        return -value if text == "-" else int(not value) if text == "!" else ~int(value) if text == "~" else value

    def bracket(self) -> Value | None:
        """What follows an opening bracket: a cast, or an expression."""
        end = next((n for n in range(self.at, len(self.tokens)) if self.tokens[n][1] == ")"), len(self.tokens))
        inside = self.tokens[self.at : end]
        cast = " ".join(text for _, text in inside)
        if inside and all(kind == "name" or text == "*" for kind, text in inside) and self.scope.is_type(cast):
            self.at = end + 1
            return self.converted(cast, self.unary())
        value = self.ternary()
        self.take(")")
        return value

    def converted(self, type_: str, value: Value | None) -> Value | None:
        plain = plain_type(type_)
        floating = number_code(self.scope.types.get(plain, plain))[-1:] in ("e", "f", "d")
        if "*" in type_ or not isinstance(value, int | float):
            return None
        return float(value) if floating else int(value)

    def named(self, name: str) -> Value | None:
        scope = self.scope
        if name == "sizeof":
            return self.size()
        name = name.replace("->", ".").removeprefix("std::")
        if self.next_is("(", "{") and name not in scope.values:
            return self.call(name)
        if self.next_is("["):
            while self.next_is("["):
                self.take()
                self.ternary()
                self.take("]")
            return None
        if name in scope.values:
            return scope.values[name]
        owner, _, member = name.rpartition(".")
        held = scope.values.get(owner) if owner else None
        if isinstance(held, tuple) and member in ("x", "y", "z"):
            return held["xyz".index(member)]
        if name in scope.macros:
            return evaluate(scope.macros[name], scope, self.depth + 1)
        return {"true": 1, "false": 0}.get(name)

    def size(self) -> int | None:
        self.take("(")
        words = []
        while not self.next_is(")"):
            words.append(self.take()[1])
        self.take(")")
        return self.scope.type_bytes(" ".join(words))

    def call(self, name: str) -> Value | None:
        closing = ")" if self.take()[1] == "(" else "}"
        given: list[Value | None] = []
        while not self.next_is(closing):
            given.append(self.ternary())
            if not self.next_is(closing):
                self.take(",")
        self.take(closing)
        scope, plain = self.scope, name.split("::")[-1]
        if plain in ("dim3", "uint3", "make_uint3", "make_int3"):
            return extents(given)
        if plain in scope.functions:
            names, body = scope.functions[plain]
            inner = Scope({**scope.values, **dict(zip(names, given, strict=False))}, scope.macros, scope.functions)
            return evaluate(body, inner, self.depth + 1)
        numbers = [value for value in given if isinstance(value, int | float)]
        if len(numbers) != len(given) or not given:
            return None
        known = FUNCTIONS.get(plain) or FUNCTIONS.get(plain.removesuffix("f"))
        return known(*numbers) if known else self.converted(name, numbers[0]) if scope.is_type(name) else None


def _combined(left: Value | None, sign: str, right: Value | None) -> Value | None:
    decided = [value for value in (left, right) if value is not None]
    if sign in ("&&", "||"):
        deciding = sign == "||"
        if any(bool(value) is deciding for value in decided):
            return int(deciding)
        return int(not deciding) if len(decided) == 2 else None
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    value = OPERATIONS[sign](left, right)
    return value if isinstance(value, float) or abs(value) < _LARGEST else None
