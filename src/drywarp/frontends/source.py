"""What can be read off CUDA C++ text without compiling it: kernels, their parameters, includes.

The compiler keeps neither parameter names nor their types in machine code, and a user speaks of
arguments by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


@dataclass(frozen=True, slots=True)
class Declared:
    """A parameter as declared: its name and its type without qualifiers."""

    name: str
    type: str
    pointer: bool


@dataclass(frozen=True, slots=True)
class KernelDeclaration:
    """A `__global__` function in the text. `line` counts from 1."""

    name: str
    parameters: tuple[Declared, ...]
    template: bool
    line: int


def blank_comments(text: str) -> str:
    """The text with comments and literals blanked out, every line where it was."""
    return _BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def includes(text: str) -> list[tuple[str, bool]]:
    """Included names, and whether each is in quotes."""
    without = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    return [(name, mark == '"') for mark, name in _INCLUDE.findall(without)]


def _closing(text: str, start: int, opening: str, closing: str) -> int:
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == opening) - (text[position] == closing)
        if depth == 0:
            return position
    return len(text)


def find_kernels(text: str) -> tuple[KernelDeclaration, ...]:
    """All `__global__` function definitions and declarations, each name once, definitions first."""
    clean = re.sub(r"^[ \t]*#.*?(?<!\\)$", lambda m: " " * len(m[0]), blank_comments(text), flags=re.M | re.S)
    found: dict[str, KernelDeclaration] = {}
    for match in re.finditer(r"\b__global__\b", clean):
        at = match.end()
        while bounds := re.match(r"[\s\w]*?\b(__launch_bounds__|__cluster_dims__|__maxnreg__)\s*\(", clean[at:]):
            at += _closing(clean[at:], bounds.end() - 1, "(", ")") + 1
        header = re.match(r"[^;{}()]*?([A-Za-z_]\w*)\s*\(", clean[at:])
        if not header:
            continue
        opening = at + header.end() - 1
        closing = _closing(clean, opening, "(", ")")
        name = header[1]
        before = clean[: match.start()]
        template = re.search(r"\btemplate\s*<[^;{}]*>\s*(?:extern|static|inline|\s)*$", before) is not None
        line = before.count("\n") + 1
        parameters = tuple(_parameters(clean[opening + 1 : closing]))
        declaration = KernelDeclaration(name, parameters, template, line)
        is_definition = clean[closing + 1 :].lstrip()[:1] == "{"
        if is_definition or name not in found:
            found[name] = declaration
    return tuple(found.values())


def _split_top(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char in "(<[{") - (char in ")>]}")
        if char == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


_QUALIFIERS = re.compile(r"\b(const|volatile|restrict|__restrict__|__restrict|struct|__grid_constant__|register)\b")


def _parameters(text: str) -> list[Declared]:
    found = []
    for part in _split_top(text):
        if part == "void":
            continue
        part = _QUALIFIERS.sub(" ", part.split("=")[0])
        array = re.search(r"\[[^\]]*\]\s*$", part)
        part = re.sub(r"(\[[^\]]*\]\s*)+$", "", part)
        match = re.match(r"^(.*?)([A-Za-z_]\w*)\s*$", part, re.S)
        pointer = "*" in part or "&" in part or array is not None
        type_text, name = (match[1], match[2]) if match and match[1].strip() else (part, "")
        found.append(Declared(name, " ".join(type_text.replace("*", " ").replace("&", " ").split()), pointer))
    return found
