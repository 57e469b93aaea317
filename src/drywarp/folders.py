"""Where things are kept between runs, what they are keyed by, and how processes take turns at making them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_PACKAGE = Path(__file__).parent


def cache_folder() -> Path:
    """`$DRYWARP_CACHE_DIR`, else the user's cache folder of this platform."""
    override = os.environ.get("DRYWARP_CACHE_DIR")
    if override:
        return Path(override)
    import platformdirs  # takes a moment, and is not needed above

    return Path(platformdirs.user_cache_dir("drywarp"))


@cache
def sources_digest(*parts: str, suffixes: tuple[str, ...] = (".py",)) -> str:
    """SHA-256 over names and content of our own sources below `parts` (files or folders of the package; default: all).

    What is kept between runs holds it in its key, so that an edited source never meets what an older one made.
    """
    digest = hashlib.sha256()
    for part in parts or (".",):
        place = _PACKAGE / part
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix in suffixes:
                data = path.read_bytes()
                digest.update(f"{os.path.relpath(path, _PACKAGE)}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


@contextlib.contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Hold the lock of this name: processes that are about to make the same thing wait for the one that makes it.

    Where no lock is to be had (a folder that cannot be written, another platform) they work side by side.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(path.open("ab"))
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in one step, so that no reader sees a part; does nothing where the folder cannot be written."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            temporary = file.name
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
