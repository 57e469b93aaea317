"""Reads and checks the TOML files that describe a suite of kernels to measure (docs/measure.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from ...errors import InputFileError
from ...support.folders import read_toml

Value = int | float | str
_USUAL_TOLERANCE = 1e-5

_EXPECTED = "[[kernel]] tables, as docs/measure.md describes"


class KernelEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One kernel. `grid`, `block`, `shared` and `args` are expressions over sizes and the variant's values.

    `reference` is ``FILE:FUNCTION``, relative to the TOML file, as is `file`. `macros` are defined in every variant;
    variant keys in capitals are macros too. `compiler_options` are in nvcc's spelling. `small` replaces sizes for
    short runs; with `large` sizes, the kernel is measured at both sizes, under its name and as ``NAME large``.
    `tolerance` is relative, for floating-point outputs.
    """

    name: str
    file: str
    grid: str
    block: str
    reference: str
    args: dict[str, Value]
    entry: str | None = None
    shared: str = "0"
    sizes: dict[str, int] = {}
    small: dict[str, int] = {}
    large: dict[str, int] = {}
    variants: Annotated[tuple[dict[str, int | str], ...], msgspec.Meta(min_length=1)] = ({},)
    macros: dict[str, Value] = {}
    compiler_options: tuple[str, ...] = ()
    tolerance: Annotated[float, msgspec.Meta(gt=0)] = _USUAL_TOLERANCE


class _SuiteFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    kernel: Annotated[tuple[KernelEntry, ...], msgspec.Meta(min_length=1)]


class SuiteKernel(msgspec.Struct, frozen=True):
    """A kernel with its TOML file and its source."""

    entry: KernelEntry
    described: Path
    source: Path

    @property
    def group(self) -> str:
        """The TOML file's name without its suffix."""
        return self.described.stem


def read_suite(folder: Path) -> tuple[SuiteKernel, ...]:
    """The kernels of every TOML file in a folder, by file name, or of a single TOML file.

    Raises InputFileError with the file and what was expected: no folder, no TOML file, an unknown or missing key, a
    missing source, a duplicate name.
    """
    if folder.is_file() and folder.suffix == ".toml":
        files = [folder]
    elif folder.is_dir():
        files = sorted(folder.glob("*.toml"))
    else:
        raise InputFileError(f"{folder}: no such folder (expected one with TOML files that name kernels)")
    if not files:
        raise InputFileError(f"{folder}: holds no TOML file that names kernels (expected one such as kernels.toml)")
    found: dict[str, SuiteKernel] = {}
    for path in files:
        for kernel in _read_file(path):
            if kernel.entry.name in found:
                raise InputFileError(
                    f"{path}: kernel {kernel.entry.name!r} is already defined in {found[kernel.entry.name].described}"
                )
            found[kernel.entry.name] = kernel
    return tuple(found.values())


def _read_file(path: Path) -> list[SuiteKernel]:
    try:
        entries = msgspec.convert(read_toml(path, _EXPECTED), _SuiteFile).kernel
    except msgspec.ValidationError as error:
        raise InputFileError(f"{path}: {error} (expected {_EXPECTED})") from None
    found = []
    for entry in entries:
        source = path.parent / entry.file
        if not source.is_file():
            raise InputFileError(f"{path}: kernel {entry.name!r}: {source}: no such file")
        found.append(SuiteKernel(entry, path, source))
    return found
