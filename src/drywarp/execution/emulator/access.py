"""From addresses to array indices: bounds and alignment checks, and the messages for violations.

A site is one memory instruction. It locates its lanes' addresses and returns indices into the typed views of the
memory; inactive lanes get index 0 or another harmless one.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError
from ...kernel.cfg import build_cfg
from ...kernel.dataflow import Dataflow
from ...kernel.instruction import Constant, Instruction
from ...kernel.isa.nvidia.registers import address_places
from ...kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_REMOTE, SPACE_SHARED
from .decode import Decoder, place
from .frame import Frame
from .machine import RANK_SHIFT
from .memory import Region
from .operands import Value

Index = npt.NDArray[np.int64]
_READS = ("load", "copy from global memory")
_SPACE_NAMES = {
    SPACE_GLOBAL: "global",
    SPACE_SHARED: "shared",
    SPACE_LOCAL: "local",
    SPACE_REMOTE: "distributed shared",
}


class Site:
    """A memory instruction: the target of its accesses, and how they are recorded. `width` is in bytes."""

    def __init__(self, d: Decoder, i: Instruction, kind: str, width: int) -> None:
        self._memory = d.memory
        self._origin = np.uint64(d.memory.start)
        self._kernel = d.kernel
        self._banks = d.banks
        self._recorder = d.recorder
        self._instruction = i
        self._where = place(d.kernel, i)
        self._kind = kind
        self._number = i.pc // 16
        self.width = width
        self._shift = np.uint64(width.bit_length() - 1)
        self._low_bits = width - 1
        self._region: Region | None = None
        self._latest: Region | None = None
        self._room = np.uint64(0)
        self.memory_view: npt.NDArray[Any] = d.memory.views[min(width, 16)]

    def global_index(self, f: Frame, addresses: Value, unused: Value | None = None) -> Index:
        """Indices into the arena's view of this width, of 64-bit addresses; recorded as global.

        `unused` bytes at the end of each lane's element may lie outside the buffer.
        """
        addresses = f.spread(addresses)
        index: Index
        region = self._region
        lanes = f.exec
        if region is not None and unused is None:
            # One unsigned maximum checks both ends: an address below the region wraps around.
            offsets = addresses - region.base
            if lanes is not None:
                offsets *= lanes
            if offsets.max() <= self._room:
                if int(np.bitwise_or.reduce(offsets, axis=None)) & self._low_bits:
                    self._misaligned(f, addresses, SPACE_GLOBAL)
                if region.pending is not None:
                    self._memory.prepare(region, offsets)
                self._recorder.access(f, self._number, addresses, SPACE_GLOBAL)
                offsets += region.base - self._origin
                offsets >>= self._shift
                index = offsets.view(np.int64)
                return index
        return self._search(f, addresses, unused)

    def _search(self, f: Frame, addresses: npt.NDArray[np.uint64], unused: Value | None) -> Index:
        """The general case: find the region of every lane, and remember it if there is only one."""
        memory = self._memory
        lanes = f.lanes()
        if (addresses & np.uint64(self._low_bits))[lanes].any():
            self._misaligned(f, addresses, SPACE_GLOBAL)
        size = np.uint64(self.width)
        found = memory.region_of(addresses, size if unused is None else size - unused)
        outside = lanes & (found < 0)
        used = np.unique(found[lanes & ~outside])
        read_from = addresses
        if outside.any():
            # Where the code does not tell, the pointer most likely came from where other lanes or earlier accesses lie.
            origin = self._pointer or (memory.regions[used[0]] if len(used) else self._latest)
            where = f"{self._where}: {self._kind}"
            row, lane = (int(x[0]) for x in np.nonzero(outside))
            reader = f.machine.thread_at(int(f.warps[row]), lane)
            reads = self._kind in _READS
            served = memory.serve(origin, addresses, outside, self.width, where, reader) if reads else None
            if served is None:
                self._outside(f, addresses, outside, SPACE_GLOBAL, origin)
            else:
                read_from = served
        if len(used):
            self._latest = memory.regions[used[0]]
        for number in used:
            region = memory.regions[number]
            memory.prepare(region, (addresses - region.base)[lanes & (found == number)])
        if len(used) == 1 and unused is None and not outside.any():
            self._region = memory.regions[used[0]]
            self._room = np.uint64(self._region.size - self.width)
        self._recorder.access(f, self._number, addresses, SPACE_GLOBAL)
        offsets = np.where(lanes, read_from - self._origin, np.uint64(0))
        return (offsets >> self._shift).view(np.int64)

    def shared_index(self, f: Frame, addresses: Value) -> Index:
        """Indices into the shared memory's view of this width, of 32-bit addresses within the block."""
        addresses = f.spread(addresses)
        # Addresses below the block's own wrap around.
        own = addresses if f.machine.cluster_blocks == 1 else addresses - f.shared_first.astype(np.uint32)
        offsets: Index = own.astype(np.int64)
        if f.exec is not None:
            offsets *= f.exec
        if offsets.max() > f.machine.shared_bytes - self.width:
            outside = f.lanes() & (own.astype(np.int64) > f.machine.shared_bytes - self.width)
            self._outside(f, addresses, outside, SPACE_SHARED)
        if int(np.bitwise_or.reduce(offsets, axis=None)) & self._low_bits:
            self._misaligned(f, addresses, SPACE_SHARED)
        self._recorder.access(f, self._number, own, SPACE_SHARED)
        offsets += f.shared_base
        offsets >>= np.int64(self._shift)
        return offsets

    def remote_index(self, f: Frame, addresses: Value) -> Index:
        """As `shared_index`, of addresses in the shared memory of any block of the cluster."""
        machine, addresses = f.machine, f.spread(addresses)
        whole = addresses.astype(np.int64)
        if f.exec is not None:
            # The other lanes get the first byte of their own block.
            whole = np.where(f.exec, whole, f.shared_first)
        ranks, offsets = whole >> RANK_SHIFT, whole & ((1 << RANK_SHIFT) - 1)
        outside = (ranks >= machine.cluster_blocks) | (offsets > machine.shared_bytes - self.width)
        if outside.any():
            self._outside(f, addresses, outside, SPACE_REMOTE)
        if int(np.bitwise_or.reduce(offsets, axis=None)) & self._low_bits:
            self._misaligned(f, addresses, SPACE_REMOTE)
        self._recorder.access(f, self._number, addresses, SPACE_REMOTE)
        index: Index = f.shared_base + (ranks - (f.shared_first >> RANK_SHIFT)) * machine.shared_stride + offsets
        return index >> np.int64(self._shift)

    def local_index(self, f: Frame, addresses: Value) -> tuple[Index, Index]:
        """Indices of the (first) word of each lane in local memory, and the byte offsets in that word."""
        addresses = f.spread(addresses)
        offsets = addresses.astype(np.int64)
        if f.exec is not None:
            offsets *= f.exec
        size = f.machine.local_bytes
        if offsets.max() > size - self.width:
            outside = f.lanes() & (addresses.astype(np.int64) > size - self.width)
            self._outside(f, addresses, outside, SPACE_LOCAL)
        if int(np.bitwise_or.reduce(offsets, axis=None)) & self._low_bits:
            self._misaligned(f, addresses, SPACE_LOCAL)
        self._recorder.access(f, self._number, addresses, SPACE_LOCAL)
        return (offsets >> 2) * f.machine.threads + f.machine.thread[f.index], offsets & 3

    @cached_property
    def _pointer(self) -> Region | None:
        """The only buffer whose address, as an argument, the addresses are computed from; None if there are several.

        Pointers that are loaded from memory are not followed.
        """
        kernel, starts = self._kernel, {region.start: region for region in self._memory.regions}
        code, found = kernel.instructions, dict[int, Region]()
        flow = Dataflow(code, build_cfg(code, kernel.code_entries))
        pending = list(flow.producers_of(self._number, address_places(self._instruction)))
        seen = set(pending) | {self._number}
        held = [o for o in self._instruction.operands if isinstance(o, Constant)]
        while pending:
            index = pending.pop()
            held += [operand for operand in code[index].operands if isinstance(operand, Constant)]
            memory = code[index].memory
            if memory is None or memory.space == "constant":
                new = set(flow.producers_of(index)) - seen
                seen |= new
                pending += new
        for one in held:
            if one.bank == 0 and one.register is None and one.bank_register is None and one.offset % 8 == 0:
                address = int(self._banks.bank(0)[one.offset : one.offset + 8].view(np.uint64)[0])
                if address in starts:
                    found[address] = starts[address]
        return next(iter(found.values())) if len(found) == 1 else None

    # Errors ---------------------------------------------------------------------------------------

    def _misaligned(self, f: Frame, addresses: Value, space: int) -> None:
        wrong = f.lanes() & ((addresses & addresses.dtype.type(self._low_bits)) != 0)
        row, lane = (int(x[0]) for x in np.nonzero(wrong))
        raise EmulationError(
            f"{self._where}: misaligned {_SPACE_NAMES[space]} {self._kind} of {self.width} bytes at address"
            f" {int(addresses[row, lane]):#x}, {f.machine.thread_name(int(f.warps[row]), lane)}"
        )

    def _outside(self, f: Frame, addresses: Value, wrong: Any, space: int, origin: Region | None = None) -> None:
        row, lane = (int(x[0]) for x in np.nonzero(wrong))
        address = int(addresses[row, lane])
        if space == SPACE_GLOBAL:
            nearest = self._memory.describe(address, self.width, origin)
        elif space == SPACE_SHARED:
            nearest = f"the block has {f.machine.shared_bytes} bytes of shared memory"
            if (first := int(f.shared_first[row, 0])) or address >> RANK_SHIFT:
                nearest += f", from {first:#x} on; another block's is reached as ld.shared::cluster does"
        elif space == SPACE_REMOTE:
            blocks = f.machine.cluster_blocks
            nearest = f"the cluster has {blocks} blocks of {f.machine.shared_bytes} bytes of shared memory each"
        else:
            nearest = f"the thread has {f.machine.local_bytes} bytes of local memory"
        raise EmulationError(
            f"{self._where}: {_SPACE_NAMES[space]} {self._kind} of {self.width} bytes out of bounds at address"
            f" {address:#x}, {f.machine.thread_name(int(f.warps[row]), lane)}: {nearest}",
            _SPACE_NAMES[space],
        )
