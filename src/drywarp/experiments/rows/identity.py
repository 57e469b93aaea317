"""What predictions depend on besides a row's parameters, by part, so that error messages can name a change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import astuple
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...errors import InputFileError
from ...frontends.cache import tool_versions
from ...hardware import Gpu
from . import Settings, values_hash
from .recipe import Recipe

PARTS = ("drywarp", "compiler", "kernel", "GPU file", "launch", "options")
_DIGITS = 8
_FILE = re.compile(r"((?:\w+\[[^\]]*\]:)?)@(.+)")
"""An argument stored in a file: ``@x.npy`` or ``f32[n]:@x.npy``."""


def identity(source: Any, gpu: Gpu, recipe: Recipe, settings: Settings) -> str:
    """All parts in one string: drywarp's version, and the first digits of each other part's hash.

    A folder means that rows name their own files and check them.
    """
    folder = isinstance(source, Path) and source.is_dir()
    text = source.read_bytes() if isinstance(source, Path) and not folder else b""
    parts = [
        repr(sorted(tool_versions().items())).encode(),
        source.encode() if isinstance(source, str) else text,
        values_hash(gpu).encode(),
        content_of(astuple(recipe)),
        content_of(astuple(settings)),
    ]
    return "/".join([__version__, *(hashlib.sha256(part).hexdigest()[:_DIGITS] for part in parts)])


def fingerprint(source: Any, gpu: Gpu, recipe: Recipe, settings: Settings) -> str:
    """A twelve-character hash of `identity`."""
    return hashlib.sha256(identity(source, gpu, recipe, settings).encode()).hexdigest()[:12]


def changed(then: str, now: str) -> str:
    """The parts that differ between two identities, as a phrase."""
    before, after = then.split("/"), now.split("/")
    if len(before) != len(after):
        return "another kind of identity"
    said = [name for name, a, b in zip(PARTS, before, after, strict=True) if a != b]
    words = [f"drywarp {before[0]} (this is {after[0]})" if name == PARTS[0] else f"another {name}" for name in said]
    return " and ".join(words)


def absolute(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with ``@file.npy`` paths made absolute."""
    return {name: _absolute(value) if isinstance(value, str) else value for name, value in values.items()}


def _absolute(value: str) -> str:
    match = _FILE.fullmatch(value.strip())
    return f"{match[1]}@{Path(match[2]).resolve()}" if match else value


def content_of(value: Any) -> bytes:
    """A launch's values as bytes: plain values by their repr, arrays and ``@file.npy`` files by their content.

    An unreadable file is represented by its name; the analysis will reject it.
    """
    if isinstance(value, Mapping):
        return (
            b"{" + b",".join(content_of(key) + b":" + content_of(value[key]) for key in sorted(value, key=str)) + b"}"
        )
    if isinstance(value, list | tuple):
        return b"[" + b",".join(content_of(item) for item in value) + b"]"
    if hasattr(value, "tobytes"):
        return repr((value.dtype.str, value.shape)).encode() + hashlib.sha256(value.tobytes()).digest()
    if isinstance(value, str) and (match := _FILE.fullmatch(value.strip())):
        try:
            path = Path(match[2])
            stat = path.stat()
            return f"{match[1]}@{_hash_of(path.resolve(), stat.st_mtime_ns, stat.st_size)}".encode()
        except OSError:
            pass
    return repr(value).encode()


@lru_cache(maxsize=256)
def _hash_of(path: Path, modified_ns: int, size: int) -> str:
    """A hash of a file's bytes, cached because an array may be large and many rows need it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# A source's hash, so that a measured row and a later prediction refer to the same source.


def hash_of(source: Path) -> str:
    """A twelve-character hash of a file and the headers in its folder.

    Raises InputFileError if one cannot be read.
    """
    held = hashlib.sha256()
    headers = sorted(path for path in source.parent.glob("*") if path.suffix in (".cuh", ".h"))
    for path in (source, *headers):
        try:
            held.update(path.read_bytes() + b"\0")
        except OSError as error:
            raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None
    return held.hexdigest()[:12]
