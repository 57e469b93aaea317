"""What a configuration of a tuning space is compiled and launched with, as Kernel Tuner would.

Block sizes come from the parameters of those names, 256 threads without any; the grid is the problem size over its
divisors, rounded up; parameters, block and grid sizes are macros, and so is ``kernel_tuner``, unless `defines` says
otherwise. (Kernel Tuner's documentation, "tune_kernel" and "Design of the tunable kernel".)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...frontends.cuda import read_source
from ...frontends.load import read_input
from ...frontends.python.flags import cuda_options
from .space import TuningSpace, is_file
from .strings import filled, given, whole

USUAL_BLOCK = (256, 1, 1)
OURS = "drywarp_value_of_"
"""Before a macro's name in the compiler's options. Kernel Tuner writes macros before the source, where they leave the
compiler's own header alone, which a parameter called ``size`` would break. Written so, the text would be another for
each configuration; instead it defines each macro as one of the options."""
_UNROLL = "loop_unroll_factor"
"""Part of the name of a parameter that stands in ``#pragma unroll``, where macros do not count: it becomes a constant,
and 0 takes the pragma away."""


def launch_of(space: TuningSpace, parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `drywarp.api.bind_kernel` for one configuration, `source` among them.

    `arguments` are the kernel's, by place (``arg0``). Raises UsageError where something of it cannot be worked out.
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
    flags = cuda_options([str(option) for option in space.compiler_options])
    source, folders = _source(space, parameters, macros)
    shared = space.smem_args.get("size")
    return {
        "source": source,
        "entry": filled(space.kernel_name, parameters),
        "grid": grid,
        "block": block,
        "args": {name: _chosen(value, parameters) for name, value in arguments.items()},
        "constants": dict(space.cmem_args),
        "shared": None if shared is None else whole(shared, parameters, "smem_args['size']"),
        "defines": {**(flags.defines or {}), **{OURS + name: value for name, value in macros.items()}},
        "includes": (*flags.includes, *folders),
        "std": flags.std,
        "max_registers": flags.max_registers,
    }


def grid_of(space: TuningSpace, parameters: Mapping[str, Any]) -> tuple[int, ...]:
    """Blocks in three dimensions: the problem size over the divisors, rounded up."""
    size = given(space.problem_size, parameters, "problem_size") if callable(space.problem_size) else space.problem_size
    parts = list(size) if isinstance(size, Iterable) and not isinstance(size, str) else [size]
    extents = [whole(part, parameters, "problem_size") for part in [*parts, 1, 1, 1][:3]]
    return tuple(
        math.ceil(extent / _divisor(div, parameters.get(name, 1), parameters))
        for extent, div, name in zip(extents, space.grid_div, space.block_size_names, strict=False)
    )


def _divisor(div: Any, usual: Any, parameters: Mapping[str, Any]) -> float:
    """A divisor: None is the block's extent, a list the product of its parts. Only functions keep fractions."""
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
    """The source of a configuration, and folders in which its other files lie."""
    sources = space.kernel_source if isinstance(space.kernel_source, list | tuple) else [space.kernel_source]
    first = sources[0]
    if callable(first):
        try:
            first = first(dict(parameters))
        except Exception as error:
            raise UsageError(
                f"{space.kernel_name}: the function that makes its source failed: {type(error).__name__}: {error}"
            ) from None
    if not isinstance(first, str | Path):
        raise UsageError(f"{space.kernel_name}: kernel_source is a {type(first).__name__}, expected CUDA C++ or a file")
    folders = [str(Path(source).parent) for source in sources[1:] if is_file(source)]
    if is_file(first):
        read_input(Path(first))
        return _written(read_source(Path(first)), macros, str(first)), [str(Path(first).parent), *folders]
    return _written(str(first), macros, ""), folders


def _written(text: str, macros: Mapping[str, str], origin: str) -> str:
    """The source with its macros before it, which stand for those of the compiler's options."""
    lines = []
    for name, value in macros.items():
        if _UNROLL not in name:
            lines.append(f"#define {name} {OURS}{name}")
        elif value == "0":
            text = re.sub(rf"^[ \t]*#[ \t]*pragma[ \t]+unroll[ \t]+{name}\b.*$", "", text, flags=re.M)
        else:
            lines.append(f"constexpr int {name} = {OURS}{name};")
    return "\n".join([*lines, f'#line 1 "{origin}"' if origin else "#line 1", text])


def _chosen(value: Any, parameters: Mapping[str, Any]) -> Any:
    """Kernel Tuner's `Tunable` argument as it is in this configuration; any other as it stands."""
    choose = getattr(value, "select_for_configuration", None)
    return choose(dict(parameters)) if callable(choose) else value
