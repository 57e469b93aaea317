"""What `drywarp analyze --json` wrote, read in again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from ..errors import InputFileError
from ..result import SCHEMA_VERSION
from .side import Side, SideError, side_of

EXPECTED = "what `drywarp analyze --json` writes"


def is_saved(source: object) -> TypeGuard[str | Path]:
    """Whether a source is a file of a saved answer: one that ends in ``.json``."""
    return isinstance(source, str | Path) and "\n" not in str(source) and str(source).lower().endswith(".json")


def read_saved(path: str | Path) -> Side:
    """A saved answer. Raises InputFileError: one line with the file, the key and what was expected."""
    content = _decoded(path)
    if not isinstance(content, dict):
        raise InputFileError(f"{path}: not a JSON object (expected {EXPECTED})")
    version = content.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        said = "none" if version is None else repr(version)
        raise InputFileError(
            f"{path}: schema_version: {said[:40]}, expected {SCHEMA_VERSION}: written by another version of drywarp "
            "or by something else; write it again"
        )
    if "launches" in content:
        raise InputFileError(f"{path}: holds several launches (expected {EXPECTED} for one)")
    try:
        return side_of(content)
    except SideError as error:
        raise InputFileError(f"{path}: {error} (expected {EXPECTED})") from None


def _decoded(path: str | Path) -> Any:
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file (expected {EXPECTED})") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputFileError(f"{path}: not JSON: {error} (expected {EXPECTED})") from None
