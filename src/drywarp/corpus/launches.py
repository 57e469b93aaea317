"""Known launches of a folder's modules: files `launches.toml`, each in the folder whose files it speaks of.

    [[launch]]
    file = "saxpy.cu"        # beside this file or below it; may be left out where one module lies beside it
    kernel = "saxpy"
    grid = 65536
    block = 256
    args = { n = 16777216, a = 2.0, x = "f32[16777216]:random", y = "f32[16777216]" }

The other keys are those of a launches file of `drywarp analyze` (see `drywarp.frontends.launches`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputFileError
from ..frontends.launches import LaunchEntry, read_entries
from .files import Module

NAME = "launches.toml"


class FileLaunch(LaunchEntry, frozen=True, forbid_unknown_fields=True):
    """A `[[launch]]` table that names the file it belongs to."""

    file: str | None = None


@dataclass(frozen=True)
class KnownLaunch:
    """How a module is launched; empty: as the launch comment in the file says."""

    entry: LaunchEntry | None = None
    times: int = 1
    defines: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """As `drywarp.analyze` takes them."""
        if self.entry is None:
            return {}
        return {
            "entry": self.entry.kernel,
            "grid": self.entry.grid,
            "block": self.entry.block,
            "args": self.entry.args,
            "shared": self.entry.shared,
            "constants": self.entry.constants,
        }


def launches_below(folder: Path, modules: Sequence[Module]) -> dict[Path, tuple[KnownLaunch, ...]]:
    """The launches that the folder's launches files state, by module. Raises InputFileError for a bad one."""
    known = {module.path.resolve(): module.path for module in modules}
    found: dict[Path, list[KnownLaunch]] = {}
    for file in sorted(folder.rglob(NAME)):
        beside = [module.path for module in modules if module.path.parent == file.parent]
        for number, item in enumerate(read_entries(file, FileLaunch), 1):
            if item.file is None and len(beside) != 1:
                raise InputFileError(f"{file}: launch {number}: names no file, and {len(beside)} modules lie beside it")
            path = beside[0] if item.file is None else known.get((file.parent / item.file).resolve())
            if path is None:
                raise InputFileError(f"{file}: launch {number}: no module {item.file!r} there (expected its path)")
            defines = {name: str(value) for name, value in item.defines.items()}
            found.setdefault(path, []).append(KnownLaunch(item, item.times, defines))
    return {path: tuple(launches) for path, launches in found.items()}
