"""A kernel and its launch, settled from what the user states, the launch comment, and the configurations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from ..errors import UsageError
from ..frontends.loaded import Deferred, HostLaunch, LaunchComment, Loaded, Specialised
from ..kernel.kernel import Kernel
from ..kernel.launch.arguments import cluster_for, make_launch, parameter_name, parse_dim3
from ..kernel.launch.launch import DTYPES, Buffer, Dim3, Launch
from ..kernel.launch.layout import flat, root_of
from ..kernel.launch.values import as_buffer
from ..support.expressions import ExpressionError, evaluate
from .lacking import check_complete


def stated_launch(
    kernel: Kernel,
    comment: LaunchComment,
    grid: int | Sequence[int] | str | None,
    block: int | Sequence[int] | str | None,
    args: Mapping[str, Any] | None,
    shared: int | None,
    constants: Mapping[str, Any] | None,
    *,
    cluster: Block = None,
    command: Sequence[str] = ("drywarp", "analyze", "FILE"),
    unsettled: Mapping[str, str] | None = None,
) -> Launch:
    """Arguments override the comment, which fills in the rest.

    Raises UsageError if anything is missing: it shows `command` with the launch, and what host code says of the rest.
    """
    stated = with_extents(comment, grid, block)
    # A comment's arguments belong to the kernel that it names; another entry may take others.
    names = {p.name for p in kernel.parameters}
    said_args = {name: value for name, value in comment.arguments.items() if root_of(name, names) in names or not args}
    if shared is not None:
        stated.shared = str(shared)
    check_complete(kernel, stated, {**said_args, **(args or {})}, unsettled or {}, command)
    extents = {what: parse_dim3(getattr(stated, what), what) for what in ("grid", "block")}
    said_shared = int(comment.shared or 0)
    return make_launch(
        kernel,
        extents["grid"],
        extents["block"],
        {**said_args, **(args or {})},
        dynamic_shared=said_shared if shared is None else shared,
        constants={**comment.constants, **(constants or {})},
        cluster=cluster_extents(cluster, comment),
    )


def with_stated(launch: Launch, kernel: Kernel, grid: Grid, block: Block, shared: int | None, cluster: Block) -> Launch:
    """A launch with its data, with what the user states of its extents. Raises UsageError if they do not fit."""
    if callable(grid):
        raise UsageError("grid: is a function of the arguments, which a kept launch holds as bytes; expected numbers")
    if shared is not None and shared < 0:
        raise UsageError(f"dynamic shared memory {shared}: expected a number of bytes, 0 or more")
    said = {"grid": launch.grid, "block": launch.block, "cluster": launch.cluster}
    for what, value in (("grid", grid_extents(grid, None, {})), ("block", block), ("cluster", cluster)):
        if value is not None:
            said[what] = parse_dim3(_extents_text(value), what)
    fitting = cluster_for(kernel, said["grid"], None if said["cluster"] == (1, 1, 1) else said["cluster"])
    dynamic = launch.dynamic_shared if shared is None else shared
    return replace(launch, grid=said["grid"], block=said["block"], dynamic_shared=dynamic, cluster=fitting)


def cluster_extents(cluster: Block, comment: LaunchComment) -> Dim3 | None:
    """The cluster that the user, or else the launch comment, states; None if neither does."""
    said = comment.cluster if cluster is None else _extents_text(cluster)
    return None if said is None else parse_dim3(said, "cluster")


def evaluated(values: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Arguments with functions replaced by what they return; each is given the arguments that are no functions."""
    if not values:
        return values
    functions = (FunctionType, MethodType, partial)
    known = {name: value for name, value in values.items() if not isinstance(value, functions)}
    return {name: value(known) if isinstance(value, functions) else value for name, value in values.items()}


def with_extents(comment: LaunchComment, grid: Any, block: Any) -> LaunchComment:
    """The comment with this grid and block, where they are given."""
    said_grid = comment.grid if grid is None else _extents_text(grid)
    return replace(comment, grid=said_grid, block=comment.block if block is None else _extents_text(block))


def _extents_text(value: int | Sequence[int] | str) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ",".join(map(str, value))


# What the source's own host code says of the launch.


@dataclass(frozen=True)
class Stated:
    """A launch comment completed from host code: notes say what came from where; `open` is what that leaves open.

    `place` is the file and line of the launch that was taken, if any.
    """

    comment: LaunchComment
    notes: tuple[str, ...] = ()
    open: Mapping[str, str] = field(default_factory=dict)
    place: str = ""


