"""What is wrong with an abstract kernel file, in TOML's words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable

_WORDS = {"float": "number", "str": "text", "object": "table", "array": "list", "bool": "true or false", "null": ""}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` where something known is near, else what is known."""
    names = list(known)
    nearest = difflib.get_close_matches(word, names, n=1)
    return f"; did you mean {nearest[0]}?" if nearest else f"; known: {', '.join(names) or 'none'}"


def in_words(problem: str, key: str, keys: Callable[[str], list[str]]) -> str:
    """msgspec's problem with the table at `key`, as `key: expected …`; `keys` tells what a table may hold."""
    text, _, place = problem.partition(" - at `")
    inner = re.sub(r"^\$|\[\.\.\.\]", "", place.rstrip("`"))
    at = f"{key}{inner}".lstrip(".") or "the file"
    if unknown := re.match(r"Object contains unknown field `(.*)`", text):
        return f"{at}: unknown key {unknown[1]!r}{did_you_mean(unknown[1], keys(at))}"
    if missing := re.match(r"Object missing required field `(.*)`", text):
        return f"{at}: expected the key {missing[1]!r}"
    for word, said in _WORDS.items():
        text = re.sub(rf"\b{word}\b", said, text)
    text = text.replace("number | ", "").replace(" | `", "`").replace("int", "number").replace(" | ", " or ")
    return f"{at}: {text[0].lower()}{text[1:]}".replace("`", "")
