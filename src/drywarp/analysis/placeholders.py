"""What a launch lacks, named all at once, and placeholder values for it, so that a printed command runs."""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import (
    DrywarpError,
    EmulationError,
    EmulationLimitError,
    StarvationError,
    UnsupportedInstructionError,
    UsageError,
)
from ..frontends.cuda import FLAG, CudaOptions
from ..frontends.load import as_source
from ..frontends.loaded import LaunchComment
from ..hardware import Gpu
from ..kernel.instruction import Instruction
from ..kernel.kernel import Kernel, Parameter
from ..kernel.launch.arguments import fields_text, make_launch, parameter_name, parse_dim3, type_text, unknown_argument
from ..kernel.launch.launch import DTYPES, Buffer, Dim3, Launch, Structure
from ..kernel.launch.layout import NUMBER, Layout, root_of
from ..kernel.launch.structures import fields_in
from ..kernel.launch.textures import EXAMPLE as MAP_EXAMPLE
from ..kernel.launch.textures import MAP_TYPES, SURFACE_TYPES, TEXTURE_TYPES
from ..kernel.launch.values import as_buffer, element_type, number_code
from ..kernel.profile import SPACE_GLOBAL, Profile
from ..support.text import some_text

_AT_ONCE = ("32", "256")
"""Grid and block of a kernel with grid-wide barriers: a small GPU holds all of its blocks at once."""
_BLOCKS = {1: ("4096", "256"), 2: ("64,64", "16,16"), 3: ("16,16,16", "8,8,4")}
_ELEMENTS, _SIDE = 1 << 20, {1: 1 << 10, 2: 1 << 10, 3: 1 << 6}
_SIZES = (
    *("n", "m", "k", "h", "w", "nx", "ny", "nz", "ld", "lda", "ldb", "ldc", "dim", "len", "row", "col", "total"),
    *("size", "count", "length", "num", "width", "height", "depth", "rows", "cols", "columns", "elements", "stride"),
    *("pitch", "wa", "wb"),
)  # fmt: skip

_SMALLER, _MOST_BYTES, _STEPS = (64, 8), 1 << 28, 4_000
"""Sizes to try if the first leads to buffers of more than this many bytes; steps of the walk that finds out."""
_ROWS, _LANE_STEPS, _MOST_LIMITED = 1 << 16, 20_000_000, 3
"""Accesses that a walk records; lane steps of a run with data, and how many runs may reach these limits."""
_MOST_REACH, _MOST_BEFORE = 1 << 39, 1 << 24
"""Bytes after and before the start of a buffer within which an address belongs to it."""


PLAIN, WHOLE, ORDERED, ZEROS = "plain", "whole", "ordered", "zeros"
"""Buffers of placeholders: random; random whole numbers where the type of the elements is unknown; whole numbers in
order, as row starts and offsets are; zeros."""


def placeholders(kernel: Kernel, size: int = 0, content: str = PLAIN, one: int = 1) -> dict[str, str]:
    """A ``grid``, a ``block`` and a value for each parameter (``=name``) that fit each other.

    `size` is what sizes such as ``n`` and ``width`` are, 0 for one that fits the grid; `one` is any other whole number.
    `content` says what buffers hold.
    """
    from ..execution.emulator.constants import uses_grid_barrier
    from ..execution.symbolic.instruction_sets import instruction_set

    family = instruction_set(kernel)
    dimensions, pointers = family.dimensions(kernel), family.pointers(kernel)
    barrier = kernel.arch.startswith("sm_") and uses_grid_barrier(kernel)
    # The barrier itself reads all indices.
    dimensions = 1 if barrier else dimensions
    grid, block = _AT_ONCE if barrier else _BLOCKS[dimensions]
    most = kernel.resources.max_threads
    if most and most < 256:
        block = str(most)
    numbers = [p for one in kernel.parameters for p in (fields_in(one) or [one]) if _is_size(p)]
    size = size or (_ELEMENTS if dimensions == 1 and len(numbers) == 1 else _SIDE[dimensions])
    made = _Made(size, one, content, pointers)
    values = {f"={parameter_name(p)}": _values(p, made) for p in kernel.parameters}
    return {"grid": grid, "block": block, **values}


@dataclass(frozen=True)
class _Made:
    """What values are made of: `placeholders`' parameters, and the offsets of parameters that serve as addresses."""

    size: int
    one: int
    content: str
    pointers: Collection[int]


