"""Host code taken out of a CUDA source, so that a compiler of device code alone accepts the rest.

Whole .cu files hold `main`, launches, and helpers of the host. What is taken out is blanked, so that
every line of device code stays where it was.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from .source import blank_comments, includes
from .toplevel import Piece, pieces
from .translation import Translation

_DEVICE = re.compile(r"\b(__global__|__device__|__constant__|__managed__|__shared__)\b")
_LIKE_A_MACRO_CALL = re.compile(r"^\s*[A-Za-z_]\w*\s*\([^()]*\)\s*$")
_ENDS_PARAMETERS = re.compile(r"\)\s*+(?:(?:const|noexcept|override)\s*+)*+(?:->[^;{}()]*+)?$")
_INITIALISED = re.compile(r"^(?:\s*template\s*<[^(){}]*>)?(?:(?!\boperator\b)[^(=])*=")
_TYPES = re.compile(r"\b(typedef|using|namespace|struct|class|union|enum|static_assert|concept)\b|\btemplate\s*<")
_HOST_HEADERS = (
    *("thrust/", "cub/cub", "cub/device/", "curand.h", "cublas", "cufft", "cusparse", "cusolver"),
    *("nccl", "mpi", "omp.h"),
)
_CONTAINERS = frozenset(
    "vector string map set list deque queue stack unordered_map unordered_set iostream fstream sstream memory thread"
    " mutex filesystem regex".split()
)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\b((?:.*\\\r?\n)*.*)$", re.M)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\r?\n)*.*$", re.M)
_HOST_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.M)


def device_macros(texts: Iterable[str]) -> frozenset[str]:
    """Macros that stand for a device qualifier, among other things, so that a piece headed by one is the device's."""
    found: set[str] = set()
    for text in texts:
        for match in _MACRO.finditer(text):
            if _DEVICE.search(match[2]) or found.intersection(re.findall(r"\w+", match[2])):
                found.add(match[1])
    return frozenset(found)


def is_host_only(piece: Piece, macros: frozenset[str] = frozenset()) -> bool:
    """Whether a piece can only matter to the host: a function or variable without a device qualifier.

    `macros` are those that stand for one.
    """
    header = piece.header
    if _DEVICE.search(header) or not header.strip() or not macros.isdisjoint(re.findall(r"\w+", header)):
        return False
    if re.search(r"\bconstexpr\b", header):
        return False
    is_function = _is_function(header)
    if piece.body and is_function:
        return True
    if _TYPES.search(header):
        return False
    if is_function:
        return True
    # A constant of the host may be used in device code; any other variable cannot be.
    return re.search(r"\bconst\b", header) is None or _LIKE_A_MACRO_CALL.match(header) is not None


def _is_function(header: str) -> bool:
    return _ENDS_PARAMETERS.search(header) is not None and not _INITIALISED.search(header)


def holds_host_code(translation: Translation) -> bool:
    """Whether anything in the source, or in a file that it includes, is for the host alone."""
    texts = (translation.text, *translation.bodies)
    return any(
        "<<<" in blank_comments(text) or any(is_host_only(piece) for piece in pieces(text)) for text in texts
    ) or any(_is_host_header(name) or name in _CONTAINERS for text in texts for name, _ in includes(text))


def _is_host_header(name: str) -> bool:
    """Headers of libraries that are called from the host, and that do not compile as device code."""
    return name.startswith(_HOST_HEADERS)


def is_device(text: str, piece: Piece, macros: frozenset[str] = frozenset()) -> bool:
    """Whether a piece is headed by a device qualifier or, unless it is a function, has one in its body."""
    if _is_function(piece.header):
        return not is_host_only(piece, macros)
    body = blank_comments(text[piece.start : piece.end])
    return _DEVICE.search(body) is not None or not macros.isdisjoint(re.findall(r"\w+", body))


def hidden_libraries(text: str) -> set[str]:
    """The libraries of the host that a source includes."""
    return {name for name, _ in includes(text) if _is_host_header(name)}


def hide_host_includes(text: str) -> str:
    """The text without the includes of libraries that are called from the host."""
    return _HOST_INCLUDE.sub(lambda m: " " * len(m[0]) if _is_host_header(m[1]) else m[0], text)


def device_part(text: str) -> str:
    """The source with its host functions, variables and libraries blanked out; other directives stay."""
    text = hide_host_includes(text)
    return without(text, [(piece.start, piece.end) for piece in pieces(text) if is_host_only(piece)])


def without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with these spans blanked out, every line where it was; directives in them stay."""
    if not spans:
        return text
    # A comment may begin on the line of a directive and end far below.
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
