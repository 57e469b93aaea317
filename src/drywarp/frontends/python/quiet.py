"""Compilers as libraries write to the process's output as they like; ours belongs to the answer."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def diverted() -> Iterator[list[str]]:
    """Keep what is printed meanwhile, by native code too; the list holds the text once the block is left."""
    kept: list[str] = []
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace", buffering=1) as file:
        sys.stdout.flush()
        sys.stderr.flush()
        saved = os.dup(1), os.dup(2)
        try:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            # Python's own streams need not lead to those numbers, as in a notebook.
            with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                yield kept
        finally:
            for number, copy in enumerate(saved, 1):
                os.dup2(copy, number)
                os.close(copy)
            file.flush()
            file.seek(0)
            kept.append(file.read())