_COUNT_OF = re.compile(r"\b(no|nr|number|count) of\b")


def _is_size(parameter: Parameter) -> bool:
    # `imageW`, `no_of_nodes`
    spelt = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", parameter.name).lower()
    spelt = re.sub(r"[_.]", " ", spelt)
    words = spelt.split()
    whole = number_code(parameter.type)[-1:].lower() in ("i", "q", "h") or not parameter.type
    return bool(
        whole
        and not parameter.pointer
        and (_COUNT_OF.search(spelt) or any(w.rstrip("0123456789") in _SIZES or w[:3] == "num" for w in words))
    )


_MOST_FIELDS, _MOST_ELEMENTS = 64, 8


def _values(parameter: Parameter, made: _Made) -> str:
    """A value for a parameter, or for the first fields of a structure."""
    held = fields_in(parameter)
    held = [one for one in held if one.layout is None or _is_short(one.layout)]
    if not held:
        return _value(parameter, made)
    inside = replace(made, pointers=())
    return f"{{{', '.join(f'{one.name}={_in_table(_value(one, inside))}' for one in held[:_MOST_FIELDS])}}}"


def _in_table(text: str) -> str:
    """A value as a table of fields takes it: several numbers stand in brackets."""
    return f"[{text}]" if "," in text and text[0] in "+-.0123456789" else text


def _is_short(held: Layout) -> bool:
    """Whether a field is no array, or one of few numbers."""
    number = held.element is None or held.element.kind == NUMBER
    return number and math.prod(held.extents) <= _MOST_ELEMENTS


_VECTOR = re.compile(r"(?:u?(?:char|short|int|long|longlong)|float|double|half|nv_bfloat16)([1-4])")


def _value(parameter: Parameter, made: _Made) -> str:
    name = parameter.type.split("::")[-1]
    vector = _VECTOR.fullmatch(name.lstrip("_"))
    held = parameter.layout
    if held is not None and held.enumerators:
        return held.enumerators[0][0]
    if held is not None and held.extents:
        # `problem_size.idx`: the sides of something
        each = made.size if _is_size(parameter) else 0 if made.one == 1 else made.one
        return f"[{', '.join([str(each)] * math.prod(held.extents))}]"
    if name in MAP_TYPES:
        return MAP_EXAMPLE
    if name in TEXTURE_TYPES or name in SURFACE_TYPES:
        return f"{'texture' if name in TEXTURE_TYPES else 'surface'}:f32[1024,1024]"
    if parameter.pointer or (parameter.size == 8 and not parameter.type and parameter.offset in made.pointers):
        dtype, bytes_ = element_type(parameter)
        dtype = dtype if bytes_ > 1 or number_code(name) else "i32" if made.content in (WHOLE, ORDERED) else "f32"
        count = _ELEMENTS * (int(vector[1]) if vector else 1)
        fill = "iota" if made.content == ORDERED and dtype in ("i32", "u32", "i64", "u64") else "random"
        return f"{dtype}[{count}]:{'zeros' if made.content == ZEROS else fill}"
    if vector:
        return ",".join("1" * int(vector[1]))
    if parameter.size > 8:
        return f"u8[{parameter.size}]"
    if number_code(name)[-1:] in ("e", "f", "d"):
        return "1.0"
    # A narrow integer holds no large size.
    number = made.size if _is_size(parameter) else made.one
    return str(min(number, {1: 64, 2: 1024}.get(parameter.size, number)))


# Buffers as large as the kernel's addresses reach.

_RESIZED = re.compile(r"(\w+)\[(\d+)\](?=:random|:zeros|:iota)")


Extents = tuple[str, str, str]
"""Grid, block and bytes of dynamic shared memory of a launch."""


def smaller_blocks(block: str) -> list[str]:
    """Blocks of 64 and 32 threads with as many dimensions, if `block` has more."""
    sides = [int(side) for side in block.split(",")]
    instead = {1: ("64", "32"), 2: ("8,8", "8,4"), 3: ("4,4,4", "4,4,2")}[len(sides)]
    return [one for one in instead if math.prod(map(int, one.split(","))) < math.prod(sides)]


