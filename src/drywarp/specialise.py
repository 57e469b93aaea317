"""A source that was read and what a user says of its launch, as a kernel and the launch's own values.

Kernels of most languages are machine code by now; those of Triton and Numba are compiled here, for the
arguments. A grid may be a sum over the arguments, or a function of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .arguments import as_buffer
from .errors import UsageError
from .frontends.abstract_expression import ExpressionError, evaluate
from .frontends.comment import LaunchComment
from .frontends.loaded import Deferred, Loaded, Specialised
from .kernel.kernel import Kernel
from .kernel.launch import Buffer

Grid = int | Sequence[int] | str | Callable[[Mapping[str, Any]], Any] | None
Block = int | Sequence[int] | str | None


@dataclass(frozen=True)
class Settled:
    """A kernel with what the user says of its launch; `args` None leaves them to the comment."""

    kernel: Kernel
    comment: LaunchComment
    grid: int | Sequence[int] | str | None
    block: Block
    args: Mapping[str, Any] | None


def settle(
    loaded: Loaded,
    arch: str,
    *,
    grid: Grid = None,
    block: Block = None,
    args: Mapping[str, Any] | None = None,
    shared: int | None = None,
    config: int | None = None,
) -> Settled:
    """Compile what waits for its arguments, and work the grid out.

    Raises UsageError where the launch says what the kernel's compiler decides itself.
    """
    comment = loaded.comment
    if isinstance(loaded.kernel, Kernel):
        given = {**comment.arguments, **(args or {})}
        if config is not None:
            raise UsageError(f"{loaded.kernel.source_file}: --config is for the configurations of triton.autotune")
        return Settled(loaded.kernel, comment, grid_extents(grid, comment.grid, given), block, args)
    # A comment's arguments belong to the kernel that it names; another entry may take others.
    said = comment.arguments
    if args:
        said = {name: value for name, value in said.items() if name in loaded.kernel.takes(arch)}
    given = {**said, **(args or {})}
    buffers = {name: as_buffer(value, f"{loaded.kernel.name}: argument {name}") for name, value in given.items()}
    values = {name: value if (held := buffers[name]) is None else held for name, value in given.items()}
    made = loaded.kernel.specialise(values, arch, config)
    comment = _without_fixed(loaded.kernel, made, comment, block, shared)
    extents = grid_extents(grid, comment.grid, made.names)
    return Settled(made.kernel, comment, extents, made.block or block, _with_scratch(made, extents))


def grid_extents(grid: Grid, said: str | None, names: Mapping[str, Any]) -> int | Sequence[int] | str | None:
    """The grid with its expressions evaluated over `names`: `cdiv(n, BLOCK)`, or a function of them all."""
    if callable(grid):
        found = grid(dict(names))
        return found if isinstance(found, int | str) else tuple(int(extent) for extent in found)
    text = grid if isinstance(grid, str) else said if grid is None else None
    if text is None:
        return grid
    numbers = {name: number for name, value in names.items() if (number := _number(value)) is not None}
    return ",".join(_extent(part, numbers) for part in _split(text))


def _extent(text: str, numbers: Mapping[str, int | float]) -> str:
    if not any(c.isalpha() for c in text) and not any(c in text for c in "+-*/%()"):
        return text
    try:
        value = evaluate(text, numbers)
    except ExpressionError as error:
        raise UsageError(f"grid {text!r}: {error}") from None
    if value != int(value):
        raise UsageError(f"grid {text!r}: is {value:g}; expected a whole number, as cdiv(a, b) gives")
    return str(int(value))


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        try:
            return int(value, 0)
        except ValueError:
            return None
    if hasattr(value, "item") and not getattr(value, "shape", ()):
        value = value.item()
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _without_fixed(
    kernel: Deferred, made: Specialised, comment: LaunchComment, block: Block, shared: int | None
) -> LaunchComment:
    """The comment with what the compiler decided in place of what the user may say."""
    fixed = replace(comment, arguments={}, defines={})
    if made.block is not None:
        threads = made.block[0]
        if block is not None or comment.block is not None:
            raise UsageError(f"{kernel.origin}: {kernel.name} has blocks of {threads} threads; leave --block out")
        fixed.block = ",".join(map(str, made.block))
    if made.shared is not None:
        if shared is not None or comment.shared is not None:
            raise UsageError(
                f"{kernel.origin}: {kernel.name} takes {made.shared} bytes of shared memory; leave --shared out"
            )
        fixed.shared = str(made.shared)
    return fixed


def _with_scratch(made: Specialised, grid: int | Sequence[int] | str | None) -> dict[str, Any]:
    """The kernel's arguments, with the buffers for each block that its compiler asks of a launch."""
    arguments = dict(made.arguments)
    if made.scratch:
        extents = grid.split(",") if isinstance(grid, str) else [grid] if isinstance(grid, int) else grid or ()
        blocks = math.prod(max(1, int(extent)) for extent in extents)
        arguments.update({name: Buffer("u8", (size * blocks,)) for name, size in made.scratch.items()})
    return arguments
