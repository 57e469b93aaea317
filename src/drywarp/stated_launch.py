"""The launch that a caller and the launch comment of a file state together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .arguments import make_launch, parse_dim3
from .errors import UsageError
from .frontends.comment import LaunchComment
from .kernel.kernel import Kernel
from .kernel.launch import Launch


def stated_launch(
    kernel: Kernel,
    comment: LaunchComment,
    grid: int | Sequence[int] | str | None,
    block: int | Sequence[int] | str | None,
    args: Mapping[str, Any] | None,
    shared: int | None,
    constants: Mapping[str, Any] | None,
) -> Launch:
    """What is given here holds; the comment fills in what is left out. UsageError where grid or block are missing."""
    extents = {}
    for what, given, said in (("grid", grid, comment.grid), ("block", block, comment.block)):
        value = given if given is not None else said
        if value is None:
            raise UsageError(
                f"{kernel.source_file}: no {what} given (expected --{what} X,Y,Z, or a launch comment in the file)"
            )
        text = value if isinstance(value, str) else str(value) if isinstance(value, int) else ",".join(map(str, value))
        extents[what] = parse_dim3(text, what)
    # A comment's arguments belong to the kernel that it names; another entry may take others.
    names = {p.name for p in kernel.parameters}
    said_args = {name: value for name, value in comment.arguments.items() if name in names or not args}
    said_shared = int(comment.shared or 0)
    return make_launch(
        kernel,
        extents["grid"],
        extents["block"],
        {**said_args, **(args or {})},
        dynamic_shared=said_shared if shared is None else shared,
        constants={**comment.constants, **(constants or {})},
    )
