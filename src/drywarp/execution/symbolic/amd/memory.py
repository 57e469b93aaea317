"""What an AMD kernel finds at its start, and its loads, stores and atomics: their addresses, and stand-ins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ....kernel.instruction import Immediate, Instruction, Operand, RegisterRange
from ....kernel.isa.amd.registers import result_count
from ....kernel.kernel import Kernel
from ....kernel.launch.launch import Buffer, Scalar
from ....kernel.profile import SPACE_SHARED
from ..parameters import Addresses, RecordedAccesses, StaticLaunch, element, offset_in_slot
from ..report import Record
from ..state import ANY_ITERATION, DATA, UNSURE, VARYING, Batch, Flags, Lanes, State, Value
from ..words import Step
from .operands import EXEC, M0, PRIVATE_APERTURE, SHARED_APERTURE, Operands, active, put, range_places, word_of

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


# Loads, stores and atomics of AMD machine code without memory: their addresses, and stand-ins for the data.
#
# Each element of memory is assumed to hold its own index, as for other instruction sets. Scalar loads of the kernel
# arguments and the dispatch packet return the launch's values.

_OFFSET = re.compile(r"^(offset[01]?):(-?\w+)$")
_SCALAR_WORDS = re.compile(r"_dword(?:x(\d+))?$")
_TWO = re.compile(r"ds_(read2|write2|wrxchg2)(st64)?_")
_TWO_STRIDE = 64


class MemorySteps(RecordedAccesses):
    """Builds the steps of memory instructions of one kernel."""

    # The upper word of a generic address determines its space.
    windows, window_bytes = {"shared": SHARED_APERTURE << 32, "local": PRIVATE_APERTURE << 32}, 1 << 32

    def __init__(
        self,
        operands: Operands,
        handed: Handed,
        record: Record,
        patterns: Mapping[int, str],
        slots: int,
        wide: Mapping[int, str],
    ) -> None:
        super().__init__(record, patterns, slots, wide)
        self.o, self.handed = operands, handed

    def scalar_load(self, i: Instruction) -> Step | None:
        """`s_load_dwordx4 s[8:11], s[4:5], 0x8`: known if it reads launch data. None for other opcodes."""
        match = _SCALAR_WORDS.search(i.opcode)
        if "_load_" not in i.opcode or match is None or len(i.operands) < 2:
            return None
        target, base = i.operands[0], i.operands[1]
        if not isinstance(target, RegisterRange) or not isinstance(base, RegisterRange):
            return None
        places, words = range_places(target), int(match[1] or 1)
        address = self.o.pair(base)
        offsets = [self.o.word(o) for o in i.operands[2:]]
        offset = _named_offsets(i).get("offset", 0)
        known = self.o.flags(i.operands[1:])

        def run(b: Batch) -> None:
            where = np.broadcast_to(np.asarray(address(b), np.uint64), (b.rows, 1)).astype(np.int64) + offset
            for more in offsets:
                where = where + np.asarray(more(b), np.uint32).view(np.int32).astype(np.int64)
            flags = known(b)
            found = self.handed.words(int(where[0, 0]), words) if (where == where[0, 0]).all() else None
            for k, (file, index) in enumerate(places[:words]):
                if found is not None and not np.asarray(flags & UNSURE).any():
                    put(b, file, index, np.uint32(found[0][k]), np.uint16(found[1][k]) | flags & ANY_ITERATION)
                else:
                    number = self._held(i.pc // 16, offset_in_slot(where.view(np.uint64)), 4 * words, k)
                    put(b, file, index, number, np.uint16(DATA))

        return run

    def step(self, i: Instruction, needed: bool) -> Step:
        """The step of a vector memory or data share instruction; `needed` says whether its result is required."""
        memory = i.memory
        assert memory is not None
        results: list[tuple[str, int]] = []
        target = i.operands[0] if i.operands else None
        if needed and result_count(i) and isinstance(target, RegisterRange):
            results = range_places(target)
        parts = self._addresses(i)

        def run(b: Batch) -> None:
            lanes = active(b)
            # Compute all addresses before any result: a result may overwrite their sources.
            for word, (where, flags) in enumerate([address(b) for address in parts]):
                for space, inside, part in self.by_space(memory.space, where, lanes):
                    noted = self.note(i, b, space, inside, flags, part)
                    if results:
                        share = len(results) // len(parts)
                        self._data(i, b, space, noted, flags, results[word * share : (word + 1) * share], part)
            if memory.kind == "copy":
                self._copied(i, b, lanes)

        return run

    # Addresses ------------------------------------------------------------------------------------

    def _addresses(self, i: Instruction) -> list[Callable[[Batch], tuple[Addresses, Value]]]:
        """Functions of a batch for each place that a lane accesses: two for the `2` forms of the data share."""
        offsets = _named_offsets(i)
        rest = list(i.operands[result_count(i) :])
        if i.opcode.startswith("ds_"):
            base = rest[0] if rest else Immediate(0, "0")
            if two := _TWO.match(i.opcode):
                assert i.memory is not None
                unit = i.memory.width * (_TWO_STRIDE if two[2] else 1)
                return [self._sum([base], offsets.get(name, 0) * unit) for name in ("offset0", "offset1")]
            return [self._sum([base], offsets.get("offset", 0))]
        offset = offsets.get("offset", 0)
        if i.opcode.startswith(("buffer_", "tbuffer_")):
            return [self._buffer(i, offset)]
        vector = rest[0] if rest else Immediate(0, "0")
        scalars = [o for o in rest[1:] if isinstance(o, RegisterRange) and o.file not in ("v", "a")]
        if i.opcode.startswith("scratch_"):
            return [self._sum([o for o in rest[:2] if isinstance(o, RegisterRange)], offset)]
        # A scalar base makes the vector part a 32-bit offset.
        return [self._sum([vector, *scalars[:1]], offset, wide=True)]

    def _buffer(self, i: Instruction, offset: int) -> Callable[[Batch], tuple[Addresses, Value]]:
        """vdata, vaddr or off, descriptor, scalar offset."""
        registers = list(i.operands[1:])
        vector = [o for o in registers if isinstance(o, RegisterRange) and o.file in ("v", "a")]
        descriptor = [o for o in registers if isinstance(o, RegisterRange) and (o.file, o.count) == ("s", 4)]
        local = i.memory is not None and i.memory.space == "local"
        parts: list[Operand] = list(vector[:1]) if "offen" in i.modifiers or "idxen" in i.modifiers else []
        if not local and descriptor:
            parts.append(RegisterRange("s", descriptor[0].index, 2))
        return self._sum(parts, offset, wide=not local)

    def _sum(
        self, operands: list[Operand], offset: int, wide: bool = False
    ) -> Callable[[Batch], tuple[Addresses, Value]]:
        fetches = [
            self.o.pair(o) if wide and isinstance(o, RegisterRange) and o.count > 1 else self.o.word(o)
            for o in operands
        ]
        known = self.o.flags(operands)
        constant = np.uint64(offset & 0xFFFFFFFFFFFFFFFF)

        def address(b: Batch) -> tuple[Addresses, Value]:
            total: Any = constant
            for fetch in fetches:
                total = total + np.asarray(fetch(b)).astype(np.uint64)
            if not wide:
                total = total & np.uint64(0xFFFFFFFF)
            return np.array(b.spread(np.asarray(total, np.uint64))), known(b)

        return address

    def _data(
        self, i: Instruction, b: Batch, space: str, where: Addresses, flags: Value, results: list[Any], lanes: Lanes
    ) -> None:
        """Write stand-ins for the data to the result registers."""
        assert i.memory is not None
        offset = offset_in_slot(where) if space == "global" else where
        known = np.uint16(DATA | VARYING)
        atomic = i.memory.kind == "atomic"
        for word, (file, index) in enumerate(results):
            value = self._held(i.pc // 16, offset, i.memory.width, word)
            if atomic:
                value = value + b.state.thread[b.warps].astype(np.uint32)
            row = getattr(b, file)[index]
            np.copyto(row, value, where=lanes, casting="unsafe")
            np.copyto(b.flags[file][index], known, where=lanes, casting="unsafe")

    def _held(self, load: int, offset: Addresses, width: int, word: int) -> npt.NDArray[np.uint32]:
        return element(self._wide.get(load, ""), self._loaded.get(load, 0), offset, width, word)

    def _copied(self, i: Instruction, b: Batch, lanes: Lanes) -> None:
        """The data that a load writes directly to shared memory: at m0, the lanes consecutively."""
        assert i.memory is not None
        file: Any = b.s
        lane = np.arange(b.state.lanes, dtype=np.uint64) * np.uint64(i.memory.width)
        where = b.spread(file[M0].astype(np.uint64) + lane)
        self.record.access(i.pc // 16, SPACE_SHARED, b.warps, np.ascontiguousarray(where).view(np.int64), lanes)


def _named_offsets(i: Instruction) -> dict[str, int]:
    return {match[1]: int(match[2], 0) for word in i.modifiers if (match := _OFFSET.match(word))}
