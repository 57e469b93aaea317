"""A CUDA source cut into its outermost pieces: functions, types, variables, with their namespaces.

Only as much of C++ is understood as that takes: brackets, namespaces, `extern "C"` blocks and
preprocessor lines. Positions refer to the text as it was given, so that what is taken out can be blanked
without moving a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .source import blank_comments, blank_directives

# Possessive, because sources hold long stretches of blanked text.
_DECLARATORS = re.compile(r"[\w\s,*&\[\]=]*+;")
_OPENS_SCOPE = re.compile(r"^\s*(?:inline\s+)?(?:namespace(?P<name>\s+[\w:]+)?|extern)\s*$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A declaration or definition at namespace scope: `text[start:end]`.

    `header` is what stands before its body, comments and literals blanked; `body` says whether it has
    one in braces; `scope` are the namespaces round it.
    """

    start: int
    end: int
    header: str
    body: bool
    scope: tuple[str, ...]


def closing(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start`; the end of the text where none does."""
    opening = text[start]
    other = {"(": ")", "{": "}", "[": "]", "<": ">"}[opening]
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == opening) - (text[position] == other)
        if depth == 0:
            return position
    return len(text)


def pieces(text: str) -> Iterator[Piece]:
    """The outermost pieces of a source in order, namespaces and `extern "C"` blocks entered."""
    clean = blank_directives(blank_comments(text))
    scopes: list[str] = []
    at = start = 0
    while at < len(clean):
        char = clean[at]
        if char == "(":
            at = closing(clean, at)
        elif char == "{":
            header = clean[start:at]
            if match := _OPENS_SCOPE.match(header):
                scopes.append((match["name"] or "").strip())
                start = at + 1
            else:
                end = _end_of_definition(clean, header, closing(clean, at))
                yield Piece(start, end, header, True, tuple(s for s in scopes if s))
                at, start = end - 1, end
        elif char == "}":
            if scopes:
                scopes.pop()
            start = at + 1
        elif char == ";":
            yield Piece(start, at + 1, clean[start:at], False, tuple(s for s in scopes if s))
            start = at + 1
        at += 1


def _end_of_definition(clean: str, header: str, brace: int) -> int:
    """Where a definition ends: after its brace, or after the semicolon of a type or an initialiser."""
    after = _DECLARATORS.match(clean, brace + 1)
    if after is None:
        return brace + 1
    is_type = re.search(r"\b(struct|class|union|enum)\b(?![^(]*\()", header) is not None or "=" in header
    return after.end() if is_type or after[0].strip() == ";" else brace + 1
