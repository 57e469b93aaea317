"""A launch of which some, or nothing, was said: what stands in for the rest, and what was assumed.

Each buffer, given or not, lies in a slot of the address space of its own, so that no two meet and an
address says which buffer it belongs to.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..kernel.kernel import Kernel, Parameter
from ..kernel.launch import Argument, Buffer, Dim3, Launch, Scalar
from .words import ASSUMED, KNOWN, Flags

SLOT_BYTES = 1 << 40
"""Address space for one buffer: no memory is larger."""
_FIRST_SLOT = 1 << 9
"""Slots below hold the windows of shared and local memory."""
_HALO = 1 << 20
"""Bytes before a buffer of unknown size that count as its own: stencils reach before their pointer."""
_DEFAULT_THREADS = 256
_ROW = 1024
_DEFAULT_BLOCKS = 4 * 864
_FLOATS = {"float": "<f", "double": "<d"}


@dataclass(frozen=True)
class StaticLaunch:
    """A launch made complete.

    For each argument, `flags` says how sure it is (for a structure an array, per byte) and `places`
    where its buffer lies: address and bytes, None for a value. `image` is where the module's
    `__device__` variables lie. `assumed` lists what was assumed, as (what, value).
    """

    launch: Launch
    flags: tuple[int | Flags, ...]
    places: tuple[tuple[int, int] | None, ...]
    image: int
    assumed: tuple[tuple[str, str], ...] = ()


def slot(number: int) -> int:
    """Address of a slot."""
    return (_FIRST_SLOT + number) * SLOT_BYTES


def offset_in_slot(addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Bytes from the beginning of the buffer that each address belongs to."""
    return addresses & np.uint64(SLOT_BYTES - 1)


def complete(launch: Launch, kernel: Kernel) -> StaticLaunch:
    """A launch of which everything is given: every number is known, only memory is not."""
    places = _place(launch.arguments)
    return StaticLaunch(replace(launch, warp_size=kernel.warp_size), (KNOWN,) * len(places), places, slot(len(places)))


def assume(
    kernel: Kernel,
    *,
    grid: Dim3 | None = None,
    block: Dim3 | None = None,
    arguments: Mapping[str, Argument] | None = None,
    dimensions: int = 1,
    pointers: Collection[int] = (),
    dynamic_shared: int | None = None,
    constants: Mapping[str, Buffer] | None = None,
    blocks: int = _DEFAULT_BLOCKS,
) -> StaticLaunch:
    """Complete a launch: `arguments` by parameter name (`argN` where there is none); what is left out is assumed.

    `dimensions` in which the kernel numbers its threads; `pointers` are offsets within the parameters
    that the code uses as addresses, where the source does not say; `blocks` a grid that is large
    enough to be told. A number that is not given is as large as the longest side of the grid in threads,
    in one dimension 1024 at most.
    """
    assumed: list[tuple[str, str]] = []
    if block is None:
        block = default_block(kernel.resources.max_threads or _DEFAULT_THREADS, dimensions)
        why = " by its __launch_bounds__" if kernel.resources.max_threads else ""
        assumed.append(("block", f"{_text(block)} threads{why}"))
    if grid is None:
        grid = default_grid(blocks, dimensions)
        assumed.append(("grid", f"{_text(grid)} blocks"))
    number = max(g * b for g, b in zip(grid, block, strict=True))
    if dimensions == 1:
        # A row for each thread of a long line of threads would leave the 32 bits that indices have.
        number = min(number, _ROW)
    values: list[Argument] = []
    flags: list[int | Flags] = []
    taken = dict(arguments or {})
    for ordinal, parameter in enumerate(kernel.parameters):
        name = parameter.name or f"arg{parameter.ordinal}"
        if name in taken:
            values.append(taken.pop(name))
            flags.append(KNOWN)
            continue
        value, flag, text = _stand_in(parameter, number, ordinal, pointers)
        values.append(value)
        flags.append(flag)
        assumed.append((f"argument {name}", text))
    if dynamic_shared is None:
        dynamic_shared = 0
        if kernel.resources.shared_bytes == 0 and any(
            i.memory and i.memory.space == "shared" for i in kernel.instructions
        ):
            assumed.append(("dynamic shared memory", "0 bytes"))
    launch = Launch(grid, block, tuple(values), dynamic_shared, constants or {}, warp_size=kernel.warp_size)
    places = _place(launch.arguments)
    return StaticLaunch(launch, tuple(flags), places, slot(len(places)), tuple(assumed))


