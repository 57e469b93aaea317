"""Conditional compilation: find out which branches a compiler takes, as far as the visible macros decide it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

_CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b", re.M)


def one_branch(clean: str) -> str:
    """Blank the braces in all but the first branch of a condition whose first branch has unpaired braces.

    A source may open a brace in both branches of an `#if … #else … #endif` and close it once afterwards. Which branch
    is compiled does not matter for the outline of the file. `clean` is text without comments.
    """
    groups: list[list[int]] = []
    spans: list[tuple[int, int]] = []
    for match in _CONDITION.finditer(clean):
        word = match[1]
        if word.startswith("if"):
            groups.append([match.end()])
        elif groups:
            starts = groups[-1]
            starts.append(match.end())
            if word == "endif":
                groups.pop()
                bounds = list(pairwise(starts))
                if len(bounds) > 1 and _surplus(clean, *bounds[0]) != 0:
                    spans += bounds[1:]
    if not spans:
        return clean
    kept = list(clean)
    for start, end in spans:
        for at in range(start, end):
            if kept[at] in "{}":
                kept[at] = " "
    return "".join(kept)


def _surplus(clean: str, start: int, end: int) -> int:
    return clean.count("{", start, end) - clean.count("}", start, end)


_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif|define|undef)\b[ \t]*(.*)$")
_DEFINED = re.compile(r"\bdefined\b\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_TOKEN = re.compile(r"\s*(?:(\d{1,18})[uUlL]*|([A-Za-z_]\w*)|(&&|\|\||[=!<>]=|[!<>()]))")
_NUMBER = re.compile(r"[0-9]{1,18}")
_WORDS = {"&&": " and ", "||": " or ", "!": " not "}


@dataclass
class _Condition:
    """An open `#if`: whether its surroundings are compiled, whether a branch was taken, and whether this one is."""

    outside: bool
    taken: bool | None
    here: bool | None


def compiled_branches(clean: str, macros: Mapping[str, str]) -> str:
    """Blank the branches that the macros, and those in the text, rule out. `clean` is text without comments.

    A macro without a definition counts as undefined, unless the compiler may define it (`__NAME`). If a condition
    cannot be decided, all of its branches stay.
    """
    known, lines = dict(macros), list[str]()
    open_: list[_Condition] = []
    for line in clean.split("\n"):
        match = _DIRECTIVE.match(line)
        counts = all(one.outside and one.here is not False for one in open_)
        if match is None:
            lines.append(line if counts else "")
            continue
        lines.append(line if match[1] not in ("define", "undef") or counts else "")
        word, rest = match[1], match[2].strip()
        if word == "define" and counts:
            name, _, value = rest.partition(" ")
            known[name] = value.strip()
        elif word == "undef" and counts:
            known.pop(rest, None)
        elif word.startswith("if"):
            text = rest if word == "if" else f"{'!' if word == 'ifndef' else ''}defined({rest})"
            holds = _decided(text, known)
            open_.append(_Condition(counts, holds, holds))
        elif word in ("elif", "else") and open_:
            one = open_[-1]
            holds = True if word == "else" else _decided(rest, known)
            one.here = False if one.taken else None if one.taken is None else holds
            one.taken = one.taken or (None if one.here is None else one.here)
        elif word == "endif" and open_:
            open_.pop()
    return "\n".join(lines)


def _decided(condition: str, known: Mapping[str, str]) -> bool | None:
    """Whether a condition holds; None if it depends on something unknown."""

    def is_defined(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return "1" if name in known else name if name.startswith("_") else "0"

    text, python, at = _DEFINED.sub(is_defined, condition).strip(), "", 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        value = token[1]
        if name := token[2]:
            value = known.get(name, "0" if not name.startswith("_") else "")
            if not _NUMBER.fullmatch(value):
                return None
        elif token[3] == "(" and python[-1:].isdecimal():
            return None  # a macro that takes arguments
        python += f" {int(value)}" if value is not None else _WORDS.get(token[3], token[3])
    try:
        return bool(eval(python, {"__builtins__": {}}))
    except (SyntaxError, TypeError, ValueError, MemoryError, RecursionError):
        return None
