"""Macros that a suite's build files define for a source that does not compile without them, and header folders.

Only plain macros are used: `-DNAME` and `-DNAME=value` in a Makefile or CMake file, in the source's own folder or the
nearest parent that has any, without references to the build tool's variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ...errors import DrywarpError
from ...frontends.cuda.source import decode, includes

_NAMES = ("Makefile", "makefile", "GNUmakefile", "CMakeLists.txt")
_MACRO = re.compile(r"(?<![\w$-])-D\s?([A-Za-z_]\w*)(?:=(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'()]*))?")
_CMAKE = re.compile(r"\b(?:target_compile_definitions|add_compile_definitions)\s*\(([^)]*)\)", re.I)
_PLAIN = re.compile(r"(?<![\w$/.-])([A-Za-z_]\w*)(=[^\s\"';$]+)?(?![\w/.$-])")
_MOST_BYTES = 1 << 20
_NO_MACROS = frozenset({"PRIVATE", "PUBLIC", "INTERFACE"})


def guessed_macros(source: Path, root: Path) -> dict[str, str]:
    """The macros by name for a source below `root`; empty if no build file defines any."""
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
        # The first word is the target; the macros follow PRIVATE and the like.
        for name, value in _PLAIN.findall(re.sub(r"^\s*\S+(?=\s+(?:PRIVATE|PUBLIC|INTERFACE)\b)", "", inside)):
            if name not in _NO_MACROS:
                yield name, value[1:]


# Header folders that a suite's sources need, guessed from the suite's own tree.
#
# A suite's build files pass them with `-I`. Here a header that is neither beside the source nor in a given folder is
# searched in the whole tree: among the files whose path ends like the include directive, the one nearest to the source
# is used.

_SUFFIXES = frozenset(
    (*(".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".tpp", ".def", ""), ".cu", ".c", ".cc", ".cpp")
)
_MOST_READ = 400
"""Most headers that are followed from one source."""


@dataclass
class HeaderTree:
    """The headers below a folder, by file name."""

    folder: Path
    by_name: dict[str, list[Path]] = field(default_factory=dict)

    @classmethod
    def below(cls, folder: Path) -> HeaderTree:
        """Walk the folder once."""
        tree = cls(folder)
        for place, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                if os.path.splitext(name)[1].lower() in _SUFFIXES:
                    tree.by_name.setdefault(name, []).append(Path(place, name))
        return tree

    def folders_for(self, source: Path, given: Sequence[Path]) -> list[Path]:
        """The folders that the compiler needs besides `given`, in order of discovery."""
        guessed: list[Path] = []
        seen: set[Path] = set()
        pending = [source]
        while pending and len(seen) < _MOST_READ:
            file = pending.pop(0)
            if file in seen:
                continue
            seen.add(file)
            try:
                text = decode(file.read_bytes())
            except (OSError, UnicodeDecodeError, DrywarpError):
                continue
            for name, quoted in includes(text):
                places = [*([file.parent] if quoted else []), source.parent, *given, *guessed]
                found = next((place / name for place in places if (place / name).is_file()), None)
                if found is None:
                    found = self._nearest(name, source)
                    if found is not None:
                        guessed.append(_without(found, name))
                if found is not None:
                    pending.append(found)
        return guessed

    def _nearest(self, name: str, source: Path) -> Path | None:
        wanted = Path(name).parts
        if ".." in wanted:
            return None
        ending = [path for path in self.by_name.get(wanted[-1], ()) if path.parts[-len(wanted) :] == wanted]
        return max(ending, key=lambda path: (_shared(path, source), -len(path.parts), path.as_posix()), default=None)


def _shared(a: Path, b: Path) -> int:
    count = 0
    for x, y in zip(a.parts, b.parts, strict=False):
        if x != y:
            break
        count += 1
    return count


def _without(path: Path, name: str) -> Path:
    """The folder from which `path` is reached as `name`."""
    for _ in Path(name).parts:
        path = path.parent
    return path
