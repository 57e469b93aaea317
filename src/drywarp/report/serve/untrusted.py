"""Checks before compilation, so that a pasted kernel cannot make the compiler or drywarp read files.

NVRTC executes no code, but `#include` opens any file that this user may read, and error messages quote its lines. So
directives may only name headers literally, relative to the folders of the compiler's own headers, and the compiling
process has an empty working folder. The check is purely textual and stricter than the language: it also applies
inside comments and strings.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from ...errors import UsageError
from ...frontends.loaded import LaunchComment, launch_comment, launch_options
from ...frontends.ptx import is_ptx

PASTED = "<source>"
"""The name of a pasted kernel in messages."""

_SPLICE = re.compile(r"\\[ \t\f\v]*\r?\n")
_HASH = re.compile(r"#|%:|\?\?=")
_DIRECTIVE = re.compile(r"(include_next|include|import|embed|line|\d+)\b")
_ASKS = re.compile(r"\b__has_(?:include|include_next|embed)\b")
_BLANKS = re.compile(r"\s*")
_LINE_NUMBER = re.compile(r"\d+\s*(?://|[\r\n]|\Z)")
_REST = re.compile(r"[^\r\n]{0,80}")
_NAME = re.compile(r"""<([\w.+/-]+)>|"([\w.+/-]+)\"""")
_MACRO = re.compile(r"[A-Za-z_]\w*")
_STANDARD = re.compile(r"(?:c|gnu)\+\+\w{2}")
_OPTIONS = ("--use_fast_math", "--fmad", "--ftz", "--prec-div", "--prec-sqrt", "--restrict")
_ENTRY = re.compile(r"[\w:<>,()*&+ -]{1,300}")


def check_source(text: str) -> None:
    """Raise UsageError if a kernel is not CUDA C++, or would read a file other than the compiler's headers."""
    if "\0" in text:
        raise UsageError(f"{PASTED}: not text (expected CUDA C++ source)")
    if is_ptx(text):
        raise UsageError(f"{PASTED}: PTX (expected CUDA C++ here; `drywarp analyze` takes PTX)")
    whole = _SPLICE.sub("", text)
    gaps = _Gaps(whole)
    # Check every `#`, even after another one on the same line, which may be inside a string.
    for hash_ in _HASH.finditer(whole):
        found = _DIRECTIVE.match(whole, gaps.end(hash_.end()))
        if found is None:
            continue
        operand = gaps.end(found.end())
        if found[1] == "line" or found[1].isdecimal():
            if found[1].isdecimal() or not _LINE_NUMBER.match(whole, operand):
                raise UsageError(f"{PASTED}: #line with a file name is refused here (expected none)")
        elif not _harmless(whole, operand):
            raise _refused(found[1], whole, operand)
    for asked in _ASKS.finditer(whole):
        operand = gaps.end(asked.end())
        if whole.startswith("(", operand):
            operand = gaps.end(operand + 1)
        if not _harmless(whole, operand):
            raise _refused("__has_include", whole, operand)
    check_launch(launch_comment(text, PASTED), "launch comment")


def read_launch(text: str) -> LaunchComment:
    """Parse launch options in the form of a launch comment. Raises a DrywarpError for anything not allowed."""
    given = launch_options(" ".join(text.split("\n")), "launch options")
    check_launch(given, "launch options")
    return given


def check_launch(given: LaunchComment, place: str) -> None:
    """Raise UsageError if an option names a file, or could pass anything unintended to the compiler."""
    for values in (given.arguments, given.constants):
        for name, value in values.items():
            if "@" in value:
                raise UsageError(f"{place}: {name}={value}: files are not read here (expected a fill such as random)")
    options = given.options
    for name in options.defines or ():
        if not _MACRO.fullmatch(name):
            raise UsageError(f"{place}: -D {name!r}: expected the name of a macro")
    if any("\n" in value or "\r" in value for value in (options.defines or {}).values()):
        raise UsageError(f"{place}: -D: expected a value on one line")
    for option in options.compiler_options:
        if option.partition("=")[0] not in _OPTIONS:
            raise UsageError(f"{place}: --compiler-option {option}: expected one of {', '.join(_OPTIONS)} here")
    if options.std is not None and not _STANDARD.fullmatch(options.std):
        raise UsageError(f"{place}: --std {options.std!r}: expected a standard such as c++17")
    if given.entry is not None and not _ENTRY.fullmatch(given.entry):
        raise UsageError(f"{place}: --entry {given.entry!r}: expected the name of a kernel")


class _Gaps:
    """The ends of runs of blanks and comments; each run is scanned once, however many positions lead into it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: dict[int, int] = {}
        self._closes = [found.start() for found in re.finditer(r"\*/", text)]

    def end(self, at: int) -> int:
        """The first position from `at` on that is neither blank nor in a comment."""
        passed = []
        while at not in self._ends:
            passed.append(at)
            blanks = _BLANKS.match(self._text, at)
            solid = blanks.end() if blanks else at
            close = bisect_left(self._closes, solid + 2) if self._text.startswith("/*", solid) else len(self._closes)
            if close == len(self._closes):
                self._ends[at] = solid
            else:
                at = self._closes[close] + 2
        for place in passed:
            self._ends[place] = self._ends[at]
        return self._ends[at]


def _harmless(text: str, at: int) -> bool:
    named = _NAME.match(text, at)
    name = (named[1] or named[2]) if named else "/"
    return not name.startswith("/") and ".." not in name.split("/")


def _refused(directive: str, text: str, at: int) -> UsageError:
    rest = _REST.match(text, at)
    return UsageError(
        f"{PASTED}: #{directive} {rest[0].strip() if rest else ''}: local files are not read here "
        "(expected a header of the compiler's own, such as <cuda_fp16.h>)"
    )
