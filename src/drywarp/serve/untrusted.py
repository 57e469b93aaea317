"""A pasted kernel must not make the compiler, or drywarp, read files: what is refused before anything is compiled.

NVRTC runs no code, but `#include` opens any file that this user may read, and an error message quotes its lines. So
directives may only name headers relative to the folders of the compiler's own headers, spelled out; the process
that compiles has an empty working folder. The test is of the text alone and stricter than the language: it also
holds for what stands in comments and strings.
"""

from __future__ import annotations

import re

from ..errors import UsageError
from ..frontends.comment import LaunchComment, launch_comment, launch_options
from ..frontends.ptx_text import is_ptx

PASTED = "<source>"
"""What a pasted kernel is called in messages."""

_SPLICE = re.compile(r"\\[ \t\f\v]*\r?\n")
_GAP = r"(?:\s|/\*.*?\*/)*"
_DIRECTIVE = re.compile(rf"(?:#|%:|\?\?=){_GAP}(include_next|include|import|embed|line|\d+)\b{_GAP}([^\r\n]*)", re.S)
_ASKS = re.compile(rf"\b__has_(?:include|include_next|embed)\b{_GAP}\(?{_GAP}([^\r\n]*)", re.S)
_NAME = re.compile(r"""<([\w.+/-]+)>|"([\w.+/-]+)\"""")
_MACRO = re.compile(r"[A-Za-z_]\w*")
_STANDARD = re.compile(r"(?:c|gnu)\+\+\w{2}")
_ENTRY = re.compile(r"[\w:<>,()*&+ -]{1,300}")


def check_source(text: str) -> None:
    """Raise UsageError where a kernel is no CUDA C++, or would have a file read that is not one of the compiler's."""
    if "\0" in text:
        raise UsageError(f"{PASTED}: not text (expected CUDA C++ source)")
    if is_ptx(text):
        raise UsageError(f"{PASTED}: PTX (expected CUDA C++ here; `drywarp analyze` takes PTX)")
    whole = _SPLICE.sub("", text)
    for found in _DIRECTIVE.finditer(whole):
        directive, operand = found[1], found[2].strip()
        if directive == "line" or directive.isdecimal():
            if directive.isdecimal() or not re.fullmatch(r"\d+\s*(//.*)?", operand):
                raise UsageError(f"{PASTED}: #line with a file name is refused here (expected none)")
        elif not _harmless(operand):
            raise _refused(directive, operand)
    for asked in _ASKS.finditer(whole):
        if not _harmless(asked[1].strip()):
            raise _refused("__has_include", asked[1].strip())
    check_launch(launch_comment(text, PASTED), "launch comment")


def read_launch(text: str) -> LaunchComment:
    """Launch options as a launch comment has them. Raises a DrywarpError for what they may not say."""
    given = launch_options(" ".join(text.split("\n")), "launch options")
    check_launch(given, "launch options")
    return given


def check_launch(given: LaunchComment, place: str) -> None:
    """Raise UsageError where an option names a file, or would say more to the compiler than it is for."""
    for values in (given.arguments, given.constants):
        for name, value in values.items():
            if "@" in value:
                raise UsageError(f"{place}: {name}={value}: files are not read here (expected a fill such as random)")
    for name in given.defines:
        if not _MACRO.fullmatch(name):
            raise UsageError(f"{place}: -D {name!r}: expected the name of a macro")
    if any("\n" in value or "\r" in value for value in given.defines.values()):
        raise UsageError(f"{place}: -D: expected a value on one line")
    if given.std is not None and not _STANDARD.fullmatch(given.std):
        raise UsageError(f"{place}: --std {given.std!r}: expected a standard such as c++17")
    if given.entry is not None and not _ENTRY.fullmatch(given.entry):
        raise UsageError(f"{place}: --entry {given.entry!r}: expected the name of a kernel")


def _harmless(operand: str) -> bool:
    named = _NAME.match(operand)
    name = (named[1] or named[2]) if named else "/"
    return not name.startswith("/") and ".." not in name.split("/")


def _refused(directive: str, operand: str) -> UsageError:
    return UsageError(
        f"{PASTED}: #{directive} {operand[:80]}: files of this machine are not read here "
        "(expected a header of the compiler's own, such as <cuda_fp16.h>)"
    )
