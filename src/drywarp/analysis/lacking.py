"""What a launch lacks, named all at once, with a command that has placeholder values for it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import (
    EmulationError,
    UsageError,
)
from ..frontends.cuda import FLAG, CudaOptions
from ..frontends.load import as_source
from ..frontends.loaded import LaunchComment
from ..hardware import Gpu
from ..kernel.instruction import Instruction
from ..kernel.kernel import Kernel, Parameter
from ..kernel.launch.arguments import fields_text, parameter_name, type_text, unknown_argument
from ..kernel.launch.launch import Buffer, Launch, Structure
from ..kernel.launch.layout import root_of
from ..kernel.launch.values import as_buffer
from ..support.text import some_text
from .placeholders import Extents, fitted, placeholders, smaller_blocks, smaller_grid


def check_complete(
    kernel: Kernel, said: LaunchComment, given: Mapping[str, Any], open_: Mapping[str, str], command: Sequence[str]
) -> None:
    """Raise UsageError if a launch lacks anything: it names all of that, and a command with placeholder values.

    `said` is the launch as stated so far, `given` its arguments; `open_` maps what host code leaves open to the place
    of its launch, and `command` is the words of the user's command without the launch.
    """
    names = lacking(kernel, said, given, open_)
    if not names:
        return
    known = [parameter_name(p) for p in kernel.parameters]
    for name in given:
        if (root := root_of(name, known)) not in known and not _is_place(root, len(known)):
            raise unknown_argument(kernel, root)
    lacks = [what for what in names if what in ("grid", "block") and getattr(said, what) is None]
    types = {parameter_name(p): _type(p) for p in kernel.parameters}
    values = [f"{name} ({types[name]})" for name in names[len(lacks) :] if name in types]
    values += ["--shared (bytes)"] if "--shared" in names else []
    parts = [f"no {' or '.join(lacks)} given"] if lacks else []
    parts += [f"no value for {', '.join(values)}"] if values else []
    left = [what for what in open_ if what in names or f"--{what}" in names]
    if left:
        parts.append(f"and the launch at {open_[left[0]]} does not determine {', '.join(left)}")
    example = ready_command(command, kernel, said, given, open_)
    raise UsageError(
        f"{kernel.source_file}: {kernel.name}: {', '.join(parts)}; for example: {example} (values to replace), "
        "or --static, which assumes what is missing"
    )


def _type(parameter: Parameter) -> str:
    """The type of a parameter, with the fields of a structure."""
    held = fields_text(parameter)
    return f"{type_text(parameter)}{': ' if held else ''}{held}"


def left_at_zero(kernel: Kernel, launch: Launch) -> tuple[str, ...]:
    """A note for each structure of which some fields were not given: their numbers are zero, their pointers null."""
    notes = []
    for parameter, value in zip(kernel.parameters, launch.arguments, strict=True):
        if isinstance(value, Structure) and value.zeroed:
            count = f"{len(value.zeroed)} fields" if len(value.zeroed) > 1 else "1 field"
            which = f"{count} not given, assumed to be 0 or null: {some_text(value.zeroed)}"
            notes.append(f"{parameter_name(parameter)}: {which}")
    return tuple(notes)


@contextmanager
def told_of_random_data(kernel: Kernel, launch: object) -> Iterator[None]:
    """Name the arguments that hold random whole numbers in the message of an access out of bounds inside."""
    try:
        yield
    except EmulationError as fault:
        given = launch.arguments if isinstance(launch, Launch) else ()
        held = [parameter_name(p) for p, value in zip(kernel.parameters, given, strict=False) if _is_random(value)]
        if not fault.space or not held:
            raise
        hold = "holds random numbers" if len(held) == 1 else "hold random numbers"
        raise EmulationError(
            f"{fault}; {some_text(held)} {hold}: if lengths, offsets or indices are read from there, give valid data, "
            f"such as {held[0]}=TYPE[n]:@file.npy, :iota or :random(1,100), or --static, which needs none",
            fault.space,
        ) from fault


def _is_random(value: object) -> bool:
    return isinstance(value, Buffer) and value.dtype[0] in "iu" and value.fill.startswith(("random", "normal"))


def lacking(kernel: Kernel, said: LaunchComment, given: Collection[str], open_: Collection[str]) -> list[str]:
    """What a launch lacks: ``grid``, ``block``, parameters by name, and ``--shared`` where host code leaves it open."""
    names = [parameter_name(p) for p in kernel.parameters]
    roots = {root_of(name, names) for name in given}
    known = {*roots, *(names[int(name[3:])] for name in roots if name not in names and _is_place(name, len(names)))}
    lacks = [what for what in ("grid", "block") if getattr(said, what) is None]
    lacks += [name for name in names if name not in known]
    return lacks + (["--shared"] if "shared" in open_ and said.shared is None else [])


def _is_place(name: str, count: int) -> bool:
    return name[:3] == "arg" and name[3:].isdecimal() and int(name[3:]) < count


def ready_command(
    command: Sequence[str],
    kernel: Kernel,
    said: LaunchComment,
    given: Mapping[str, Any],
    open_: Collection[str] = (),
) -> str:
    """A complete command line: what is stated, and placeholder values for the rest; arrays are shown by their shape."""
    instead = placeholders(kernel)
    names = [parameter_name(p) for p in kernel.parameters]
    places = {f"arg{n}": name for n, name in enumerate(names)}
    stated: dict[str, list[tuple[str, Any]]] = {}
    for key, value in given.items():
        root = root_of(key, names)
        meant = places.get(root, root) if root not in names else root
        stated.setdefault(meant, []).append((meant + key.removeprefix(root), value))
    buffers = {key: value for part in stated.values() for key, value in part}
    extents = _extents(kernel, said, instead, given, "shared" in open_)
    static, block = kernel.resources.shared_bytes, extents[0][:2]
    # Dynamic shared memory beside static: the machine code does not tell that there is some.
    more = [(*block, str(_MOST_SHARED - static & ~15))] if said.shared is None and 0 < static < _MOST_SHARED else []
    instead |= fitted(kernel, extents, buffers, more)
    words = [*command, "--grid", instead["grid"], "--block", instead["block"]]
    words += ["--shared", instead["shared"]] if instead["shared"] != "0" else []
    words += ["--cluster", said.cluster] if said.cluster else []
    for name in names:
        for key, value in stated.get(name, [(name, instead[f"={name}"])]):
            words += ["--arg", f"{key}={_text(value)}"]
    for name, value in said.constants.items():
        words += ["--const", f"{name}={value}"]
    return " ".join(map(shlex.quote, words))


_SHARED, _MOST_SHARED = 16384, 49152
"""Bytes of dynamic shared memory where a kernel takes some and no launch says how much: at first, and at most."""


def _extents(
    kernel: Kernel, said: LaunchComment, instead: Mapping[str, str], given: Mapping[str, Any], shared_open: bool
) -> list[Extents]:
    """Grid, block and bytes of shared memory to try, in order: what is stated, else placeholders that fit the rest."""
    unsized = said.grid is None and not kernel.resources.shared_bytes and any(map(_is_shared, kernel.instructions))
    shared = said.shared or (str(_SHARED) if shared_open or unsized else "0")

    def grid_for(block: str) -> str:
        return said.grid or _fitting(_same_threads(instead["grid"], instead["block"], block), block, given)

    block = said.block or instead["block"]
    found = [(grid_for(block), block, shared)]
    if said.shared is None and shared != "0":
        found.append((grid_for(block), block, str(_MOST_SHARED)))
    if said.block is None:
        found += [(grid_for(one), one, shared) for one in smaller_blocks(block)]
    if said.grid is None:
        found.append((smaller_grid(grid_for(block)), block, shared))
    return found


def _fitting(grid: str, block: str, given: Mapping[str, Any]) -> str:
    """The grid, with no more threads than the largest buffer that is stated has elements; if it has one dimension."""
    buffers = (as_buffer(value, name) for name, value in given.items() if isinstance(value, str))
    most = max((buffer.count for buffer in buffers if buffer is not None), default=0)
    threads = math.prod(int(part) if part.strip().isdecimal() else 1 for part in block.split(","))
    if "," in grid or not most:
        return grid
    return str(max(1, min(int(grid), most // max(threads, 1))))


def _is_shared(instruction: Instruction) -> bool:
    return instruction.memory is not None and instruction.memory.space == "shared"


def _same_threads(grid: str, block: str, known: str) -> str:
    """A grid with as many threads in each dimension as `grid` has with `block`, for blocks of the `known` extents."""
    extents = [int(part) for part in block.split(",")]
    held = [int(part) if part.strip().isdecimal() else 1 for part in known.split(",")]
    sides = [
        -(-int(blocks) * (extents[n] if n < len(extents) else 1) // max(held[n] if n < len(held) else 1, 1))
        for n, blocks in enumerate(grid.split(","))
    ]
    return ",".join(map(str, sides))


def _text(value: Any) -> str:
    if value is None or isinstance(value, str | int | float):
        return "null" if value is None else str(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}={_text(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    shape = ",".join(map(str, getattr(value, "shape", ()))) or "1"
    return f"@array[{shape}].npy"


def command_words(source: object, gpu: Gpu, kernel: str, compiler: CudaOptions) -> list[str]:
    """The words of a command line that analyses this kernel, without its launch."""
    given = as_source(source)
    words = ["drywarp", "analyze", str(given) if isinstance(given, Path) else "FILE"]
    words += ["--entry", kernel, *(["--gpu", gpu.name] if gpu.name != "a100" else [])]
    for name, value in (compiler.defines or {}).items():
        words += ["-D", f"{name}={value}" if value else name]
    for folder in compiler.includes:
        words += ["-I", str(folder)]
    words += ["--std", compiler.std] if compiler.std else []
    words += ["--max-registers", str(compiler.max_registers)] if compiler.max_registers else []
    return words + [f"{FLAG}={option}" for option in compiler.compiler_options]
