"""The headers that the compiler brings, unpacked once per version of it."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

from ..folders import cache_folder
from .nvrtc import install_headers
from .toolchain import tool_versions, toolkit_headers

_NAME = "drywarp-headers"
"""Folder name by which source lines of these headers are told from the user's (see `sass`)."""
_VERSIONED = ("cuda_fp*", "cuda_bf16.*", "cooperative_groups*", "cuda_pipeline*", "cuda_awbarrier*")


def header_folder() -> Path:
    """The folder of the bundled headers, in the cache, or a temporary one where that cannot be written.

    It is unpacked beside its place and renamed, so that several processes may do so at once and none
    ever sees half of it.
    """
    name = f"{tool_versions()['nvrtc']} {toolkit_headers() or ''}"
    folder = cache_folder() / _NAME / re.sub(r"[^\w.]+", "-", name).strip("-")
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent))
    except OSError:
        return temporary_headers()
    try:
        _install(fresh)
        fresh.chmod(0o755)
        os.rename(fresh, folder)
    except OSError:
        # Another process was first, and its folder is as good as ours; or renaming is not possible.
        if not folder.is_dir():
            return temporary_headers()
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


@cache
def temporary_headers() -> Path:
    """A folder that lives as long as this process."""
    root = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    folder = Path(root) / _NAME
    folder.mkdir()
    _install(folder)
    return folder


def _install(folder: Path) -> None:
    """The packaged compiler's headers; of those that follow a compiler's version a chosen one gets its toolkit's."""
    install_headers(folder)
    toolkit = toolkit_headers()
    if toolkit is None:
        return
    for pattern in _VERSIONED:
        for old in folder.glob(pattern):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        for path in toolkit.glob(pattern):
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, folder / path.name)
