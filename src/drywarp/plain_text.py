"""Names and lines of a user's sources as one line of visible characters: they may hold anything."""

from __future__ import annotations

import unicodedata

LONGEST = 160
"""Characters of a source line that are shown."""
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def plain(text: str, longest: int = LONGEST) -> str:
    """One line without control characters, changes of direction and the like; cut where it is too long."""
    shown = "".join(" " if c in "\t\n\r" else "�" if unicodedata.category(c) in _INVISIBLE else c for c in text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"
