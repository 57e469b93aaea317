"""Any file of measurements, as a table: its content decides what it is."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path
from typing import Any

from ..errors import InputFileError
from ..frontends.ncu import read_text
from ..frontends.rocprof import looks_like_rocprof
from .read_csv import parse_csv
from .read_kernel_tuner import parse_kernel_tuner, said_of
from .read_profile import read_profile
from .table import Table

_ID = re.compile(r'(^|[",;])ID[",;]')
_LINES_BEFORE = 5000
"""Lines that a profiled program may have printed before the table."""
_GZIP = b"\x1f\x8b"
_LARGEST = 1 << 30
"""Bytes that a compressed file may unpack to."""


def read_table(path: Path, *, time: str | None = None, entry: str | None = None) -> Table:
    """A CSV table, a file of Kernel Tuner's (gzip too), or a profiler's export.

    `time` is ``COLUMN`` or ``COLUMN:UNIT`` where the usual names do not tell; `entry` the kernel of a profile. Raises
    InputFileError or UsageError with file, line and what was expected; a table without rows is an error too.
    """
    text = _text(path)
    start = text.lstrip()[:1]
    if start == "{" and '"kernels"' not in text[:4096]:
        table = parse_kernel_tuner(text, str(path), time)
    elif start == "{" or _is_profile(text):
        table = read_profile(path, entry)
    elif not text.strip():
        raise InputFileError(f"{path}: empty (expected a table of measurements)")
    else:
        table = parse_csv(text, str(path), time)
    if not table.rows:
        why = ", ".join(f"{count} with {reason}" for reason, count in table.left_out.items()) or "none at all"
        raise InputFileError(f"{path}: no row with a time (rows left out: {why})")
    return table


def read_header(path: Path) -> dict[str, Any]:
    """What Kernel Tuner's cache says of all its configurations (`said_of`)."""
    return said_of(_text(path), str(path))


def _is_profile(text: str) -> bool:
    if looks_like_rocprof(text):
        return True
    return any("Kernel Name" in line and _ID.search(line) for line in text.splitlines()[:_LINES_BEFORE])


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == _GZIP
        if not compressed:
            return read_text(path)
        with gzip.open(path) as unpacked:
            data = unpacked.read(_LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputFileError(f"{path}: cannot be read ({reason}; expected a table of measurements)") from None
    if len(data) > _LARGEST:
        raise InputFileError(f"{path}: unpacks to more than {_LARGEST >> 20} MiB")
    return data.decode("utf-8-sig", "replace")
