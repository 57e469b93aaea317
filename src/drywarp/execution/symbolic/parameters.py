"""Stand-ins for memory without data: which place an access goes to, and what a load returns from there.

Each element is assumed to hold its own index, so data used as an index lead to neighbouring places in neighbouring
lanes, unless the code scatters them.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...kernel.instruction import Instruction
from ...kernel.kernel import Kernel, Parameter
from ...kernel.launch.launch import Argument, Buffer, Dim3, Launch, Scalar, Structure, TensorMap
from ...kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED
from .report import Record
from .state import ASSUMED, DATA, KNOWN, UNSURE, Batch, Flags, Lanes, Value

# A partly specified launch, or none: what replaces the missing values, and what was assumed.
#
# Each buffer, given or not, lies in its own slot of the address space, so no two overlap and an address identifies its
# buffer.

SLOT_BYTES = 1 << 40
"""Address space for one buffer: no memory is larger."""
_FIRST_SLOT = 1 << 9
"""Slots below hold the windows of shared and local memory."""
_HALO = 1 << 20
"""Bytes before a buffer of unknown size that count as part of it: stencils access data before their pointer."""
_DEFAULT_THREADS = 256
_ROW = 1024
_DEFAULT_BLOCKS = 4 * 864
_FLOATS = {"float": "<f", "double": "<d"}


@dataclass(frozen=True)
class StaticLaunch:
    """A completed launch.

    For each argument, `flags` says how certain it is (for a structure an array, per byte) and `places` where its buffer
    lies: address and bytes, None for a value. `image` is where the module's `__device__` variables lie. `assumed` lists
    what was assumed, as (what, value).
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
    """A fully specified launch: every number is known, only memory content is not."""
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
    """Complete a launch: `arguments` by parameter name (`argN` if unnamed); missing values are assumed.

    `dimensions` is the number of dimensions in which the kernel numbers its threads; `pointers` are offsets within the
    parameters that the code uses as addresses, if the source does not declare them; `blocks` is a sufficiently large
    grid. A number that is not given equals the longest side of the grid in threads, in one dimension at most 1024.
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
        # A row for each thread of a long line of threads would overflow the 32 bits of indices.
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
    """About this many threads, as square as powers of two allow, the longer side along x."""
    bits = max(threads, 1).bit_length() - 1
    if dimensions == 1:
        return threads, 1, 1
    if dimensions == 2:
        return 1 << (bits - bits // 2), 1 << bits // 2, 1
    third = bits // 3
    return 1 << (bits - 2 * third), 1 << third, 1 << third


def default_grid(blocks: int, dimensions: int) -> Dim3:
    """At least this many blocks, as a row, a square or a cube."""
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
    """The value for an argument that was not given, how certain it is, and a description."""
    size = parameter.size
    if parameter.pointer or (size == 8 and not parameter.type and parameter.offset in pointers):
        text = "a buffer that is large enough and overlaps no other"
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
    """The location of each argument's buffer: given ones have a slot each."""
    held = (held_buffer(argument) for argument in arguments)
    return tuple(None if buffer is None else (slot(n), buffer.nbytes) for n, buffer in enumerate(held))


def held_buffer(argument: Argument) -> Buffer | None:
    """The buffer that an argument or a field brings: itself, or a tensor map's tensor."""
    found = argument.buffer if isinstance(argument, TensorMap) else argument
    return found if isinstance(found, Buffer) else None


def places_of(number: int, argument: Argument, place: tuple[int, int] | None) -> list[tuple[str, tuple[int, int]]]:
    """Name, address and bytes of the buffers of an argument: its own, or those that its fields point to.

    `number` is the argument's slot, which the fields' buffers share; `place` is where its own lies.
    """
    if not isinstance(argument, Structure):
        return [] if place is None else [("", place)]
    held = [(path, buffer) for _, path, part in argument.parts if (buffer := held_buffer(part)) is not None]
    step = SLOT_BYTES // max(len(held) + 1, 2) & ~(_HALO - 1)
    return [(path, (slot(number) + n * step, part.nbytes)) for n, (path, part) in enumerate(held)]


def allocations(kernel: Kernel, given: StaticLaunch) -> dict[str, tuple[int, int]]:
    """Address and bytes of the areas that accesses may touch, by name: given buffers, else whole slots."""
    found: dict[str, tuple[int, int]] = {}
    for number, (parameter, place) in enumerate(zip(kernel.parameters, given.places, strict=True)):
        name = parameter.name or f"arg{parameter.ordinal}"
        if isinstance(argument := given.launch.arguments[number], Structure):
            found.update(places_of(number, argument, place))
            continue
        found[name] = place if place is not None else (slot(number) - _HALO, SLOT_BYTES - 2 * _HALO)
    found["other memory"] = (given.image - _HALO, SLOT_BYTES * _FIRST_SLOT)
    return found


