"""A CUDA source cut into its outermost pieces: functions, types, variables, with their namespaces.

Only as much of C++ is understood as that takes: brackets, namespaces, `extern "C"` blocks and
preprocessor lines. Positions refer to the text as it was given, so that what is taken out can be blanked
without moving a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .branches import one_branch
from .source import blank_comments, blank_directives

# Possessive, because sources hold long stretches of blanked text.
_EMPTY = re.compile(r"\s*+;")
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
    clean = blank_directives(one_branch(blank_comments(text)))
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
            if _MACRO_CALLS.fullmatch(clean, start, at):
                yield Piece(start, at, clean[start:at], False, tuple(s for s in scopes if s))
            if scopes:
                scopes.pop()
            start = at + 1
        elif char == ";":
            yield Piece(start, at + 1, clean[start:at], False, tuple(s for s in scopes if s))
            start = at + 1
        at += 1
    if _MACRO_CALLS.fullmatch(clean, start):
        yield Piece(start, len(clean), clean[start:], False, tuple(s for s in scopes if s))


_MACRO_CALLS = re.compile(r"(?:\s*+[A-Za-z_]\w*\s*\([^()]*\))++\s*+")
_ATTRIBUTES = re.compile(r"\b(?:__align__|alignas|__attribute__|__declspec)\s*\(+[^()]*\)+")
_CLASS = re.compile(r"\b(?:struct|class|union)\b(?![^(]*\()")
_ACCESS = re.compile(r"\s*(?:public|private|protected)\s*:(?!:)")


def members(text: str, piece: Piece) -> Iterator[Piece]:
    """The members of a class, struct or union, without the labels of access before them."""
    if not piece.body or not is_class(piece.header):
        return
    opening = blank_comments(text[piece.start : piece.end]).find("{") + piece.start
    end = closing(blank_comments(text[: piece.end]), opening)
    for inner in pieces(text[opening + 1 : end]):
        start, header = inner.start, inner.header
        while match := _ACCESS.match(header):
            start, header = start + match.end(), header[match.end() :]
        yield Piece(opening + 1 + start, opening + 1 + inner.end, header, inner.body, piece.scope)


def is_class(header: str) -> bool:
    """Whether what stands before a body says that it is that of a class, struct or union."""
    return _CLASS.search(_ATTRIBUTES.sub(" ", header)) is not None


def _end_of_definition(clean: str, header: str, brace: int) -> int:
    """Where a definition ends: after its brace, or after the semicolon of a type or an initialiser."""
    if is_class(header) or re.search(r"\benum\b(?![^(]*\()|=", header) is not None:
        # Declarators with initialisers of their own may follow: `struct S {…} table[] = {…};`.
        at = brace + 1
        while at < len(clean) and clean[at] not in ";}":
            at = closing(clean, at) + 1 if clean[at] in "({[" else at + 1
        if at < len(clean) and clean[at] == ";":
            return at + 1
    after = _EMPTY.match(clean, brace + 1)
    return after.end() if after else brace + 1
