"""Which files of a folder are modules: CUDA C++ and PTX by their names, machine code by its content."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputFileError, UsageError
from ..frontends.binary import holds_device_code, is_binary

SOURCES = (".cu", ".ptx")
MACHINE_CODE = (".cubin", ".fatbin")
_OTHER_BINARIES = ("", ".o", ".obj", ".so", ".a", ".out", ".exe", ".bin")
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Module:
    """One file to look at; `name` is its path below the folder."""

    path: Path
    name: str


def find_modules(folder: Path) -> list[Module]:
    """The modules below a folder by name. Raises UsageError or InputFileError where there are none."""
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
