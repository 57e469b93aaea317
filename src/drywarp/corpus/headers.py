"""Folders of headers that sources of a suite expect to be told, guessed from the suite's own tree.

A suite's build files name them with `-I`. Here a header that lies neither beside the source nor in a folder
that was given is looked for in the whole tree: of the files whose path ends as the include directive says,
the one nearest to the source is taken.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import DrywarpError
from ..frontends.source import decode, includes

_SUFFIXES = frozenset(
    (*(".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".tpp", ".def", ""), ".cu", ".c", ".cc", ".cpp")
)
_MOST_READ = 400
"""Headers that are followed from one source."""


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
        """The folders that the compiler needs to be told besides `given`, in the order in which they turned up."""
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
