"""Conditional compilation seen from outside: one branch of each condition, so that brackets come in pairs.

A source may open a brace in both branches of an `#if … #else … #endif`, and close it once behind. Which branch
is compiled is not known here, and for the outline of the file it does not matter.
"""

from __future__ import annotations

import re
from itertools import pairwise

_CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b", re.M)


def one_branch(clean: str) -> str:
    """A text without comments, in which later branches have no braces where the first has unpaired ones."""
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