Addresses = npt.NDArray[np.uint64]
SPACES = {"global": SPACE_GLOBAL, "shared": SPACE_SHARED, "local": SPACE_LOCAL}
STRAY_BYTES = 1 << 38
"""Size in bytes of the region for accesses that belong to no buffer."""
POINTER, INTEGER = "pointer", "integer"
"""What a 64-bit load returns, if known."""
PATTERNS = ("coalesced", "random", "uniform")
"""Access patterns that a user may state for a line: neighbouring, random, or one place for all lanes."""
_BUFFERS = 1 << 12
"""Buffers, each in its part of a slot, to which addresses in memory point."""


def element(kind: str, loaded: int, offset: Addresses, width: int, word: int) -> npt.NDArray[np.uint32]:
    """Word `word` of the content at an offset: the index of the element, or of the word in a wide one.

    `kind` says what the load returns, `loaded` is the slot of the buffers to which its pointers lead.
    """
    if kind == INTEGER:
        number = offset >> np.uint64(3) if word == 0 else np.zeros_like(offset)
    elif kind == POINTER:
        # The element's index determines which of many buffers it points to.
        buffer = (offset >> np.uint64(3)) % np.uint64(_BUFFERS) * np.uint64(SLOT_BYTES // _BUFFERS)
        number = (np.uint64(slot(loaded)) + buffer) >> np.uint64(32 * word)
    elif width < 4:
        number = offset >> np.uint64(width.bit_length() - 1)
    else:
        number = (offset >> np.uint64(2)) + np.uint64(word)
    return number.astype(np.uint32)


def stated(batch: Batch, pattern: str, number: int, where: Addresses, width: int, lanes: Lanes) -> Addresses:
    """Addresses in the pattern that a user stated, within the buffer that the access targets anyway."""
    slot_start = where & ~np.uint64(SLOT_BYTES - 1)
    first = np.take_along_axis(slot_start, lanes.argmax(axis=1)[:, None], axis=1)
    thread = batch.state.thread[batch.warps].astype(np.uint64)
    if pattern == "uniform":
        chosen = np.take_along_axis(where, lanes.argmax(axis=1)[:, None], axis=1)
        return np.broadcast_to(chosen, where.shape) & ~np.uint64(width - 1)
    iteration = np.uint64(batch.executions(~number))
    elements = np.uint64(max(batch.state.launch.blocks * batch.state.launch.threads_per_block, 1))
    element = thread + iteration * elements
    if pattern == "random":
        # A bit mixer (the finaliser of SplitMix64), so that runs are reproducible.
        x = element + np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        element = (x ^ x >> np.uint64(31)) % elements
    return first + element * np.uint64(width)


class RecordedAccesses:
    """What the memory steps of an instruction set do with addresses: they record them, and settle unknown ones.

    `patterns` are stated patterns by instruction; `unsure` collects flags of addresses by instruction; `slots` is the
    number of used slots of the address space; `wide` are the kinds of 64-bit loads.
    """

    def __init__(self, record: Record, patterns: Mapping[int, str], slots: int, wide: Mapping[int, str]) -> None:
        self.record, self.patterns, self._wide = record, patterns, wide
        self.unsure: dict[int, int] = {}
        # Targets of addresses that are themselves loaded: a slot for each load of them.
        self._loaded = {n: slots + k for k, n in enumerate(sorted(n for n, kind in wide.items() if kind == POINTER))}
        self._end = slot(slots + len(self._loaded))

    windows: Mapping[str, int]
    """Where shared and local memory begin among generic addresses."""
    window_bytes: int

    def by_space(self, space: str, where: Addresses, lanes: Lanes) -> list[tuple[str, Addresses, Lanes]]:
        """Generic addresses by space: addresses within it, and the lanes that access it."""
        if space != "generic":
            return [(space, where, lanes)]
        size, found, rest = np.uint64(self.window_bytes), [], lanes
        for name, start in self.windows.items():
            inside = lanes & (where - np.uint64(start) < size)
            if inside.any():
                found.append((name, where & (size - np.uint64(1)), inside))
                rest = rest & ~inside
        return [*found, ("global", where, rest)] if rest.any() or not found else found

    def note(self, i: Instruction, b: Batch, space: str, where: Addresses, flags: Value, lanes: Lanes) -> Addresses:
        """Record an access; returns the addresses used."""
        assert i.memory is not None
        number, width = i.pc // 16, i.memory.width
        b.rely_on(flags)
        unsure = b.spread(np.asarray(flags, np.uint16)) & UNSURE
        seen = int(np.bitwise_or.reduce(unsure, axis=None, where=lanes, initial=0))
        pattern = self.patterns.get(number)
        if seen or pattern:
            self.unsure[number] = self.unsure.get(number, 0) | seen
            if seen & DATA:
                where = self.settled(where, width, space)
            if pattern is not None:
                where = stated(b, pattern, number, where, width, lanes)
        self.record.access(number, SPACES[space], b.warps, np.ascontiguousarray(where).view(np.int64), lanes)
        return where

    def settled(self, where: Addresses, width: int, space: str = "global") -> Addresses:
        """Addresses computed from data, mapped into the address space: aligned, and in a slot."""
        if space == "global":
            lost = (where < np.uint64(slot(0))) | (where >= np.uint64(self._end))
            where = np.where(lost, np.uint64(self._end) + (where & np.uint64(STRAY_BYTES - 1)), where)
        return where & ~np.uint64((width & -width) - 1)
