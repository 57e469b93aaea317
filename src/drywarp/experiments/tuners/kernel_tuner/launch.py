"""How Kernel Tuner would compile and launch a configuration of a tuning space.

Block sizes come from the parameters with those names (default: 256 threads); the grid is the problem size divided by
its divisors, rounded up; parameters, block and grid sizes and ``kernel_tuner`` become macros, unless `defines` is
given. (Kernel Tuner's documentation, "tune_kernel" and "Design of the tunable kernel".)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ....errors import UsageError
from ....frontends.cuda import known_options
from ....frontends.cuda.compile import read_source
from ....frontends.load import read_input
from .space import TuningSpace, is_file
from .values import chosen, filled, given, whole

USUAL_BLOCK = (256, 1, 1)
OURS = "drywarp_value_of_"
"""Prefix of a macro's name in the compiler's options. Kernel Tuner writes macros before the source, so that they do not
affect the compiler's own headers, which a parameter called ``size`` would break. That would make the text different
for each configuration; instead, the text defines each macro in terms of one of the options."""
_UNROLL = "loop_unroll_factor"
"""Part of the name of a parameter used in ``#pragma unroll``, where macros are not expanded: it becomes a constant, and
0 removes the pragma."""


def launch_of(space: TuningSpace, parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `drywarp.analysis.prepare.prepare_kernel` for one configuration, including `source`.

    `arguments` are the kernel's, by position (``arg0``). Raises UsageError if something cannot be evaluated.
    """
    try:
        return _launch(space, parameters, arguments)
    except ZeroDivisionError:
        raise UsageError(f"{space.kernel_name}: division by zero in a size or divisor") from None


def _launch(space: TuningSpace, parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    block = tuple(
        whole(parameters.get(name, usual), parameters, name)
        for name, usual in zip(space.block_size_names, USUAL_BLOCK, strict=False)
    )
    grid = grid_of(space, parameters)
    macros = _macros(space, parameters, grid, block)
    flags = known_options([str(option) for option in space.compiler_options])
    source, folders = _source(space, parameters, macros)
    shared = space.smem_args.get("size")
    return {
        "source": source,
        "entry": filled(space.kernel_name, parameters),
        "grid": grid,
        "block": block,
        "args": {name: chosen(value, parameters) for name, value in arguments.items()},
        "constants": dict(space.cmem_args),
        "shared": None if shared is None else whole(shared, parameters, "smem_args['size']"),
        "defines": {**(flags.defines or {}), **{OURS + name: value for name, value in macros.items()}},
        "includes": (*flags.includes, *folders),
        "std": flags.std,
        "max_registers": flags.max_registers,
        "compiler_options": flags.compiler_options,
    }


def grid_of(space: TuningSpace, parameters: Mapping[str, Any]) -> tuple[int, ...]:
    """Blocks in three dimensions: the problem size divided by the divisors, rounded up."""
    size = given(space.problem_size, parameters, "problem_size")
    parts = list(size) if isinstance(size, Iterable) and not isinstance(size, str) else [size]
    extents = [whole(part, parameters, "problem_size") for part in [*parts, 1, 1, 1][:3]]
    return tuple(
        math.ceil(extent / _divisor(div, parameters.get(name, 1), parameters))
        for extent, div, name in zip(extents, space.grid_div, space.block_size_names, strict=False)
    )


def _divisor(div: Any, usual: Any, parameters: Mapping[str, Any]) -> float:
    """A divisor: None means the block's extent, a list the product of its parts. Only functions may be fractional."""
    if div is None:
        return float(usual)
    if isinstance(div, Iterable) and not isinstance(div, str):
        return math.prod(_divisor(part, 1, parameters) for part in div)
    if isinstance(div, str):
        return float(whole(div, parameters, "grid divisor"))
    return float(given(div, parameters, "grid divisor"))


def _macros(
    space: TuningSpace, parameters: Mapping[str, Any], grid: tuple[int, ...], block: tuple[int, ...]
) -> dict[str, str]:
    wanted: Mapping[str, Any] = space.defines if space.defines is not None else {
        **dict(zip(("grid_size_x", "grid_size_y", "grid_size_z"), grid, strict=True)),
        **dict(zip(space.block_size_names, block, strict=False)),
        **parameters,
        "kernel_tuner": 1,
    }  # fmt: skip
    found = {}
    for name, value in wanted.items():
        said = given(value, parameters, f"defines[{name!r}]") if callable(value) else value
        found[name] = filled(said, parameters) if isinstance(said, str) else str(said)
    return found


def _source(space: TuningSpace, parameters: Mapping[str, Any], macros: Mapping[str, str]) -> tuple[str, list[str]]:
    """The source of a configuration, and the folders of its other files."""
    sources = space.kernel_source if isinstance(space.kernel_source, list | tuple) else [space.kernel_source]
    first = sources[0]
    if callable(first):
        try:
            first = first(dict(parameters))
        except Exception as error:
            raise UsageError(
                f"{space.kernel_name}: the function that generates its source failed: {type(error).__name__}: {error}"
            ) from None
    if not isinstance(first, str | Path):
        raise UsageError(f"{space.kernel_name}: kernel_source is a {type(first).__name__}, expected CUDA C++ or a file")
    folders = [str(Path(source).parent) for source in sources[1:] if is_file(source)]
    if is_file(first):
        read_input(Path(first))
        return _written(read_source(Path(first)), macros, str(first)), [str(Path(first).parent), *folders]
    return _written(str(first), macros, ""), folders


def _written(text: str, macros: Mapping[str, str], origin: str) -> str:
    """The source preceded by its macros, which refer to those in the compiler's options."""
    lines = []
    for name, value in macros.items():
        if _UNROLL not in name:
            lines.append(f"#define {name} {OURS}{name}")
        elif value == "0":
            text = re.sub(rf"^[ \t]*#[ \t]*pragma[ \t]+unroll[ \t]+{name}\b.*$", "", text, flags=re.M)
        else:
            lines.append(f"constexpr int {name} = {OURS}{name};")
    return "\n".join([*lines, f'#line 1 "{origin}"' if origin else "#line 1", text])
