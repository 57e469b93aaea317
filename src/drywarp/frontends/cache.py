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
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..folders import cache_folder, replace_file


class Entry(msgspec.Struct, frozen=True):
    """What the frontend keeps of one compilation; `notes` are for whoever reads the answer."""

    cubin: bytes
    listing: str
    log: str
    symbols: dict[str, str]
    notes: tuple[str, ...] = ()
    compiler: str = ""


_FORMAT = b"7"
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


def read(part: str, key: str) -> bytes | None:
    """What is kept under a key in one of the cache's folders, or None."""
    try:
        return _place(part, key).read_bytes()
    except OSError:
        return None


def write(part: str, key: str, data: bytes, most: int) -> None:
    """Keep something; of a folder with more than `most` bytes the oldest goes. Does nothing where it cannot."""
    path = _place(part, key)
    replace_file(path, data)
    with contextlib.suppress(OSError):
        files = sorted(((file.stat(), file) for file in path.parent.iterdir()), key=lambda f: f[0].st_mtime_ns)
        held = sum(stat.st_size for stat, _ in files)
        for stat, file in files:
            if held <= most:
                break
            file.unlink(missing_ok=True)
            held -= stat.st_size


def _place(part: str, key: str) -> Path:
    return cache_folder() / part / f"{key}.msgpack"


def load(key: str) -> Entry | None:
    """The entry of this key, or None."""
    try:
        return msgspec.msgpack.decode(_path(key).read_bytes(), type=Entry)
    except (OSError, msgspec.MsgspecError):
        return None


def store(key: str, entry: Entry) -> None:
    """Keep an entry; does nothing where the folder cannot be written."""
    replace_file(_path(key), msgspec.msgpack.encode(entry))


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


_PARTS = ("kernels", "drywarp-headers", "loops", "emulations")
"""The folders of ours; what else lies beside them is left alone."""
