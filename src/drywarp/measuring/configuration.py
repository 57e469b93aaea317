"""One launch of a suite's kernel: a variant's sums worked out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..arguments import parse_dim3
from ..errors import InputFileError, UsageError
from ..frontends.abstract_expression import Value
from ..kernel.launch import Dim3
from ..rows.cells import Row
from ..rows.recipe import Recipe, launch_of
from ..rows.text_hash import hash_of
from .suite_file import SuiteKernel


@dataclass(frozen=True)
class Configuration:
    """A kernel with macros, grid, block and arguments; `shared` is the dynamic shared memory that it needs itself.

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
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @cached_property
    def source_hash(self) -> str:
        """What the source's text is known by, in twelve characters."""
        return hash_of(self.source)

    def launch_text(self, dynamic_shared: int) -> str:
        """The launch as a launch comment says it."""
        words = ["--grid", _extents(self.grid), "--block", _extents(self.block), "--shared", str(dynamic_shared)]
        if self.kernel.entry.entry:
            words += ["--entry", self.kernel.entry.entry]
        for name, value in self.defines.items():
            words += ["-D", f"{name}={value}"]
        for name, value in self.args.items():
            words += ["--arg", f"{name}={value}"]
        return shlex.join(words)


def configurations(kernel: SuiteKernel, *, small: bool = False) -> list[Configuration]:
    """A configuration for each variant, at each of the kernel's sizes; `small` takes the small size alone.

    Raises InputFileError naming the file, the kernel and the sum.
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
    recipe = Recipe(macros=(), grid=entry.grid, block=entry.block, args=_texts(entry.args), shared=entry.shared)
    try:
        said = launch_of(recipe, row, (), "")
        grid, block = parse_dim3(said["grid"], "grid"), parse_dim3(said["block"], "block")
    except UsageError as error:
        place = "" if str(error).startswith(str(kernel.described)) else f"{row.place}: "
        raise InputFileError(f"{place}{error}") from None
    text = " ".join(f"{key}={value}" for key, value in variant.items())
    return Configuration(kernel, name, text, values, defines, grid, block, said["args"], said["shared"])


def _texts(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as a command line gives them, so that a launch comment can hold them."""
    return {name: value if isinstance(value, str) else repr(value) for name, value in args.items()}


def _extents(extents: Dim3) -> str:
    x, y, z = extents
    return f"{x},{y},{z}" if z > 1 else f"{x},{y}" if y > 1 else str(x)
