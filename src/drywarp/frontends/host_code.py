"""Host code taken out of a CUDA source, so that a compiler of device code alone accepts the rest.

Whole .cu files hold `main`, launches, and helpers of the host. What is taken out is blanked, so that
every line of device code stays where it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from ..errors import CompileError
from .toplevel import Piece, blank_comments, pieces

_DEVICE = re.compile(r"\b(__global__|__device__|__constant__|__managed__|__shared__)\b")
_LIKE_A_MACRO_CALL = re.compile(r"^\s*[A-Za-z_]\w*\s*\([^()]*\)\s*$")
_TYPES = re.compile(r"\b(typedef|using|struct|class|union|enum|static_assert|concept)\b|\btemplate\s*<")
_ERROR_LINE = re.compile(r"\((\d+)\): (?:catastrophic )?error")
_MISSING = re.compile(r'\((\d+)\): catastrophic error: cannot open source file "([^"]+)"')
_MOST_ATTEMPTS = 12

T = TypeVar("T")


def is_host_only(piece: Piece) -> bool:
    """Whether a piece can only matter to the host: a function or variable without a device qualifier."""
    header = piece.header
    if _DEVICE.search(header) or not header.strip():
        return False
    if re.search(r"\bconstexpr\b", header):
        return False
    is_function = re.search(r"\)\s*(?:const|noexcept|override|->[^;{]*|\s)*$", header) is not None
    if piece.body and is_function:
        return True
    if _TYPES.search(header):
        return False
    if is_function:
        return True
    # A constant of the host may be used in device code; any other variable cannot be.
    return re.search(r"\bconst\b", header) is None or _LIKE_A_MACRO_CALL.match(header) is not None


def holds_host_code(text: str) -> bool:
    """Whether any outermost piece is for the host alone."""
    return any(is_host_only(piece) and piece.body for piece in pieces(text)) or "<<<" in blank_comments(text)


def device_part(text: str) -> str:
    """The source with its host functions and variables blanked out; directives stay."""
    for piece in pieces(text):
        if is_host_only(piece):
            text = _blank(text, piece.start, piece.end)
    return text


def _blank(text: str, start: int, end: int) -> str:
    kept = [
        line if line.lstrip().startswith("#") else re.sub(r"[^\r\n]", " ", line)
        for line in text[start:end].splitlines(keepends=True)
    ]
    return text[:start] + "".join(kept) + text[end:]


def compile_device_part(text: str, compile_text: Callable[[str], T]) -> T:
    """Compile a source whose host code is in the way: take that out, then what the compiler still refuses.

    An include that is not to be found, and a type or constant that only host code can use, is blanked and
    the rest tried again. Raises the first CompileError that lies in device code.
    """
    remaining = device_part(text)
    for _ in range(_MOST_ATTEMPTS):
        try:
            return compile_text(remaining)
        except CompileError as error:
            reduced = _without_what_failed(remaining, error.log)
            if reduced is None:
                raise
            remaining = reduced
    return compile_text(remaining)


def _without_what_failed(text: str, log: str) -> str | None:
    """The text less the pieces that the log's errors lie in; None where they are in device code."""
    lines = text.splitlines(keepends=True)
    if match := _MISSING.search(log):
        number = int(match[1])
        if number <= len(lines) and match[2] in lines[number - 1]:
            lines[number - 1] = re.sub(r"[^\r\n]", " ", lines[number - 1])
            return "".join(lines)
        return None
    failed = {int(number) for number in _ERROR_LINE.findall(log)}
    reduced, found = text, False
    for piece in pieces(text):
        first = text.count("\n", 0, piece.start + _leading_space(text, piece)) + 1
        last = text.count("\n", 0, piece.end) + 1
        if failed.intersection(range(first, last + 1)) and not _DEVICE.search(text[piece.start : piece.end]):
            reduced, found = _blank(reduced, piece.start, piece.end), True
    return reduced if found else None


def _leading_space(text: str, piece: Piece) -> int:
    body = text[piece.start : piece.end]
    return len(body) - len(body.lstrip())