def default_block(threads: int, dimensions: int) -> Dim3:
    """About so many threads, as square as powers of two allow, the longer side along x."""
    bits = max(threads, 1).bit_length() - 1
    if dimensions == 1:
        return threads, 1, 1
    if dimensions == 2:
        return 1 << (bits - bits // 2), 1 << bits // 2, 1
    third = bits // 3
    return 1 << (bits - 2 * third), 1 << third, 1 << third


def default_grid(blocks: int, dimensions: int) -> Dim3:
    """At least so many blocks, as a row, a square or a cube."""
    if dimensions == 1:
        return blocks, 1, 1
    side = 1
    while side**dimensions < blocks:
        side += 1
    return (side, side, 1) if dimensions == 2 else (side, side, side)


def _text(extents: Dim3) -> str:
    return "x".join(str(e) for e in extents if e > 1) or "1"


def _stand_in(
    parameter: Parameter, number: int, ordinal: int, pointers: Collection[int]
) -> tuple[Argument, int | Flags, str]:
    """What stands for an argument that nobody gave, how sure it is, and that in words."""
    size = parameter.size
    if parameter.pointer or (size == 8 and not parameter.type and parameter.offset in pointers):
        text = "a buffer that is large enough and meets no other"
        return Scalar(struct.pack("<Q", slot(ordinal)), "assumed"), KNOWN, text
    name = parameter.type.split("::")[-1]
    if name in _FLOATS:
        return Scalar(struct.pack(_FLOATS[name], 1.0), "assumed 1"), ASSUMED, "1"
    if size <= 8:
        value = 1 if size == 1 else min(number, (1 << (8 * size - 1)) - 1)
        return Scalar(value.to_bytes(size, "little"), f"assumed {value}"), ASSUMED, str(value)
    return _structure(parameter, number, ordinal, pointers)


def _structure(
    parameter: Parameter, number: int, ordinal: int, pointers: Collection[int]
) -> tuple[Argument, int | Flags, str]:
    """Bytes of a structure: addresses where the code uses them as such, else the assumed number in every word."""
    data = np.full(parameter.size // 4 + 1, number, np.uint32).view(np.uint8)[: parameter.size].copy()
    flags: Flags = np.full(parameter.size, ASSUMED, np.uint16)
    inside = [p - parameter.offset for p in pointers if parameter.offset <= p <= parameter.offset + parameter.size - 8]
    step = SLOT_BYTES // max(len(inside) + 1, 2)
    for place, at in enumerate(sorted(inside)):
        address = slot(ordinal) + place * (step & ~0xFFFFF)
        data[at : at + 8] = np.frombuffer(struct.pack("<Q", address), np.uint8)
        flags[at : at + 8] = KNOWN
    text = f"{len(inside)} addresses, {number} in every other word"
    return Scalar(data.tobytes(), f"assumed, {parameter.size} bytes"), flags, text


def _place(arguments: tuple[Argument, ...]) -> tuple[tuple[int, int] | None, ...]:
    """Where each argument's buffer lies: those that were given in a slot of their own each."""
    return tuple((slot(n), a.nbytes) if isinstance(a, Buffer) else None for n, a in enumerate(arguments))


def allocations(kernel: Kernel, given: StaticLaunch) -> dict[str, tuple[int, int]]:
    """Address and bytes that accesses may lie in, by name: given buffers as large as they are, else whole slots."""
    found = {}
    for number, (parameter, place) in enumerate(zip(kernel.parameters, given.places, strict=True)):
        name = parameter.name or f"arg{parameter.ordinal}"
        found[name] = place if place is not None else (slot(number) - _HALO, SLOT_BYTES - 2 * _HALO)
    found["other memory"] = (given.image - _HALO, SLOT_BYTES * _FIRST_SLOT)
    return found
