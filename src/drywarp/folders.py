"""Where things are kept between runs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """`$DRYWARP_CACHE_DIR`, else the user's cache folder of this platform."""
    override = os.environ.get("DRYWARP_CACHE_DIR")
    if override:
        return Path(override)
    import platformdirs  # takes a moment, and is not needed above

    return Path(platformdirs.user_cache_dir("drywarp"))


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
