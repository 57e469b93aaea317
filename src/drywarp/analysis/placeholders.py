"""Placeholder values for what a launch lacks, with buffers as large as the kernel's addresses reach."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import (
    DrywarpError,
    EmulationError,
    EmulationLimitError,
    StarvationError,
    UnsupportedInstructionError,
)
from ..kernel.kernel import Kernel, Parameter
from ..kernel.launch.arguments import make_launch, parameter_name, parse_dim3
from ..kernel.launch.launch import DTYPES, Dim3, Launch
from ..kernel.launch.layout import NUMBER, Layout, root_of
from ..kernel.launch.structures import fields_in
from ..kernel.launch.textures import EXAMPLE as MAP_EXAMPLE
from ..kernel.launch.textures import MAP_TYPES, SURFACE_TYPES, TEXTURE_TYPES
from ..kernel.launch.values import element_type, number_code
from ..kernel.profile import SPACE_GLOBAL, Profile

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
