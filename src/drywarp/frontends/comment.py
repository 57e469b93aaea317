"""The launch that a kernel file may carry in a comment, written as on the command line.

// drywarp: --grid 64,64 --block 16,16
// drywarp: --arg A=f32[1024,1024]:random --arg n=1024

In Python the same stands behind a `#`.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

from ..errors import InputFileError

_LINE = re.compile(r"^\s*+(?://|\*|/\*|#)\s*+drywarp:(.*)$")
_REPEATED = {"--arg": "arguments", "--const": "constants", "-D": "defines"}
_SINGLE = {
    "--grid": "grid",
    "--block": "block",
    "--shared": "shared",
    "--entry": "entry",
    "--std": "std",
    "--config": "config",
}


@dataclass
class LaunchComment:
    """What the comment says, as texts; None and empty where it says nothing."""

    grid: str | None = None
    block: str | None = None
    shared: str | None = None
    entry: str | None = None
    std: str | None = None
    config: str | None = None
    arguments: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    defines: dict[str, str] = field(default_factory=dict)


def launch_comment(text: str, origin: str) -> LaunchComment:
    """Read the launch comment of a source text. Raises InputFileError naming the line."""
    comment = LaunchComment()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _LINE.match(line):
            _take(comment, match[1].strip().removesuffix("*/"), f"{origin}:{number}: launch comment")
    return comment


def launch_options(text: str, origin: str) -> LaunchComment:
    """What stands in a launch comment, given by itself. Raises InputFileError naming `origin`."""
    comment = LaunchComment()
    _take(comment, text, origin)
    return comment


def _take(comment: LaunchComment, text: str, place: str) -> None:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputFileError(f"{place}: {error}") from None
    known = ", ".join([*_SINGLE, *_REPEATED])
    at = 0
    while at < len(words):
        option, _, value = words[at].partition("=") if words[at].startswith("--") else (words[at], "", "")
        if option.startswith("-D") and len(option) > 2:
            option, value = "-D", words[at][2:]
        if option not in _SINGLE and option not in _REPEATED:
            raise InputFileError(f"{place}: unknown option {option!r}; expected {known}")
        if not value and not words[at].endswith("="):
            at += 1
            if at >= len(words):
                raise InputFileError(f"{place}: {option} needs a value")
            value = words[at]
        if not value:
            raise InputFileError(f"{place}: {option} needs a value")
        if option == "--shared" and not value.isdecimal():
            raise InputFileError(f"{place}: --shared {value!r}: expected a number of bytes")
        if option in _SINGLE:
            setattr(comment, _SINGLE[option], value)
        else:
            name, equals, text = value.partition("=")
            if not equals and option != "-D":
                raise InputFileError(f"{place}: {option} {value!r}: expected name=value")
            getattr(comment, _REPEATED[option])[name] = text
        at += 1