def from_host_code(
    loaded: Loaded, kernel: Kernel, grid: object, block: object, args: Mapping[str, Any] | None, shared: int | None
) -> Stated:
    """Complete the launch comment from a launch in the file's host code, if the user and the comment leave gaps."""
    comment = loaded.comment
    if comment.entry and _plain(comment.entry) != _plain(kernel.name):
        # The comment is about another kernel.
        comment = replace(comment, grid=None, block=None, shared=None, arguments={})
    names = [parameter_name(p) for p in kernel.parameters]
    places = {f"arg{n}": name for n, name in enumerate(names)}
    stated = {**comment.arguments, **(args or {})}
    given = {places.get(root := root_of(name, names), root): value for name, value in stated.items()}
    lacks = {name for name in names if name not in given}
    lacks |= {"grid"} if grid is None and comment.grid is None else set()
    lacks |= {"block"} if block is None and comment.block is None else set()
    if loaded.launches is None or not lacks:
        return Stated(loaded.comment)
    if shared is None and comment.shared is None:
        lacks.add("shared")
    found = loaded.launches(
        kernel, {name: number for name in names if (number := _numeric(given.get(name))) is not None}
    )
    if not found:
        return Stated(loaded.comment)
    chosen = next((one for one in found if not lacks & one.open.keys()), None)
    chosen = chosen or min(found, key=lambda one: len(lacks & one.open.keys()))
    taken = {name: value for name, value in chosen.arguments.items() if name in lacks}
    completed = replace(
        comment,
        grid=chosen.grid if "grid" in lacks else comment.grid,
        block=chosen.block if "block" in lacks else comment.block,
        shared=str(chosen.shared) if "shared" in lacks and chosen.shared else comment.shared,
        arguments={**taken, **comment.arguments},
    )
    open_ = {what: chosen.place for what in chosen.open if what in lacks}
    return Stated(completed, tuple(_notes(chosen, found, lacks, taken)), open_, chosen.place)


def _plain(name: str) -> str:
    return name.partition("<")[0].strip().split("::")[-1]