def smaller_grid(grid: str) -> str:
    """A grid of at most 32 blocks with as many dimensions."""
    most = {1: (32,), 2: (8, 4), 3: (4, 4, 2)}
    sides = grid.split(",")
    return ",".join(str(min(int(side), one)) for side, one in zip(sides, most[len(sides)], strict=True))


def fitted(
    kernel: Kernel, extents: Sequence[Extents], given: Mapping[str, Any], more: Sequence[Extents] = ()
) -> dict[str, str]:
    """The placeholders for a launch for which the blocks at the grid's corners run without a fault.

    `given` are the arguments that are stated. Buffers are as large as these blocks reach. Where a kernel reaches too
    far, its sizes are smaller; where addresses come from data, buffers of unknown type hold whole numbers, or all hold
    zeros; after that, other `extents` than the first are tried, and `more` where shared memory was too small.
    A kernel that cannot be run is walked without data.
    """
    known = [parameter_name(p) for p in kernel.parameters]
    stated = {root_of(key, known) for key in given}
    names = [name for name in known if name not in stated]
    chosen = placeholders(kernel) | _named(extents[0])
    if not kernel.arch.startswith("sm_"):
        return chosen | _without_data(kernel, extents[0], given, names)
    contents = (PLAIN, WHOLE, ORDERED, ZEROS)
    tries = [(extents[0], *one) for one in itertools.product((0, *_SMALLER), (False, True), contents)]
    tries += [(other, size, False, WHOLE) for other in extents[1:] for size in (0, *_SMALLER)]
    tries += [(grown, 0, False, content) for grown in more for content in contents]
    if not names:
        # Only the extents can change.
        tries = [(one, 0, False, PLAIN) for one in extents]
    limited: list[dict[str, str]] = []
    idle: dict[str, str] = {}
    overrun = False
    for n, (shape, size, alike, content) in enumerate(tries):
        if shape in more and not overrun:
            continue
        values = placeholders(kernel, size, content, (size or _SIDE[2]) if alike else 1)
        own = {name: values[f"={name}"] for name in names}
        wide = {name: _RESIZED.sub(_wide, text) for name, text in own.items()}
        try:
            ends = _touched(kernel, shape, wide | dict(given))
        except (EmulationLimitError, StarvationError, UnsupportedInstructionError):
            # No fault up to there; at once, because loops are long, whatever the placeholders.
            if n == 0:
                break
            limited.append(values | _named(shape))
            if len(limited) == _MOST_LIMITED:
                break
        except DrywarpError as fault:
            overrun |= isinstance(fault, EmulationError) and fault.space == "shared"
        else:
            fit = values | _named(shape) | {f"={name}": _resized(name, text, ends) for name, text in own.items()}
            if not ends or any(ends.values()):
                return fit
            # All threads leave at once: others may show what the kernel does.
            idle = idle or fit
    if limited or idle:
        return limited[0] if limited else idle
    return chosen | _without_data(kernel, extents[0], given, names)


def _named(extents: Extents) -> dict[str, str]:
    return dict(zip(("grid", "block", "shared"), extents, strict=True))


