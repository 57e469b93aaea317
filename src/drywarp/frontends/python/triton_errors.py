"""What Triton says of a kernel that it cannot compile, in one line with the file and the line in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_NATIVE = [
    re.compile(pattern, re.M)
    for pattern in (r"; (?:error|fatal)\s*:\s*(.*)$", r"(?<!PTXAS )\berror\s*:\s*(.*)$", r"\b(Assertion .*)$")
]
"""How errors look in what ptxas and Triton's own passes print, the most telling first."""

_VAGUE = ("PASS PIPELINE", "PASSMANAGER", "PTXAS ERROR")
"""How messages begin or end that say no more than where an error was."""


def compile_message(error: Exception, jit: Any, origin: str, printed: str) -> str:
    """`error` as Triton raised it while compiling `jit`; `printed` is what its native parts wrote meanwhile.

    An error within a function that the kernel calls is a chain of errors, the kernel's own first.
    """
    place, reason = origin, ""
    for link in _chain(error):
        node, source = getattr(link, "node", None), getattr(link, "src", None)
        if node is not None and source and hasattr(node, "lineno") and (first := _line_of(source, jit)):
            place = f"{origin}:{first + node.lineno - 1}"
        said = getattr(link, "error_message", None) if node is not None else str(link)
        reason = " ".join(str(said).split()) if said else reason
    if not reason or any(word in reason.upper() for word in _VAGUE):
        text = f"{error}\n{printed}"
        native = next((match for pattern in _NATIVE if (match := pattern.search(text))), None)
        reason = (native[1].strip() if native else "") or reason or type(error).__name__
    return f"{place}: error: {_shortened(reason)}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _line_of(source: str, jit: Any) -> int | None:
    """Where a function's source begins in the file of `jit`; None where it stands in another one."""
    try:
        with open(jit.fn.__code__.co_filename, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    at = text.find(source.rstrip())
    return text.count("\n", 0, at) + 1 if at >= 0 else None


def _shortened(text: str, most: int = 400) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
