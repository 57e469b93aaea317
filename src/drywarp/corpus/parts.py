"""Files that are no modules of their own: what does not compile alone, and another source includes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..frontends.source import decode, includes
from .result import COMPILE_FAILED, PART, Row

_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".c")


def settle_parts(root: Path, rows: Sequence[Row]) -> list[Row]:
    """The rows, with those that the compiler refused and another file includes marked as parts of it."""
    refused = {(root / row.file).resolve(): row for row in rows if row.status == COMPILE_FAILED}
    if not refused:
        return list(rows)
    names = {path.name for path in refused}
    includers: dict[Path, Path] = {}
    for file in sorted(p for p in root.rglob("*") if p.suffix in _SUFFIXES and p.is_file()):
        try:
            text = decode(file.read_bytes())
        except (OSError, UnicodeDecodeError):
            continue
        for name, _ in includes(text):
            if Path(name).name in names:
                target = (file.parent / name).resolve()
                if target in refused and target != file.resolve():
                    includers.setdefault(target, file)
    settled = []
    for row in rows:
        includer = includers.get((root / row.file).resolve())
        if row.status == COMPILE_FAILED and includer is not None:
            note = f"included by {includer.relative_to(root).as_posix()}, and not compiled alone: {row.reason}"
            row = replace(row, status=PART, reason=note)
        settled.append(row)
    return settled
