"""Types of `__constant__` variables, read off the source: machine code keeps their sizes only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..kernel.kernel import Symbol
from .source import Declared, blank_comments, blank_directives, resolve

_DECLARATION = re.compile(r"(?:^|[;{}])([^;{}]*?)\b__constant__\b([^;={]*)", re.M)
_STORAGE = re.compile(
    r"\b(?:static|extern|inline|constexpr|const|volatile|__device__|__restrict__)\b"
    r"|\b(?:alignas|__align__|__attribute__)\s*\([^)]*\)+|\btemplate\s*<[^<>]*>"
)
_DECLARATOR = re.compile(r"^(.*?)([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)$", re.S)


def constant_types(text: str) -> dict[str, tuple[str, bool, bool]]:
    """Element type of each `__constant__` variable of a text, whether it is a pointer, whether an array."""
    clean = blank_directives(blank_comments(text))
    found = {}
    for match in _DECLARATION.finditer(clean):
        first, *others = _split(_STORAGE.sub(" ", f"{match[1]} {match[2]}"))
        if not (parts := _DECLARATOR.match(first.strip())):
            continue
        base = " ".join(parts[1].replace("*", " ").split())
        if not base:
            continue
        found[parts[2]] = (base, "*" in parts[1], bool(parts[3]))
        for other in others:
            if more := _DECLARATOR.match(other.strip()):
                found[more[2]] = (base, "*" in more[1], bool(more[3]))
    return found


def _split(declarators: str) -> list[str]:
    """Parts between the commas that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(declarators):
        depth += (char in "<([") - (char in ">)]")
        if char == "," and depth == 0:
            parts.append(declarators[start:position])
            start = position + 1
    return [*parts, declarators[start:]]


def typed(
    symbols: Mapping[str, Symbol], declared: Mapping[str, tuple[str, bool, bool]], names: Mapping[str, str]
) -> dict[str, Symbol]:
    """The symbols, those of `__constant__` variables with the types of the source; `names` are other names of types."""
    done = dict(symbols)
    for name, symbol in symbols.items():
        plain = name.rpartition("::")[2]
        if symbol.space == "constant" and plain in declared:
            base, pointer, array = declared[plain]
            meant = resolve(Declared(plain, base, pointer), names)
            done[name] = replace(symbol, type=meant.type + ("*" if meant.pointer else "") + ("[]" if array else ""))
    return done
