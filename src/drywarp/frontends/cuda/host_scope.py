"""What is known at one place of host code: values of names, sizes of types, allocated memory."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...kernel.launch.arguments import number_code

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
    types, `declared` the type of each variable without its pointers.
    """

    values: dict[str, Value | None] = field(default_factory=dict)
    macros: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, tuple[Sequence[str], str]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)

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
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


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
