"""What is measured: the kernels of a suite, and the shared memory that brings each to every occupancy."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ...errors import InputFileError, UsageError
from ...frontends.cuda import CudaOptions
from ...kernel.launch.arguments import parse_dim3
from ...kernel.launch.launch import Dim3
from ...support.expressions import Value
from ...support.folders import read_toml
from ..rows.identity import hash_of
from ..rows.recipe import Recipe, Row, launch_of

# The TOML files that describe a suite of kernels to measure (docs/measure.md).


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


STEP_BYTES = 256
"""Dynamic shared memory is varied in these steps: no GPU allocates it in smaller units."""


@dataclass(frozen=True)
class Occupied:
    """An amount of dynamic shared memory, and the blocks that an SM then holds."""

    dynamic_shared: int
    blocks: int


def occupancies(blocks: Callable[[int], int], own: int, most: int, points: int) -> list[Occupied]:
    """The least dynamic shared memory for each of up to `points` evenly spread occupancies, highest first.

    `blocks` maps bytes to the number of blocks that an SM holds, `own` is what the kernel itself needs and `most` is
    the maximum per block. Low occupancies that would need more than `most` are left out, as are those that the
    allocation granularity skips. Empty if not even one block fits.
    """
    highest = blocks(own)
    if highest < 1:
        return []
    found, count = [Occupied(own, highest)], min(points, highest)
    for wanted in (round(highest - at * (highest - 1) / (count - 1)) for at in range(1, count)):
        held = _least(blocks, own, most, wanted)
        if held is not None and 0 < held.blocks < found[-1].blocks:
            found.append(held)
    return found


def _least(blocks: Callable[[int], int], own: int, most: int, wanted: int) -> Occupied | None:
    """The smallest number of bytes with which an SM holds `wanted` blocks or fewer; blocks fall as bytes grow."""
    low, high = 0, (most - own) // STEP_BYTES
    if high < 0 or blocks(own + high * STEP_BYTES) > wanted:
        return None
    while low < high:
        middle = (low + high) // 2
        if blocks(own + middle * STEP_BYTES) <= wanted:
            high = middle
        else:
            low = middle + 1
    return Occupied(own + low * STEP_BYTES, blocks(own + low * STEP_BYTES))


# One launch of a suite's kernel: a variant with its expressions evaluated.


@dataclass(frozen=True)
class Configuration:
    """A kernel with macros, grid, block and arguments; `shared` is the dynamic shared memory that it needs.

    `name` is the kernel's; `values` are sizes and the variant's values by name, `variant` the latter as ``TILE=16``.
    """

    kernel: SuiteKernel
    name: str
    variant: str
    values: Mapping[str, Value]
    defines: Mapping[str, str]
    grid: Dim3
    block: Dim3
    args: Mapping[str, Any]
    shared: int

    @property
    def source(self) -> Path:
        """The kernel's file."""
        return self.kernel.source

    @property
    def options(self) -> CudaOptions:
        """The options for the compiler."""
        return CudaOptions(self.defines, compiler_options=self.kernel.entry.compiler_options)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @cached_property
    def source_hash(self) -> str:
        """A twelve-character hash of the source's text."""
        return hash_of(self.source)

    def launch_text(self, dynamic_shared: int) -> str:
        """The launch in the form of a launch comment."""
        words = ["--grid", _extents(self.grid), "--block", _extents(self.block), "--shared", str(dynamic_shared)]
        if self.kernel.entry.entry:
            words += ["--entry", self.kernel.entry.entry]
        for name, value in self.defines.items():
            words += ["-D", f"{name}={value}"]
        for option in self.kernel.entry.compiler_options:
            words += ["--compiler-option", option]
        for name, value in self.args.items():
            words += ["--arg", f"{name}={value}"]
        return shlex.join(words)


def configurations(kernel: SuiteKernel, *, small: bool = False) -> list[Configuration]:
    """One configuration for each variant at each of the kernel's sizes; `small` uses the small size only.

    Raises InputFileError that names the file, the kernel and the expression.
    """
    entry = kernel.entry
    sizes = {entry.name: {**entry.sizes, **(entry.small if small else {})}}
    if entry.large and not small:
        sizes[f"{entry.name} large"] = {**entry.sizes, **entry.large}
    return [_configuration(kernel, name, size, v) for name, size in sizes.items() for v in entry.variants]


def _configuration(
    kernel: SuiteKernel, name: str, sizes: Mapping[str, int], variant: Mapping[str, int | str]
) -> Configuration:
    entry = kernel.entry
    values: dict[str, Value] = {**sizes, **variant}
    macros = {**entry.macros, **{key: value for key, value in variant.items() if key.isupper()}}
    defines = {macro: str(value) for macro, value in macros.items()}
    cells = {key: str(value) for key, value in {**values, **entry.macros}.items()}
    row = Row(1, f"{kernel.described}: kernel {entry.name!r}", cells)
    # As on a command line, so that a launch comment can hold them.
    args = {key: value if isinstance(value, str) else repr(value) for key, value in entry.args.items()}
    recipe = Recipe(macros=(), grid=entry.grid, block=entry.block, args=args, shared=entry.shared)
    try:
        said = launch_of(recipe, row, (), "")
        grid, block = parse_dim3(said["grid"], "grid"), parse_dim3(said["block"], "block")
    except UsageError as error:
        place = "" if str(error).startswith(str(kernel.described)) else f"{row.place}: "
        raise InputFileError(f"{place}{error}") from None
    text = " ".join(f"{key}={value}" for key, value in variant.items())
    return Configuration(kernel, name, text, values, defines, grid, block, said["args"], said["shared"])


def _extents(extents: Dim3) -> str:
    x, y, z = extents
    return f"{x},{y},{z}" if z > 1 else f"{x},{y}" if y > 1 else str(x)
