"""Host code taken out of a CUDA source, so that a compiler of device code alone accepts the rest.

Whole .cu files hold `main`, launches, and helpers of the host. What is taken out is blanked, so that
every line of device code stays where it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from ..errors import CompileError
from .source import blank_comments, includes
from .toplevel import Piece, pieces
from .translation import Translation

_DEVICE = re.compile(r"\b(__global__|__device__|__constant__|__managed__|__shared__)\b")
_LIKE_A_MACRO_CALL = re.compile(r"^\s*[A-Za-z_]\w*\s*\([^()]*\)\s*$")
_ENDS_PARAMETERS = re.compile(r"\)\s*+(?:(?:const|noexcept|override)\s*+)*+(?:->[^;{}()]*+)?$")
_TYPES = re.compile(r"\b(typedef|using|namespace|struct|class|union|enum|static_assert|concept)\b|\btemplate\s*<")
_ERROR_PLACE = re.compile(r"^(.+?)\((\d+)\): (?:catastrophic )?error", re.M)
_MISSING = re.compile(r'^(.+?)\((\d+)\): catastrophic error: cannot open source file "([^"]+)"', re.M)
_HOST_HEADERS = ("thrust/", "cub/cub", "curand.h", "cublas", "cufft", "cusparse", "cusolver", "nccl", "mpi", "omp.h")
_MOST_ATTEMPTS = 24

_HOST_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.M)

T = TypeVar("T")


def is_host_only(piece: Piece) -> bool:
    """Whether a piece can only matter to the host: a function or variable without a device qualifier."""
    header = piece.header
    if _DEVICE.search(header) or not header.strip():
        return False
    if re.search(r"\bconstexpr\b", header):
        return False
    is_function = _ENDS_PARAMETERS.search(header) is not None
    if piece.body and is_function:
        return True
    if _TYPES.search(header):
        return False
    if is_function:
        return True
    # A constant of the host may be used in device code; any other variable cannot be.
    return re.search(r"\bconst\b", header) is None or _LIKE_A_MACRO_CALL.match(header) is not None


def holds_host_code(translation: Translation) -> bool:
    """Whether anything in the source, or in a file that it includes, is for the host alone."""
    texts = (translation.text, *translation.bodies)
    return any(
        "<<<" in blank_comments(text) or any(is_host_only(piece) for piece in pieces(text)) for text in texts
    ) or any(_is_host_header(name) for text in texts for name, _ in includes(text))


def _is_host_header(name: str) -> bool:
    """Headers of libraries that are called from the host, and that do not compile as device code."""
    return name.startswith(_HOST_HEADERS)


def device_part(text: str) -> str:
    """The source with its host functions, variables and libraries blanked out; other directives stay."""
    text = _HOST_INCLUDE.sub(lambda m: " " * len(m[0]) if _is_host_header(m[1]) else m[0], text)
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


def compile_device_part(translation: Translation, attempt: Callable[[str, Mapping[str, str]], T]) -> T:
    """Compile a source whose host code is in the way: take that out, then what the compiler still refuses.

    `attempt` compiles a text with headers given as texts. An include that is not to be found, and a type
    or constant that only host code can use, is blanked and the rest tried again. Raises the first
    CompileError that lies in device code.
    """
    texts = {translation.origin: translation.text}
    texts |= {included.name: included.text for included in translation.included}
    texts = {name: device_part(text) for name, text in texts.items()}
    for _ in range(_MOST_ATTEMPTS):
        try:
            return attempt(texts[translation.origin], {n: t for n, t in texts.items() if n != translation.origin})
        except CompileError as error:
            if not _take_out_what_failed(texts, error.log):
                raise
    return attempt(texts[translation.origin], {n: t for n, t in texts.items() if n != translation.origin})


def _take_out_what_failed(texts: dict[str, str], log: str) -> bool:
    """Blank the pieces that the log's errors lie in; false where they lie in device code or elsewhere."""
    if match := _MISSING.search(log):
        name, number, missing = _named(match[1], texts), int(match[2]), match[3]
        lines = texts[name].splitlines(keepends=True) if name else []
        if not name or number > len(lines) or missing not in lines[number - 1]:
            return False
        lines[number - 1] = re.sub(r"[^\r\n]", " ", lines[number - 1])
        texts[name] = "".join(lines)
        return True
    changed = False
    failed: dict[str, set[int]] = {}
    for file, number in _ERROR_PLACE.findall(log):
        if name := _named(file, texts):
            failed.setdefault(name, set()).add(int(number))
    for name, numbers in failed.items():
        text = texts[name]
        for piece in pieces(text):
            body = text[piece.start : piece.end]
            first = text.count("\n", 0, piece.start + len(body) - len(body.lstrip())) + 1
            last = text.count("\n", 0, piece.end) + 1
            if numbers.intersection(range(first, last + 1)) and not _DEVICE.search(body) and body.strip():
                texts[name], changed = _blank(texts[name], piece.start, piece.end), True
    return changed


def _named(file: str, texts: Mapping[str, str]) -> str | None:
    """The key in `texts` of a file as the compiler spells it."""
    if file in texts:
        return file
    # A header given as text may be reported below the folder of the file that includes it.
    return next((name for name in texts if file.endswith("/" + name)), None)
