"""Values that stand for what a launch lacks, so that a printed command runs and shows what to replace."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ..errors import DrywarpError
from ..kernel.kernel import Kernel, Parameter
from ..kernel.launch.arguments import make_launch, parameter_name, parse_dim3
from ..kernel.launch.launch import Dim3
from ..kernel.launch.layout import NUMBER, Layout, root_of
from ..kernel.launch.structures import fields_in
from ..kernel.launch.tensor_maps import EXAMPLE as MAP_EXAMPLE
from ..kernel.launch.tensor_maps import MAP_TYPES
from ..kernel.launch.textures import SURFACE_TYPES, TEXTURE_TYPES
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
"""Sizes to try if the first leads to larger buffers than this many bytes; steps of the walk that tells."""
_ROWS = 1 << 16
"""Accesses that it records."""
_MOST_REACH, _MOST_BEFORE = 1 << 39, 1 << 24
"""Bytes beyond and before the start of a buffer that an address belongs to it."""


def placeholders(kernel: Kernel, size: int = 0) -> dict[str, str]:
    """A ``grid``, a ``block`` and a value for each parameter (``=name``) that fit each other.

    `size` is what sizes such as ``n`` and ``width`` are, 0 for one that fits the grid.
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
    values = {f"={parameter_name(p)}": _values(p, size, pointers) for p in kernel.parameters}
    return {"grid": grid, "block": block, **values}


def _is_size(parameter: Parameter) -> bool:
    words = parameter.name.lower().replace("_", " ").split()
    whole = number_code(parameter.type)[-1:].lower() in ("i", "q", "h") or not parameter.type
    return (
        whole
        and not parameter.pointer
        and any(word.rstrip("0123456789") in _SIZES or word[:3] == "num" for word in words)
    )


_MOST_FIELDS, _MOST_ELEMENTS = 16, 8


def _values(parameter: Parameter, size: int, pointers: Collection[int]) -> str:
    """A value for a parameter, or for the first fields of a structure."""
    held = fields_in(parameter)
    held = [one for one in held if one.layout is None or _is_short(one.layout)]
    if not held:
        return _value(parameter, size, pointers)
    return f"{{{', '.join(f'{one.name}={_in_table(_value(one, size, ()))}' for one in held[:_MOST_FIELDS])}}}"


def _in_table(text: str) -> str:
    """A value as a table of fields takes it: several numbers stand in brackets."""
    return f"[{text}]" if "," in text and text[0] in "+-.0123456789" else text


def _is_short(held: Layout) -> bool:
    """Whether a field is no array, or one of few numbers."""
    number = held.element is None or held.element.kind == NUMBER
    return number and math.prod(held.extents) <= _MOST_ELEMENTS


_VECTOR = re.compile(r"(?:u?(?:char|short|int|long|longlong)|float|double|half|nv_bfloat16)([1-4])")


def _value(parameter: Parameter, size: int, pointers: Collection[int]) -> str:
    name = parameter.type.split("::")[-1]
    vector = _VECTOR.fullmatch(name.lstrip("_"))
    held = parameter.layout
    if held is not None and held.enumerators:
        return held.enumerators[0][0]
    if held is not None and held.extents:
        return f"[{', '.join(['0'] * math.prod(held.extents))}]"
    if name in MAP_TYPES:
        return MAP_EXAMPLE
    if name in TEXTURE_TYPES or name in SURFACE_TYPES:
        return f"{'texture' if name in TEXTURE_TYPES else 'surface'}:f32[1024,1024]"
    if parameter.pointer or (parameter.size == 8 and not parameter.type and parameter.offset in pointers):
        dtype, bytes_ = element_type(parameter)
        known = bytes_ > 1 or number_code(name)
        return f"{dtype if known else 'f32'}[{_ELEMENTS * (int(vector[1]) if vector else 1)}]:random"
    if vector:
        return ",".join("1" * int(vector[1]))
    if parameter.size > 8:
        return f"u8[{parameter.size}]"
    if number_code(name)[-1:] in ("e", "f", "d"):
        return "1.0"
    # A narrow integer holds no large size.
    return str(min(size, {1: 64, 2: 1024}.get(parameter.size, size))) if _is_size(parameter) else "1"


# Buffers as large as the kernel's addresses reach.

_RESIZED = re.compile(r"(\w+)\[(\d+)\]:random")


def fitted(kernel: Kernel, grid: str, block: str, shared: str, given: Mapping[str, Any]) -> dict[str, str]:
    """The placeholders for a launch, with buffers as large as the kernel's addresses reach without data.

    `given` are the arguments that are stated. Where addresses come from data, integers are zero, which lead to the
    start of a buffer. Where a kernel reaches too far, its sizes are smaller.
    """
    first = placeholders(kernel)
    known = [parameter_name(p) for p in kernel.parameters]
    stated = {root_of(key, known) for key in given}
    names = [name for name in known if name not in stated]
    if not any(_RESIZED.fullmatch(first[f"={name}"]) for name in names):
        return first
    for size in (0, *_SMALLER):
        values = placeholders(kernel, size)
        try:
            ends, by_data = _reached(kernel, grid, block, shared, {n: values[f"={n}"] for n in names} | dict(given))
        except (DrywarpError, ValueError):
            return first
        resized = {f"={n}": _resized(values[f"={n}"], ends.get(n, 0), by_data) for n in names}
        if max((ends.get(n, 0) for n in names), default=0) <= _MOST_BYTES:
            return values | resized
    return first


def _resized(value: str, end: int, by_data: bool) -> str:
    held = _RESIZED.fullmatch(value)
    if held is None:
        return value
    dtype, bits = held[1], int(re.sub(r"\D", "", held[1]) or 32)
    count = max(int(held[2]), -(-end * 8 // bits))
    return f"{dtype}[{count}]:{'zeros' if by_data and dtype[0] in 'iu' and bits >= 32 else 'random'}"


def _reached(
    kernel: Kernel, grid: str, block: str, shared: str, arguments: Mapping[str, Any]
) -> tuple[dict[str, int], bool]:
    """How many bytes of each parameter's buffer a launch reaches, and whether addresses depend on data."""
    from ..execution.symbolic import static_profile
    from ..execution.symbolic.parameters import SLOT_BYTES, offset_in_slot, slot
    from ..execution.symbolic.walk import Effort

    extents = parse_dim3(grid, "grid"), parse_dim3(block, "block")
    launch = make_launch(kernel, *extents, arguments, dynamic_shared=int(shared))
    sample = _corners(extents[0])
    made = static_profile(kernel, launch, blocks=sample, effort=Effort(steps=_STEPS, accesses=_ROWS))
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
