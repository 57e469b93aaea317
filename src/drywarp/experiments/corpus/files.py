"""The inputs of a run over a folder: settings, modules, known launches, headers, and the macros of build files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import DrywarpError, InputFileError, UsageError
from ...frontends.binary import is_binary
from ...frontends.binary.containers import holds_device_code
from ...frontends.binary.kept import SUFFIX
from ...frontends.cuda.source import decode, includes
from ...frontends.loaded import LaunchEntry, read_entries


@dataclass(frozen=True)
class Settings:
    """Limits apply to each module: seconds of wall time, and resident bytes of its process.

    `static_limit_s` is the part of it for static predictions; the remaining kernels get none. `jobs` modules are
    examined in parallel. `defines`, `includes`, `std` and `compiler_options` are passed to the compiler for every
    source of the folder; further header folders are guessed (see `headers`).
    """

    jobs: int = 1
    time_limit_s: float = 60.0
    static_limit_s: float = 15.0
    memory_limit: int = 4 << 30
    defines: Mapping[str, str] = field(default_factory=dict)
    includes: tuple[str, ...] = ()
    std: str | None = None
    compiler_options: tuple[str, ...] = ()


# The files of a folder that are modules: CUDA C++ and PTX by name, machine code by content.

SOURCES = (".cu", ".ptx")
MACHINE_CODE = (".cubin", ".fatbin", SUFFIX)
_OTHER_BINARIES = ("", ".o", ".obj", ".so", ".a", ".out", ".exe", ".bin")
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Module:
    """One file to examine; `name` is its path relative to the folder."""

    path: Path
    name: str


def find_modules(folder: Path) -> list[Module]:
    """The modules below a folder by name. Raises UsageError or InputFileError if there are none."""
    if not folder.exists():
        raise InputFileError(f"{folder}: no such folder (expected a folder of .cu, .ptx or .cubin files)")
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a folder (expected a folder of .cu, .ptx or .cubin files)")
    found = [Module(path, path.relative_to(folder).as_posix()) for path in _files(folder) if _is_module(path)]
    if not found:
        raise UsageError(f"{folder}: holds no kernels (expected .cu, .ptx, .cubin or other machine-code files)")
    return sorted(found, key=lambda module: module.name)


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _is_module(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix in SOURCES or suffix in MACHINE_CODE:
        return path.is_file() or path.is_symlink()
    if suffix not in _OTHER_BINARIES and not suffix[1:].isdigit():
        return False
    try:
        with path.open("rb") as file:
            if not path.is_file() or not is_binary(file.read(64)) or path.stat().st_size > _MOST_BYTES:
                return False
            file.seek(0)
            return holds_device_code(file.read())
    except OSError:
        return False


# Known launches of a folder's modules: files `launches.toml`, each in the folder of the files that it describes.
#
#     [[launch]]
#     file = "saxpy.cu"        # relative path; may be omitted if there is only one module in this folder
#     kernel = "saxpy"
#     grid = 65536
#     block = 256
#     args = { n = 16777216, a = 2.0, x = "f32[16777216]:random", y = "f32[16777216]" }
#
# The other keys are those of a launches file of `drywarp analyze` (see `drywarp.frontends.loaded`).

NAME = "launches.toml"


class FileLaunch(LaunchEntry, frozen=True, forbid_unknown_fields=True):
    """A `[[launch]]` table that names the file it belongs to."""

    file: str | None = None


@dataclass(frozen=True)
class KnownLaunch:
    """How a module is launched; without an entry, as in the file's launch comment."""

    entry: LaunchEntry | None = None
    times: int = 1
    defines: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Arguments for `drywarp.analyze`."""
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
    """The launches in the folder's launches files, by module. Raises InputFileError for a bad file."""
    known = {module.path.resolve(): module.path for module in modules}
    found: dict[Path, list[KnownLaunch]] = {}
    for file in sorted(folder.rglob(NAME)):
        beside = [module.path for module in modules if module.path.parent == file.parent]
        for number, item in enumerate(read_entries(file, FileLaunch), 1):
            if item.file is None and len(beside) != 1:
                raise InputFileError(
                    f"{file}: launch {number}: names no file, and there are {len(beside)} modules in its folder"
                )
            path = beside[0] if item.file is None else known.get((file.parent / item.file).resolve())
            if path is None:
                raise InputFileError(f"{file}: launch {number}: no module {item.file!r} there (expected its path)")
            defines = {name: str(value) for name, value in item.defines.items()}
            found.setdefault(path, []).append(KnownLaunch(item, item.times, defines))
    return {path: tuple(launches) for path, launches in found.items()}


# Macros that a suite's build files define for a source that does not compile without them, and header folders.
#
# Only plain macros are used: `-DNAME` and `-DNAME=value` in a Makefile or CMake file, in the source's own folder or
# the nearest parent that has any, without references to the build tool's variables.


_NAMES = ("Makefile", "makefile", "GNUmakefile", "CMakeLists.txt")
_MACRO = re.compile(r"(?<![\w$-])-D\s?([A-Za-z_]\w*)(?:=(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'()]*))?")
_CMAKE = re.compile(r"\b(?:target_compile_definitions|add_compile_definitions)\s*\(([^)]*)\)", re.I)
_PLAIN = re.compile(r"(?<![\w$/.-])([A-Za-z_]\w*)(=[^\s\"';$]+)?(?![\w/.$-])")
_MOST_BUILD_BYTES = 1 << 20
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
            if path.is_file() and path.stat().st_size <= _MOST_BUILD_BYTES:
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
