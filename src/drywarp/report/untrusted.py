"""Names and lines of a user's sources, made fit to be shown in Markdown: they may hold anything."""

from __future__ import annotations

from ..plain_text import LONGEST, plain

__all__ = ["LONGEST", "markdown_cell", "markdown_code", "plain"]

_SAFE = frozenset(" ,;()=+/%")


def markdown_cell(text: str) -> str:
    """The text as it stands where it holds nothing but letters, digits and a few signs, else as code."""
    return text if all(c.isalnum() or c in _SAFE or c == "→" for c in text) else markdown_code(text)


def markdown_code(text: str, longest: int = LONGEST) -> str:
    """The text as code in Markdown, also within a table: nothing in it is markup, a mention, a link or a reference.

    All but letters, digits and a few signs are written as character references, which are never read as markup.
    """
    letters = (c if c.isalnum() or c in _SAFE else f"&#{ord(c)};" for c in plain(text, longest))
    return f"<code>{''.join(letters)}</code>"
