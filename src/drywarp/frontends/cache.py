"""Compiled and disassembled kernels on disk, keyed by their content.

An entry is written to a temporary file and renamed, so that several processes and a kill in the
middle never leave half an entry. A damaged or unreadable entry counts as absent; a cache that cannot
be written is done without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec
import platformdirs


class Entry(msgspec.Struct, frozen=True):
    """What the frontend keeps of one compilation."""

    cubin: bytes
    listing: str
    log: str
    symbols: dict[str, str]


def cache_folder() -> Path:
    """`$DRYWARP_CACHE_DIR`, else the user's cache folder of this platform."""
    override = os.environ.get("DRYWARP_CACHE_DIR")
    return Path(override) if override else Path(platformdirs.user_cache_dir("drywarp"))


_FORMAT = b"4"
"""Changes whenever an entry holds something else than before for the same parts."""


def key_of(*parts: str | bytes) -> str:
    """SHA-256 over the parts, each with its length so that no two lists collide."""
    digest = hashlib.sha256(_FORMAT)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _path(key: str) -> Path:
    return cache_folder() / "kernels" / key[:2] / f"{key[2:]}.msgpack"


def load(key: str) -> Entry | None:
    """The entry of this key, or None."""
    try:
        return msgspec.msgpack.decode(_path(key).read_bytes(), type=Entry)
    except (OSError, msgspec.MsgspecError):
        return None


def store(key: str, entry: Entry) -> None:
    """Keep an entry; does nothing where the folder cannot be written."""
    path = _path(key)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            temporary = file.name
            file.write(msgspec.msgpack.encode(entry))
        os.replace(temporary, path)
    except OSError:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the cache holds: kernels, and bytes of all files of ours, the compiler's headers included."""

    folder: Path
    entries: int
    bytes: int
    writable: bool


def usage() -> Usage:
    """Count the cache. Does not create it."""
    folder = cache_folder()
    entries = sum(1 for _ in (folder / "kernels").glob("*/*.msgpack"))
    size = 0
    for part in _PARTS:
        for path in (folder / part).rglob("*"):
            # A file may vanish meanwhile: another process clears, or renames its temporary file.
            with contextlib.suppress(OSError):
                size += path.stat().st_size if path.is_file() else 0
    existing = folder
    while not existing.exists():
        existing = existing.parent
    return Usage(folder, entries, size, existing.is_dir() and os.access(existing, os.W_OK))


def clear() -> Usage:
    """Empty the cache, and only what is ours in its folder; returns what it held."""
    held = usage()
    for part in _PARTS:
        shutil.rmtree(held.folder / part, ignore_errors=True)
    return held


_PARTS = ("kernels", "drywarp-headers")
"""The folders of ours; what else lies beside them is left alone."""
