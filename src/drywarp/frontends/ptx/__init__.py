"""PTX: read it and assemble it with ptxas."""

from __future__ import annotations

import re

from ..cuda.source import blank_comments

_VERSION = re.compile(r"\s*\.version\s+\d+\.\d+\b")


def is_ptx(text: str) -> bool:
    """Whether this is PTX: the first directive must be `.version`, which no other language starts with."""
    return _VERSION.match(blank_comments(text[:20_000])) is not None
