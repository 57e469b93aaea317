"""The initial state of an AMD kernel: the kernel arguments as bytes, the dispatch packet, and the first registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....kernel.kernel import Kernel
from ....kernel.launch.launch import Buffer, Scalar
from ..parameters import StaticLaunch
from ..state import DATA, Flags, State
from .operands import EXEC, word_of

KERNARG, PACKET = 1 << 44, (1 << 44) + (1 << 20)
"""Addresses of the kernel arguments and of the dispatch packet, below every buffer."""
_PACKET_BYTES = 64
_HIDDEN_BYTES = 256
"""Bytes after the last hidden argument that is described: queue pointers and the like, irrelevant for addresses."""


class Handed:
    """The constant memory of a launch: bytes and what is known about each, at `KERNARG` and at `PACKET`."""

    def __init__(self, kernel: Kernel, given: StaticLaunch) -> None:
        size = max([p.offset + p.size for p in kernel.parameters] + [at + 8 for at in kernel.abi.values()] + [8])
        self.arguments = np.zeros(size + _HIDDEN_BYTES, np.uint8)
        self.argument_flags: Flags = np.full(size + _HIDDEN_BYTES, DATA, np.uint16)
        shared = kernel.resources.shared_bytes
        parts = zip(kernel.parameters, given.launch.arguments, given.flags, given.places, strict=True)
        for parameter, argument, flags, place in parts:
            at = slice(parameter.offset, parameter.offset + parameter.size)
            if parameter.space == "shared":
                # Pointers to local memory are offsets, one buffer after the other.
                data = shared.to_bytes(4, "little")
                shared += -(-argument.nbytes // 16) * 16 if isinstance(argument, Buffer) else 0
            elif isinstance(argument, Buffer):
                data = (place[0] if place else 0).to_bytes(8, "little")
            else:
                data = argument.data if isinstance(argument, Scalar) else b""
            padded = data[: parameter.size].ljust(parameter.size, b"\0")
            self.arguments[at] = np.frombuffer(padded, np.uint8)
            self.argument_flags[at] = flags
        self._hide(kernel, given)
        self.packet = self._packet(kernel, given)

    def _hide(self, kernel: Kernel, given: StaticLaunch) -> None:
        """Fill in the hidden arguments that describe the launch dimensions."""
        launch = given.launch
        dimensions = max((n for n in range(1, 4) if launch.grid[n - 1] * launch.block[n - 1] > 1), default=1)
        values = {"hidden_grid_dims": (dimensions, 2), "hidden_dynamic_lds_size": (launch.dynamic_shared, 4)}
        for axis, blocks, threads in zip("xyz", launch.grid, launch.block, strict=True):
            values[f"hidden_block_count_{axis}"] = (blocks, 4)
            values[f"hidden_group_size_{axis}"] = (threads, 2)
            values[f"hidden_remainder_{axis}"] = (0, 2)
            values[f"hidden_global_offset_{axis}"] = (0, 8)
        for name, (value, size) in values.items():
            if name in kernel.abi:
                at = kernel.abi[name]
                self.arguments[at : at + size] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)
                self.argument_flags[at : at + size] = 0

    def _packet(self, kernel: Kernel, given: StaticLaunch) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """The dispatch packet as the HSA specification lays it out; fields other than the launch dimensions are 0."""
        launch = given.launch
        packet = np.zeros(_PACKET_BYTES, np.uint8)
        packet[4:10].view(np.uint16)[:] = launch.block
        packet[12:24].view(np.uint32)[:] = [
            min(g * b, 0xFFFFFFFF) for g, b in zip(launch.grid, launch.block, strict=True)
        ]
        packet[28:32].view(np.uint32)[:] = kernel.resources.shared_bytes + launch.dynamic_shared
        packet[40:48].view(np.uint64)[:] = KERNARG
        return packet

    def words(self, address: int, count: int) -> tuple[list[int], list[int]] | None:
        """32-bit words at an address and their flags; None if it lies in neither."""
        for start, data, flags in ((KERNARG, self.arguments, self.argument_flags), (PACKET, self.packet, None)):
            at = address - start
            if 0 <= at <= len(data) - 4 * count:
                numbers = [int.from_bytes(data[at + 4 * k : at + 4 * k + 4].tobytes(), "little") for k in range(count)]
                if flags is None:
                    return numbers, [0] * count
                return numbers, [int(np.bitwise_or.reduce(flags[at + 4 * k : at + 4 * k + 4])) for k in range(count)]
        return None


def start(state: State, kernel: Kernel) -> None:
    """Set the initial register values of a kernel."""
    scalars, vectors = state.files["s"].values, state.files["v"].values
    abi, launch = kernel.abi, state.launch
    for name, address in (("kernarg_segment_ptr", KERNARG), ("dispatch_ptr", PACKET)):
        if name in abi:
            scalars[abi[name]] = address & 0xFFFFFFFF
            scalars[abi[name] + 1] = address >> 32
    places = np.array([launch.coordinates(block) for block in state.blocks], np.uint32)
    for axis, name in enumerate("xyz"):
        if f"workgroup_id_{name}" in abi:
            scalars[abi[f"workgroup_id_{name}"]] = np.repeat(places[:, axis], launch.warps_per_block)[:, None]
    word = word_of(state.live)
    scalars[EXEC], scalars[EXEC + 1] = (word & np.uint64(0xFFFFFFFF))[:, None], (word >> np.uint64(32))[:, None]
    x, y, _ = launch.block
    linear = state.in_block.astype(np.uint32)
    item: Sequence[Any] = (linear % np.uint32(x), linear // np.uint32(x) % np.uint32(y), linear // np.uint32(x * y))
    if abi.get("packed_work_item_id"):
        vectors[0] = item[0] | item[1] << np.uint32(10) | item[2] << np.uint32(20)
    else:
        for register in range(min(3, len(vectors))):
            vectors[register] = item[register]


def dimensions(kernel: Kernel) -> int:
    """1, 2 or 3: the last dimension in which the kernel receives its work-item or group number."""
    for count, axis in ((3, "z"), (2, "y")):
        if f"workgroup_id_{axis}" in kernel.abi or kernel.abi.get("work_item_dimensions", 1) >= count:
            return count
    return 1
