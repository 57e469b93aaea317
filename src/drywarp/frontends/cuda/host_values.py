"""What is known at one place of host code, and the values of C++ expressions there, as C computes them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...kernel.launch.values import number_code

Value = int | float | tuple[int, int, int]

_VECTOR = re.compile(r"^(u?(?:char|short|int|longlong|long)|float|double)([1-4])$")
_SIZES = {"__half": 2, "half": 2, "__nv_bfloat16": 2, "half2": 4, "__half2": 4, "uchar": 1, "ushort": 2, "ulong": 8}
_QUALIFIERS = re.compile(r"\b(?:const|volatile|struct|static|constexpr|typename|std::)\s*")


def plain_type(text: str) -> str:
    """A type without qualifiers."""
    return " ".join(_QUALIFIERS.sub(" ", text).split())


@dataclass
class Scope:
    """What names mean at one place of host code: None is a value that the text does not settle.

    `macros` holds texts, `functions` their parameters and the one expression that they return, `types` aliases of
    types, `declared` the type of each variable without its pointers, `changed` the positions of the parameters that a
    function may change, since it takes them by reference.
    """

    values: dict[str, Value | None] = field(default_factory=dict)
    macros: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, tuple[Sequence[str], str]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    changed: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def type_bytes(self, text: str) -> int | None:
        """The size of a type, or of a variable's own type; None if it is not known."""
        name = plain_type(text)
        if "*" in name:
            return 8
        for _ in range(4):
            name = self.types.get(name, name)
        name = self.declared.get(name, name)
        if code := number_code(self.types.get(name, name).split("::")[-1]):
            return struct.calcsize(code)
        if match := _VECTOR.match(name):
            unsigned = "unsigned " if match[1].startswith("u") else ""
            base = number_code(unsigned + match[1].lstrip("u").replace("longlong", "long"))
            return struct.calcsize(base) * int(match[2])
        return _SIZES.get(name)

    def is_type(self, text: str) -> bool:
        """Whether a text names a number type or a pointer."""
        base = text.rstrip("* ")
        return "*" not in base and not {base} & {*self.values, *self.declared} and self.type_bytes(text) is not None


@dataclass(frozen=True)
class Allocation:
    """Device memory: its size in bytes, where the text allocates it, and whether it is cleared there."""

    bytes: int
    at: int
    zeros: bool = False


@dataclass
class State:
    """What is known at one place: a scope, allocations by the name of the pointer, and texts of initialiser lists.

    `fixed` are names whose values do not change whatever the text assigns, since the user has given them. `reached` is
    false where a condition that is known rules the place out.
    """

    scope: Scope
    memory: dict[str, Allocation] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Value] = field(default_factory=dict)
    reached: bool = True

    def put(self, name: str, value: Value | None) -> None:
        """Assign a variable, unless its value is fixed."""
        name = name.replace("->", ".")
        self.scope.values[name] = self.fixed.get(name, value)


def extents(values: Sequence[Value | None]) -> tuple[int, int, int] | None:
    """A `dim3` from its constructor's arguments; None if one is not known."""
    if len(values) == 1 and isinstance(values[0], tuple):
        return values[0]
    numbers = [int(value) for value in values if isinstance(value, int | float)]
    x, y, z = [*numbers, 1, 1, 1][:3]
    return (x, y, z) if len(numbers) == len(values) <= 3 else None


def split_commas(text: str) -> list[str]:
    """The parts between commas outside round, square and curly brackets, without empty ones."""
    return [part for part in split_call(text) if part]


def split_call(text: str) -> list[str]:
    """The arguments of a call in their order; those that are strings are empty, since literals are blanked."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in (*parts, text[start:])]


# Arithmetic as C computes it.

FUNCTIONS: dict[str, Callable[..., int | float]] = {
    "min": min, "max": max, "ceil": lambda x: float(math.ceil(x)), "floor": lambda x: float(math.floor(x)),
    "sqrt": math.sqrt, "pow": math.pow, "log2": math.log2, "abs": abs, "round": lambda x: float(math.floor(x + 0.5)),
}  # fmt: skip
"""Functions of the C++ library; those for single precision have an f at the end."""


def _divided(a: int | float, b: int | float) -> int | float:
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # C rounds towards zero


OPERATIONS: dict[str, Callable[..., int | float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _divided,
    "%": lambda a, b: a - _divided(a, b) * b, "<<": lambda a, b: a << min(b, 64), ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b), "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b), ">": lambda a, b: int(a > b), ">=": lambda a, b: int(a >= b),
}  # fmt: skip


# Expressions, evaluated while they are read.

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
