"""Macros that a suite's build files define for a source, where it does not compile without them.

Only plain ones are taken: `-DNAME` and `-DNAME=value` as they stand in a Makefile or CMake file, in the
source's own folder or the nearest one above it that has any, without names of the build tool's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_NAMES = ("Makefile", "makefile", "GNUmakefile", "CMakeLists.txt")
_MACRO = re.compile(r"(?<![\w$-])-D\s?([A-Za-z_]\w*)(?:=(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'()]*))?")
_CMAKE = re.compile(r"\b(?:target_compile_definitions|add_compile_definitions)\s*\(([^)]*)\)", re.I)
_PLAIN = re.compile(r"(?<![\w$/.-])([A-Za-z_]\w*)(=[^\s\"';$]+)?(?![\w/.$-])")
_MOST_BYTES = 1 << 20
_NO_MACROS = frozenset({"PRIVATE", "PUBLIC", "INTERFACE"})


def guessed_macros(source: Path, root: Path) -> dict[str, str]:
    """The macros by name for a source below `root`; empty where no build file defines any."""
    folder = source.parent
    while True:
        if found := dict(_macros(folder)):
            return found
        if folder in (root, folder.parent):
            return {}
        folder = folder.parent


@cache
def _macros(folder: Path) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for path in [*(folder / name for name in _NAMES), *sorted(folder.glob("*.mk"))]:
        try:
            if path.is_file() and path.stat().st_size <= _MOST_BYTES:
                for name, value in _of(path.read_text(encoding="utf-8", errors="replace")):
                    found.setdefault(name, value)
        except OSError:
            continue
    return tuple(found.items())


def _of(text: str) -> Iterator[tuple[str, str]]:
    text = re.sub(r"#.*", "", text)
    for name, value in _MACRO.findall(text):
        if "$" not in value:
            yield name, value.strip("'\"")
    for inside in _CMAKE.findall(text):
        # The first word is the target; what comes behind PRIVATE and the like are the macros.
        for name, value in _PLAIN.findall(re.sub(r"^\s*\S+(?=\s+(?:PRIVATE|PUBLIC|INTERFACE)\b)", "", inside)):
            if name not in _NO_MACROS:
                yield name, value[1:]
