"""Compiled and disassembled kernels on disk, keyed by their content.

An entry is written to a temporary file and renamed, so that several processes and a kill in the
middle never leave half an entry. Each ends with a checksum: a damaged or unreadable entry counts as absent and is
made anew; a cache that cannot be written is done without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections import Counter
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


_CHECKSUM = 16
LOOK_EVERY = 32
"""Entries that a process writes to a folder between two looks at how full it is."""
ROOM = 0.9
"""What is left of the most that a folder may hold, where it held more."""
written: Counter[str] = Counter()
damaged: list[Path] = []
"""Entries that this process found damaged, for whoever wants to say so."""


def _sealed(data: bytes) -> bytes:
    return data + hashlib.blake2b(data, digest_size=_CHECKSUM).digest()


def _opened(path: Path) -> bytes | None:
    """What a file was sealed with; None where there is none, or not what was written."""
    try:
        held = path.read_bytes()
    except OSError:
        return None
    data = held[:-_CHECKSUM]
    if _sealed(data) != held:
        damaged.append(path)
        return None
    return data


def read(part: str, key: str) -> bytes | None:
    """What is kept under a key in one of the cache's folders, or None."""
    return _opened(_place(part, key))


def exists(part: str, key: str) -> bool:
    """Whether something is kept under a key."""
    return _place(part, key).is_file()


def write(part: str, key: str, data: bytes, most: int) -> None:
    """Keep something; of a folder with more than `most` bytes the oldest goes. Does nothing where it cannot."""
    path = _place(part, key)
    replace_file(path, _sealed(data))
    written[part] += 1
    if (written[part] - 1) % LOOK_EVERY:
        return
    _trim(path.parent, most)


def _trim(folder: Path, most: int) -> None:
    """Where a folder holds more than `most` bytes, let the oldest go until there is some room again."""
    files = []
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            # Another process may take one away meanwhile.
            with contextlib.suppress(OSError):
                stat = file.stat()
                files.append((stat.st_mtime_ns, stat.st_size, file))
    held = sum(size for _, size, _ in files)
    if held <= most:
        return
    for _, size, file in sorted(files):
        if held <= ROOM * most:
            break
        with contextlib.suppress(OSError):
            file.unlink()
        held -= size


def _place(part: str, key: str) -> Path:
    return cache_folder() / part / f"{key}.msgpack"


def load(key: str) -> Entry | None:
    """The entry of this key, or None."""
    data = _opened(_path(key))
    try:
        return None if data is None else msgspec.msgpack.decode(data, type=Entry)
    except (ValueError, msgspec.MsgspecError):
        return None


def store(key: str, entry: Entry) -> None:
    """Keep an entry; does nothing where the folder cannot be written."""
    replace_file(_path(key), _sealed(msgspec.msgpack.encode(entry)))


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
    return Usage(folder, entries, size, writable())


def writable() -> bool:
    """Whether something can be kept. Creates nothing."""
    existing = cache_folder()
    while not existing.exists():
        existing = existing.parent
    return existing.is_dir() and os.access(existing, os.W_OK)


def clear() -> Usage:
    """Empty the cache, and only what is ours in its folder; returns what it held."""
    held = usage()
    for part in _PARTS:
        shutil.rmtree(held.folder / part, ignore_errors=True)
    return held


_PARTS = ("kernels", "drywarp-headers", "loops", "emulations", "answers")
"""The folders of ours; what else lies beside them is left alone."""
