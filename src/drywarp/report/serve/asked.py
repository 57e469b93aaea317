"""The requests that the page may send, their limits, and what a pasted kernel may not contain."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError
from ...frontends.loaded import LaunchComment, launch_comment, launch_options
from ...frontends.ptx import is_ptx

MOST_BODY = 512 * 1024
"""Maximum bytes of a request."""

MOST_SOURCE = 256 * 1024
"""Maximum characters of a pasted kernel."""

MOST_LAUNCH = 8 * 1024
"""Maximum characters of the launch options."""

MOST_EVENTS = 20_000
"""Maximum issues in the execution profile, which covers one wave."""

MOST_LOG = 20_000
"""Maximum characters shown of a compiler log."""

MOST_AT_ONCE = 8
"""Maximum concurrent connections; more are refused."""

READ_SECONDS = 10.0
"""Seconds within which a complete request must arrive."""

MOVE_SECONDS = 60.0
"""Time limit of one slider move, in seconds."""

MEMORY_BYTES = 32 * 2**30
"""Maximum address space of the process that compiles, emulates and simulates."""

LEAST_FACTOR, MOST_FACTOR = 0.05, 20.0
"""The range of factors for λ and Λ."""


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """Limits set on the command line: lane steps of the emulation, as for `analyze`, and seconds per analysis.

    If an analysis takes longer, its process is killed.
    """

    lane_steps: int = 2_000_000_000
    analysis_seconds: float = 300.0


# Validation of requests: JSON objects with values of the right type and size.

MOST_NAMES = 64
"""Maximum sliders that one request may name."""


@dataclass(frozen=True, slots=True)
class Analyse:
    """A kernel to compile, emulate and simulate: its source, a GPU's name, and launch options as text."""

    source: str
    gpu: str
    launch: str = ""


@dataclass(frozen=True, slots=True)
class Resimulate:
    """A slider move for the kernel of analysis `number`.

    `occupancy` is in warps per SM (None: the launch's own); `lambda_factors` are by subsystem, `latency_factors` by
    group (see `change`). `settled` requests the exact result with curve and events; otherwise only the time.
    """

    number: int
    occupancy: int | None
    lambda_factors: Mapping[str, float]
    latency_factors: Mapping[str, float]
    settled: bool


def read_request(verb: str, body: bytes) -> Analyse | Resimulate:
    """Parse the body of a POST to `verb`. Raises UsageError that states what was expected."""
    try:
        given = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise UsageError("the request: expected one JSON object in UTF-8") from None
    if not isinstance(given, dict):
        raise UsageError("the request: expected one JSON object")
    if verb == "analyze":
        _only(given, "source", "gpu", "launch")
        source = _text(given, "source", MOST_SOURCE)
        if not source.strip():
            raise UsageError("source: expected a CUDA kernel")
        return Analyse(source, _text(given, "gpu", 100), _text(given, "launch", MOST_LAUNCH, ""))
    _only(given, "number", "occupancy", "lambda", "latency", "settled")
    occupancy, settled = given.get("occupancy"), given.get("settled", False)
    if not isinstance(settled, bool):
        raise UsageError("settled: expected true or false")
    return Resimulate(
        _whole(given.get("number"), "number"),
        None if occupancy is None else _whole(occupancy, "occupancy"),
        _factors(given.get("lambda", {}), "lambda"),
        _factors(given.get("latency", {}), "latency"),
        settled,
    )


def _only(given: Mapping[str, Any], *known: str) -> None:
    for name in given:
        if name not in known:
            raise UsageError(f"the request: unknown {name[:40]!r}; expected {', '.join(known)}")


def _text(given: Mapping[str, Any], name: str, most: int, default: str | None = None) -> str:
    value = given.get(name, default)
    if not isinstance(value, str):
        raise UsageError(f"{name}: expected a string")
    if len(value) > most:
        raise UsageError(f"{name}: {len(value):,} characters, expected at most {most:,}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise UsageError(f"{name}: expected valid Unicode")
    return value


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise UsageError(f"{name}: expected a positive whole number")
    return value


def _factors(given: Any, name: str) -> dict[str, float]:
    if not isinstance(given, dict) or len(given) > MOST_NAMES:
        raise UsageError(f"{name}: expected an object of at most {MOST_NAMES} factors")
    found = {}
    for key, value in given.items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or not LEAST_FACTOR <= value <= MOST_FACTOR:
            raise UsageError(f"{name}: {key[:40]}: expected a factor from {LEAST_FACTOR} to {MOST_FACTOR}")
        found[key] = float(value)
    return found


# Checks before compilation, so that a pasted kernel cannot make the compiler or drywarp read files.
#
# NVRTC executes no code, but `#include` opens any file that this user may read, and error messages quote its lines.
# So directives may only name headers literally, relative to the folders of the compiler's own headers, and the
# compiling process has an empty working folder. The check is purely textual and stricter than the language: it also
# applies inside comments and strings.


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
