"""The headers that the compiler brings, unpacked once per version of it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from .cache import cache_folder
from .nvrtc import install_headers
from .toolchain import tool_versions

_NAME = "drywarp-headers"
"""Folder name by which source lines of these headers are told from the user's (see `sass`)."""


def header_folder() -> Path:
    """The folder of the bundled headers, in the cache, or a temporary one where that cannot be written.

    It is unpacked beside its place and renamed, so that several processes may do so at once and none
    ever sees half of it.
    """
    folder = cache_folder() / _NAME / tool_versions()["nvrtc"]
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent))
    except OSError:
        return _temporary()
    try:
        install_headers(fresh)
        fresh.chmod(0o755)
        os.rename(fresh, folder)
    except OSError:
        # Another process was first, and its folder is as good as ours; or renaming is not possible.
        if not folder.is_dir():
            return _temporary()
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


@cache
def _temporary() -> Path:
    """A folder that lives as long as this process."""
    root = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    folder = Path(root) / _NAME
    folder.mkdir()
    install_headers(folder)
    return folder