def _numeric(value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    for convert in (lambda text: int(text, 0), float):
        try:
            return convert(value) if isinstance(value, str) else value
        except ValueError:
            continue
    return None


def _notes(chosen: HostLaunch, found: Sequence[HostLaunch], lacks: set[str], taken: Mapping[str, str]) -> list[str]:
    said: dict[str, list[str]] = {}
    for what, value in (("grid", chosen.grid), ("block", chosen.block), ("shared", chosen.shared)):
        if what in lacks and value:
            said.setdefault(chosen.place, []).append(f"{what} {value}")
    for name, value in taken.items():
        said.setdefault(chosen.places.get(name, chosen.place), []).append(f"{name}={value}")
    notes = [f"{', '.join(values)} from {place}" for place, values in said.items()]
    if any(value.endswith(":random") for value in taken.values()):
        notes.append("the contents of these buffers are assumed to be random: the file's host code is not run")
    different = {(one.grid, one.block, one.shared, tuple(sorted(one.arguments.items()))) for one in found}
    if notes and len(different) > 1:
        why = "whose values are all known" if not lacks & chosen.open.keys() else "with the most known values"
        notes.append(f"{len(found)} launches in the file differ: using the first {why}, {chosen.place}")
    return notes


# From a loaded source and the user's launch parameters to a kernel and its launch values.
#
# Most kernels are machine code at this point; those of Triton and Numba are compiled here for their arguments. A grid
# may be an expression over the arguments, or a function of them.

Grid = int | Sequence[int] | str | Callable[[Mapping[str, Any]], Any] | None
Block = int | Sequence[int] | str | None


@dataclass(frozen=True)
class Settled:
    """A kernel with the user's launch parameters; `args` None means those of the comment.

    `notes` say what came from the file's host code, `unsettled` what that leaves open.
    """

    kernel: Kernel
    comment: LaunchComment
    grid: int | Sequence[int] | str | None
    block: Block
    args: Mapping[str, Any] | None
    notes: tuple[str, ...] = ()
    unsettled: Mapping[str, str] = field(default_factory=dict)


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
    """Compile a kernel that needs its arguments first, and evaluate the grid.

    Raises UsageError if the launch sets what the kernel's compiler decides.
    """
    comment = loaded.comment
    if isinstance(loaded.kernel, Kernel):
        if config is not None:
            raise UsageError(f"{loaded.kernel.source_file}: --config only applies to triton.autotune kernels")
        found = from_host_code(loaded, loaded.kernel, grid, block, args, shared)
        given = {**found.comment.arguments, **(args or {})}
        extents = grid_extents(grid, found.comment.grid, given)
        comment = replace(found.comment, arguments=with_counts(found.comment.arguments, given))
        return Settled(
            loaded.kernel, comment, extents, block, args and with_counts(args, given), found.notes, found.open
        )
    # A comment's arguments belong to the kernel that it names; another entry may take others.
    said = comment.arguments
    if args:
        said = {name: value for name, value in said.items() if name in loaded.kernel.takes(arch)}
    given = with_counts({**said, **(args or {})}, {**said, **(args or {})})
    buffers = {name: as_buffer(value, f"{loaded.kernel.name}: argument {name}") for name, value in given.items()}
    values = {name: value if (held := buffers[name]) is None else held for name, value in given.items()}
    made = loaded.kernel.specialise(values, arch, config)
    comment = _without_fixed(loaded.kernel, made, comment, block, shared)
    extents = _in_blocks(grid_extents(grid, comment.grid, made.names), made.cluster_blocks)
    return Settled(made.kernel, comment, extents, made.block or block, _with_scratch(made, extents))


def _in_blocks(grid: int | Sequence[int] | str | None, cluster_blocks: int) -> int | Sequence[int] | str | None:
    """A grid of programs as one of blocks, `cluster_blocks` of them for each program, in x."""
    if grid is None or cluster_blocks == 1:
        return grid
    x, *others = parse_dim3(_extents_text(grid), "grid")
    return [x * cluster_blocks, *others]


def grid_extents(grid: Grid, said: str | None, names: Mapping[str, Any]) -> int | Sequence[int] | str | None:
    """The grid, evaluated over `names` if it has expressions such as `cdiv(n, BLOCK)` or is a function."""
    if callable(grid):
        found = grid(dict(names))
        return found if isinstance(found, int | str) else tuple(int(extent) for extent in found)
    text = grid if isinstance(grid, str) else said if grid is None else None
    if text is None:
        return grid
    numbers = _numbers(names)
    return ",".join(_extent(part, numbers, "grid") for part in _split(text))


_EXTENTS = re.compile(rf"(?<!\w)({'|'.join(DTYPES)})\[([^\[\]]*[A-Za-z+*/%-][^\[\]]*)\]")


def with_counts(arguments: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with the extents of buffers as numbers where they are expressions over others: `f32[2*n,m]`.

    Raises UsageError that names the argument for an expression without a value.
    """
    numbers = _numbers(names)
    return {name: _counted(value, numbers, f"argument {name}: {value!r}") for name, value in arguments.items()}


def _counted(value: Any, numbers: Mapping[str, int | float], place: str) -> Any:
    if isinstance(value, dict):
        return {name: _counted(one, numbers, place) for name, one in value.items()}
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        counts = (_extent(part.strip(), numbers, f"{place}: extent") for part in _split(match[2]))
        return f"{match[1]}[{','.join(counts)}]"

    return _EXTENTS.sub(replaced, value)


def _numbers(names: Mapping[str, Any]) -> dict[str, int | float]:
    """What expressions may use: the arguments and fields that are numbers."""
    return {name: number for name, value in flat(names).items() if (number := _number(value)) is not None}


def _extent(text: str, numbers: Mapping[str, int | float], what: str) -> str:
    if not any(c.isalpha() for c in text) and not any(c in text for c in "+-*/%()"):
        return text
    try:
        value = evaluate(text, numbers)
    except ExpressionError as error:
        if re.fullmatch(r"\d+(x\d+)+", text.strip()):
            raise UsageError(f"{what} {text!r}: expected X,Y,Z, as in {text.strip().replace('x', ',')}") from None
        raise UsageError(f"{what} {text!r}: {error}") from None
    if value != int(value):
        raise UsageError(f"{what} {text!r}: is {value:g}; expected a whole number, as cdiv(a, b) gives")
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
    """The comment, with the compiler's decisions in place of the user's settings."""
    fixed = replace(comment, arguments={}, defines={})
    if made.block is not None:
        threads = made.block[0]
        if block is not None or comment.block is not None:
            raise UsageError(f"{kernel.origin}: {kernel.name} has blocks of {threads} threads; omit --block")
        fixed.block = ",".join(map(str, made.block))
    if made.shared is not None:
        if shared is not None or comment.shared is not None:
            raise UsageError(
                f"{kernel.origin}: {kernel.name} takes {made.shared} bytes of shared memory; omit --shared"
            )
        fixed.shared = str(made.shared)
    return fixed


def _with_scratch(made: Specialised, grid: int | Sequence[int] | str | None) -> dict[str, Any]:
    """The kernel's arguments, with the per-block scratch buffers that its compiler requires."""
    arguments = dict(made.arguments)
    if made.scratch:
        extents = grid.split(",") if isinstance(grid, str) else [grid] if isinstance(grid, int) else grid or ()
        blocks = math.prod(max(1, int(extent)) for extent in extents)
        arguments.update({name: Buffer("u8", (size * blocks,)) for name, size in made.scratch.items()})
    return arguments
