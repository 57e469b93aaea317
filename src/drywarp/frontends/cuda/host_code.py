"""Remove host code from a CUDA source, so that a device-only compiler accepts the rest.

Complete .cu files contain `main`, launches and host helpers. Removed code is replaced by blanks, so that every
line of device code keeps its line number.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .branches import one_branch
from .nvrtc import Translation
from .source import blank_comments, blank_directives, includes, template_parameters_of

# Split a CUDA source into its outermost pieces: functions, types and variables, with their namespaces.
#
# This parses only as much C++ as needed: brackets, namespaces, `extern "C"` blocks and preprocessor lines. Positions
# refer to the original text, so that pieces can be blanked without moving a line.

# Possessive, because sources have long stretches of blanked text.
_EMPTY = re.compile(r"\s*+;")
_OPENS_SCOPE = re.compile(r"^\s*(?:inline\s+)?(?:namespace(?P<name>\s+[\w:]+)?|extern)\s*$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A declaration or definition at namespace scope: `text[start:end]`.

    `header` is the text before its body, with comments and literals blanked; `body` is true if it has a body in
    braces; `scope` lists the enclosing namespaces.
    """

    start: int
    end: int
    header: str
    body: bool
    scope: tuple[str, ...]


def closing(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start`; the end of the text if there is none."""
    opening = text[start]
    other = {"(": ")", "{": "}", "[": "]", "<": ">"}[opening]
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == opening) - (text[position] == other)
        if depth == 0:
            return position
    return len(text)


def pieces(text: str) -> Iterator[Piece]:
    """The outermost pieces of a source in order, including those inside namespaces and `extern "C"` blocks."""
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
_PARAMETERS = re.compile(r"\([^()]*+(?:\([^()]*+\)[^()]*+)*+\)")
_CLASS = re.compile(r"\b(?:struct|class|union)\b(?![^(]*\()")
_ACCESS = re.compile(r"\s*(?:public|private|protected)\s*:(?!:)")


def members(text: str, piece: Piece) -> Iterator[Piece]:
    """The members of a class, struct or union, without access labels."""
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
    """Whether the text before a body is the head of a class, struct or union."""
    return _CLASS.search(_PARAMETERS.sub("()", _ATTRIBUTES.sub(" ", without_template(header)))) is not None


@dataclass(frozen=True)
class HostFunction:
    """A host function: its place in the text, its names and where its body starts."""

    piece: Piece
    name: str
    parameters: str
    template: tuple[str, ...]
    body: int


def functions_of(text: str) -> Iterator[HostFunction]:
    """The functions of a text without comments and directives; other bodies at namespace scope have no name."""
    for piece in pieces(text):
        if not piece.body or (body := text.find("{", piece.start + len(piece.header))) < 0:
            continue
        opening = None if is_class(piece.header) else re.search(r"([A-Za-z_]\w*)\s*\(", piece.header)
        listed = piece.header[opening.end() : closing(piece.header, opening.end() - 1)] if opening else ""
        template = tuple(name for name, _ in template_parameters_of(piece.header))
        yield HostFunction(piece, opening[1] if opening else "", listed, template, body)


def _end_of_definition(clean: str, header: str, brace: int) -> int:
    """The end of a definition: after its brace, or after the semicolon of a type or an initialiser."""
    header = without_template(header)
    if is_class(header) or (re.search(r"\benum\b(?![^(]*\()|=", header) and not is_function(header)):
        # Declarators with their own initialisers may follow: `struct S {…} table[] = {…};`.
        at = brace + 1
        while at < len(clean) and clean[at] not in ";}":
            at = closing(clean, at) + 1 if clean[at] in "({[" else at + 1
        if at < len(clean) and clean[at] == ";":
            return at + 1
    after = _EMPTY.match(clean, brace + 1)
    return after.end() if after else brace + 1


_DEVICE = re.compile(r"\b(__global__|__device__|__constant__|__managed__|__shared__)\b")
_LIKE_A_MACRO_CALL = re.compile(r"^\s*[A-Za-z_]\w*\s*\([^()]*\)\s*$")
_TEMPLATE = re.compile(r"\s*+template\s*+<")
_ENDS_PARAMETERS = re.compile(r"\)\s*+(?:(?:const|noexcept|override)\s*+)*+(?:->[^;{}()]*+)?$")
_INITIALISED = re.compile(r"^(?:(?!\boperator\b)[^(=])*=")
_NO_FUNCTION = re.compile(r"\b(typedef|using|namespace|static_assert|concept)\b")
_TYPES = re.compile(r"\b(struct|class|union|enum)\b")
TORCH = ("ATen/", "c10/", "torch/", "caffe2/", "pybind11/")
"""How PyTorch's headers begin, with those of what it builds on."""
_HOST_HEADERS = (
    *("thrust/", "cub/cub", "cub/device/", "curand.h", "cublas", "cufft", "cusparse", "cusolver"),
    *("nccl", "mpi", "omp.h", "cudnn", *TORCH),
)
_CONTAINERS = frozenset(
    "vector string map set list deque queue stack unordered_map unordered_set iostream fstream sstream memory thread"
    " mutex filesystem regex".split()
)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\b((?:.*\\\r?\n)*.*)$", re.M)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\r?\n)*.*$", re.M)
_HOST_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.M)


def device_macros(texts: Iterable[str]) -> frozenset[str]:
    """Macros that expand to a device qualifier, possibly among other things; they mark device code."""
    meanings = [(match[1], match[2]) for text in texts for match in _MACRO.finditer(text)]
    found: set[str] = set()
    while True:  # a macro may name one that is defined below it
        further = {
            name
            for name, meaning in meanings
            if name not in found and (_DEVICE.search(meaning) or found.intersection(re.findall(r"\w+", meaning)))
        }
        if not further:
            return frozenset(found)
        found |= further


def is_host_only(piece: Piece, macros: frozenset[str] = frozenset()) -> bool:
    """Whether a piece only matters to the host: a function or variable without a device qualifier.

    `macros` lists macros that expand to a device qualifier.
    """
    header = piece.header
    if _DEVICE.search(header) or not header.strip() or not macros.isdisjoint(re.findall(r"\w+", header)):
        return False
    if re.search(r"\bconstexpr\b", header):
        return False
    function = is_function(header)
    if piece.body and function:
        return True
    plain = without_template(header)
    # A function may name `struct S` in its types.
    if _NO_FUNCTION.search(plain) or is_class(plain) or (_TYPES.search(plain) and not function):
        return False
    if function:
        return True
    if plain != header:
        return False
    # Device code may use a host constant, but no other host variable.
    return re.search(r"\bconst\b", header) is None or _LIKE_A_MACRO_CALL.match(header) is not None


def is_function(header: str) -> bool:
    """Whether the text before a body or a semicolon declares a function."""
    header = without_template(header)
    return _ENDS_PARAMETERS.search(header) is not None and not _INITIALISED.search(header)


def without_template(header: str) -> str:
    """A header without the template parameters in front of it, which have their own classes and equals signs."""
    while match := _TEMPLATE.match(header):
        at, depth = match.end(), 1
        while at < len(header) and depth:
            if header[at] in "([{":
                at = closing(header, at)
            elif header[at : at + 2] != "->":
                depth += (header[at] == "<") - (header[at] == ">")
            else:
                at += 1
            at += 1
        header = header[at:]
    return header


def holds_host_code(translation: Translation) -> bool:
    """Whether the source, or a file that it includes, has any host-only code."""
    texts = (translation.text, *translation.bodies)
    return any(
        "<<<" in blank_comments(text) or any(is_host_only(piece) for piece in pieces(text)) for text in texts
    ) or any(_is_host_header(name) or name in _CONTAINERS for text in texts for name, _ in includes(text))


def _is_host_header(name: str) -> bool:
    """Whether a header belongs to a host library that does not compile as device code."""
    return name.startswith(_HOST_HEADERS)


def is_device(text: str, piece: Piece, macros: frozenset[str] = frozenset()) -> bool:
    """Whether a piece has a device qualifier in its header or, unless it is a function, in its body."""
    if is_function(piece.header):
        return not is_host_only(piece, macros)
    body = blank_comments(text[piece.start : piece.end])
    return _DEVICE.search(body) is not None or not macros.isdisjoint(re.findall(r"\w+", body))


def hidden_libraries(text: str) -> set[str]:
    """The host libraries that a source includes."""
    return {name for name, _ in includes(text) if _is_host_header(name)}


def hide_host_includes(text: str) -> str:
    """The text without includes of host libraries."""
    return _HOST_INCLUDE.sub(lambda m: " " * len(m[0]) if _is_host_header(m[1]) else m[0], text)


def without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with these spans blanked; lines keep their numbers, and directives inside the spans stay."""
    if not spans:
        return text
    # A comment may start on a directive's line and end much later.
    bare = blank_comments(text, literals=False)
    directives = [(m.start(), m.end()) for m in _DIRECTIVE.finditer(blank_comments(text))]
    kept = list(text)
    for start, end in spans:
        at = start
        for opening, closing in directives[bisect_left(directives, (start,)) :]:
            if opening >= end:
                break
            _blank(kept, at, opening)
            kept[opening:closing] = bare[opening:closing]
            at = closing
        _blank(kept, at, end)
    return "".join(kept)


def _blank(characters: list[str], start: int, end: int) -> None:
    for at in range(start, end):
        if characters[at] not in "\r\n":
            characters[at] = " "