def _without_data(kernel: Kernel, extents: Extents, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """The arguments that `fitted` returns, from addresses that are known without data; nothing if no size fits."""
    for size in (0, *_SMALLER):
        values = placeholders(kernel, size)
        try:
            ends, by_data = _reached(kernel, extents, {n: values[f"={n}"] for n in names} | dict(given))
        except (DrywarpError, ValueError):
            return {}
        if by_data:
            values = placeholders(kernel, size, WHOLE)
        if max((ends.get(n, 0) for n in names), default=0) <= _MOST_BYTES:
            return {f"={n}": _resized(n, values[f"={n}"], ends) for n in names}
    return {}


def _wide(buffer: re.Match[str]) -> str:
    """The buffer, as large as any may be: it is filled where it is touched."""
    return f"{buffer[1]}[{_MOST_BYTES // DTYPES[buffer[1]][1]}]"


def _resized(name: str, value: str, ends: Mapping[str, int]) -> str:
    """The value with each buffer as large as `ends` says, by its name or its path in a structure; never smaller."""
    inside = value.startswith("{")

    def resized(buffer: re.Match[str]) -> str:
        field = re.search(r"(\w+)=$", value[: buffer.start()]) if inside else None
        end = ends.get(f"{name}.{field[1]}" if field else name, 0)
        return f"{buffer[1]}[{max(int(buffer[2]), -(-end // DTYPES[buffer[1]][1]))}]"

    return _RESIZED.sub(resized, value)


def _touched(kernel: Kernel, extents: Extents, arguments: Mapping[str, Any]) -> dict[str, int]:
    """How many bytes of each buffer the blocks at the grid's corners reach, by name or path.

    Raises DrywarpError for a faulty access, EmulationLimitError if they take too long.
    """
    from ..execution.emulator import Limits, emulate

    launch = _launch(kernel, extents, arguments)
    limits = Limits(lane_steps=_LANE_STEPS, accesses=8 * _ROWS)
    profile = emulate(kernel, launch, blocks=_corners(launch.grid), limits=limits).profile
    _, ends, numbers = _ranges(profile, ())
    widths = np.array([one.memory.width if one.memory else 0 for one in kernel.instructions], np.int64)
    found = {}
    for name, (start, size) in profile.allocations.items():
        inside = (ends >= start) & (ends < start + size)
        found[name] = int((ends[inside] + widths[numbers[inside]]).max(initial=start)) - start
    return found


def _launch(kernel: Kernel, extents: Extents, arguments: Mapping[str, Any]) -> Launch:
    grid, block = parse_dim3(extents[0], "grid"), parse_dim3(extents[1], "block")
    return make_launch(kernel, grid, block, arguments, dynamic_shared=int(extents[2]))


def _reached(kernel: Kernel, extents: Extents, arguments: Mapping[str, Any]) -> tuple[dict[str, int], bool]:
    """How many bytes of each parameter's buffer a launch reaches, and whether addresses depend on data."""
    from ..execution.symbolic import static_profile
    from ..execution.symbolic.parameters import SLOT_BYTES, offset_in_slot, slot
    from ..execution.symbolic.walk import Effort

    launch = _launch(kernel, extents, arguments)
    made = static_profile(kernel, launch, blocks=_corners(launch.grid), effort=Effort(steps=_STEPS, accesses=_ROWS))
    unsure = {one.pc for one in made.report.accesses if one.known == "data"}
    starts, ends, numbers = _ranges(made.profile, unsure)
    slots = (starts - slot(0)) // (slot(1) - slot(0))
    found: dict[str, int] = {}
    for number, at, end in zip(numbers.tolist(), slots.tolist(), ends.tolist(), strict=True):
        access = kernel.instructions[number].memory
        last = int(offset_in_slot(np.array([end], np.uint64))[0]) + (access.width if access else 0)
        if last >= _MOST_REACH:
            # Below the next buffer: a neighbour of its start, or an index beyond 32 bits, which is too far.
            at, last = at + 1, 0 if last > SLOT_BYTES - _MOST_BEFORE else _MOST_REACH
        if 0 <= at < len(kernel.parameters):
            name = parameter_name(kernel.parameters[at])
            found[name] = max(found.get(name, 0), last)
    return found, bool(unsure)


def _corners(grid: Dim3) -> list[int]:
    """Linear indices of the blocks at the grid's corners, and of the one in the middle."""
    x, y, z = grid
    found = {
        i + x * (j + y * k) for i, j, k in itertools.product(*((0, side - 1) for side in grid))
    } | {x * y * z // 2}  # fmt: skip
    return sorted(found)


def _ranges(profile: Profile, unsure: Collection[int]) -> tuple[Any, Any, Any]:
    """Lowest and highest address of each access to global memory whose address does not depend on data, and its index.

    Arrays of shape (accesses,).
    """
    log = profile.accesses
    kept = [n for n, i in enumerate(profile.kernel.instructions) if i.pc not in unsure]
    rows = np.flatnonzero((log.space == SPACE_GLOBAL) & np.isin(log.instruction, kept))
    lanes = np.arange(log.offsets.shape[1], dtype=np.uint64)
    there = (log.masks.astype(np.uint64)[:, None] >> lanes & np.uint64(1)) != 0
    limits = np.iinfo(np.int64)
    low = np.where(there, log.offsets, limits.max).min(axis=1, initial=limits.max)[log.pattern[rows]]
    high = np.where(there, log.offsets, limits.min).max(axis=1, initial=limits.min)[log.pattern[rows]]
    return log.base[rows] + low, log.base[rows] + high, log.instruction[rows]


# What a launch lacks, named all at once, with a command that has placeholder values for it.


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
