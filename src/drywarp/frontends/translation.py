"""A source with all of the user's files that it includes, directly or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .source import includes


@dataclass(frozen=True, slots=True)
class Included:
    """A file of the user's as an include directive names it."""

    name: str
    path: Path
    text: str


@dataclass(frozen=True)
class Translation:
    """What the compiler will read: the source, where it came from, and the files it includes."""

    text: str
    origin: str
    folder: Path | None
    included: tuple[Included, ...]

    @property
    def bodies(self) -> tuple[str, ...]:
        """The texts of the included files; they belong to the cache key."""
        return tuple(i.text for i in self.included)


def gather(text: str, origin: str, folder: Path | None, search: Sequence[Path]) -> Translation:
    """Find the included files that exist; the compiler's own headers are left to the compiler.

    A name in quotes is looked for beside the file that includes it first, as the compiler does.
    """
    places = [*([folder] if folder else []), *search]
    found: dict[tuple[str, Path], Included] = {}
    pending = [(text, folder)]
    while pending:
        body, beside = pending.pop()
        for name, quoted in includes(body):
            for place in [*([beside] if beside and quoted else []), *places]:
                path = place / name
                if path.is_file():
                    key = (name, path.resolve())
                    if key not in found:
                        found[key] = Included(name, path, path.read_text(encoding="utf-8-sig", errors="replace"))
                        pending.append((found[key].text, path.parent))
                    break
    return Translation(text, origin, folder, tuple(found.values()))
