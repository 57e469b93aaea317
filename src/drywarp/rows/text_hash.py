"""What a source is known by, so that a measured row and a later prediction speak of the same one."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..errors import InputFileError


def hash_of(source: Path) -> str:
    """What a file's bytes, and those of the headers beside it, are known by, in twelve characters.

    Raises InputFileError where one cannot be read.
    """
    held = hashlib.sha256()
    headers = sorted(path for path in source.parent.glob("*") if path.suffix in (".cuh", ".h"))
    for path in (source, *headers):
        try:
            held.update(path.read_bytes() + b"\0")
        except OSError as error:
            raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None
    return held.hexdigest()[:12]
