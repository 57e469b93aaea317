"""What a user names as a kernel: a path or source text."""

from __future__ import annotations

from pathlib import Path

from ..frontends.load import as_source as path_or_text
from ..frontends.load import read_input


def as_source(kernel: str | Path) -> str | Path:
    """A string with a line break or a brace is source, any other a path that can be read."""
    source = path_or_text(kernel)
    if isinstance(source, Path):
        read_input(source)
    return source
