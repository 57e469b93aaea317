"""Text as text: names, notes and docstrings become Markdown or HTML in which nothing of them is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

_CODE = re.compile(r"(`+)(.+?)\1")
_SPECIAL = re.compile(r"([\\*_\[\]#|~!{}])")
_URL = re.compile(r"https?://[^\s<>)\"']+[^\s<>)\"'.,;]")


def inline(text: str) -> str:
    """A line of prose. What stands between backticks stays code; everything else is only text."""
    parts, at = [], 0
    for match in _CODE.finditer(text):
        parts += [_plain(text[at : match.start()]), f"`{match[2]}`"]
        at = match.end()
    return "".join([*parts, _plain(text[at:])])


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", escape(text.replace("`", "'"), quote=False))


def docstring(text: str) -> str:
    """A docstring: prose is escaped, what is indented stays the code that it is."""
    return "\n".join(line if line.startswith("    ") else inline(line) for line in text.splitlines())


def code(text: str, language: str = "") -> str:
    """A block of code, in a fence that nothing in it can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def cell(text: str) -> str:
    """Text of a table in HTML, with addresses as links."""
    out, at = [], 0
    for match in _URL.finditer(text):
        out += [escape(text[at : match.start()]), f'<a href="{escape(match[0])}">{escape(match[0])}</a>']
        at = match.end()
    return "".join([*out, escape(text[at:])])


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in HTML, whose cells are HTML already (`cell`)."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heading)
    body = "".join("<tr>" + "".join(f"<td>{value}</td>" for value in row) + "</tr>\n" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
