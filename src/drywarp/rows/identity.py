"""What predictions depend on besides a row's own parameters, part by part, so that a change can be named."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import astuple
from functools import lru_cache
from pathlib import Path
from typing import Any

from .. import __version__
from ..frontends.toolchain import tool_versions
from ..hardware import Gpu
from .gpu_values import values_hash
from .predict import Settings
from .recipe import Recipe

PARTS = ("drywarp", "compiler", "kernel", "GPU file", "launch", "options")
_DIGITS = 8
_FILE = re.compile(r"((?:\w+\[[^\]]*\]:)?)@(.+)")
"""An argument that lies in a file: ``@x.npy`` or ``f32[n]:@x.npy``."""


def identity(source: Any, gpu: Gpu, recipe: Recipe, settings: Settings) -> str:
    """The parts in one word: drywarp's version, and of each other part the beginning of its hash.

    A folder stands for rows that name their own files, and check them.
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
    """The same in twelve characters."""
    return hashlib.sha256(identity(source, gpu, recipe, settings).encode()).hexdigest()[:12]


def changed(then: str, now: str) -> str:
    """Which parts of two identities differ, as a clause."""
    before, after = then.split("/"), now.split("/")
    if len(before) != len(after):
        return "another kind of identity"
    said = [name for name, a, b in zip(PARTS, before, after, strict=True) if a != b]
    words = [f"drywarp {before[0]} (this is {after[0]})" if name == PARTS[0] else f"another {name}" for name in said]
    return " and ".join(words)


def absolute(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments whose ``@file.npy`` is found from any folder."""
    return {name: _absolute(value) if isinstance(value, str) else value for name, value in values.items()}


def _absolute(value: str) -> str:
    match = _FILE.fullmatch(value.strip())
    return f"{match[1]}@{Path(match[2]).resolve()}" if match else value


def content_of(value: Any) -> bytes:
    """A launch's values as bytes: plain ones as they read, an array and a text's ``@file.npy`` by what they hold.

    A file that cannot be read counts by its name; the analysis refuses it.
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
    """Of a file's bytes; an array may be large, and each of many rows asks for it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
