"""Faults of a launch that its results do not show: what `drywarp run --check` finds beside those that end a launch.

Races on shared memory, reads of device memory that nothing was written to, accesses that leave the allocation which
their pointer belongs to for another one, and reads beyond the end of an allocation that a GPU serves. All are found in
the record of accesses, wave after wave, in the core (`watch.c`), but for the last, which the memory itself notes.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.library import Function, record
from ...kernel.cfg import ControlFlowGraph
from ...kernel.dataflow import Dataflow
from ...kernel.instruction import Address, Constant, Instruction, Register
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Dim3, Launch
from .constants import ConstantBanks
from .machine import Machine
from .memory import DeviceMemory, Region
from .recorder import Recorder

Places = npt.NDArray[np.int64]
_watch = Function("watch", "aa")
_mark = Function("mark", "annn")
_first_unwritten = Function("first_unwritten", "ann")
_copy_marks = Function("copy_marks", "annn")
_READS, _WRITES, _ATOMICALLY = 1, 2, 4
_GLOBAL, _SHARED, _WIDTH, _SYNCHRONISED, _LOW, _HIGH, _USES = range(7)
_WHAT, _K, _OTHER, _COUNT, _BLOCK, _THREAD, _OTHER_THREAD, _ADDRESS, _FOUND = range(9)
_RACE, _UNWRITTEN, _ELSEWHERE = range(3)
_FIELDS = (
    "uses areas area_count written start found most count places granule block_places clocks latest epochs awaited"
    " phases phase_clocks phase_count phase_room per_block first_row first_warp"
).split()
"""Of the core's `Watch`, in order."""
_COUNTED = _FIELDS.index("count")
_MOST, _PHASES, _PLACE_BYTES, _GRANULE = 1024, 256, 48, 4
_NEVER = np.iinfo(np.int64).max
_KINDS = {"load": _READS, "store": _WRITES, "atomic": _READS | _WRITES | _ATOMICALLY,
          "reduction": _READS | _WRITES | _ATOMICALLY, "copy": _READS}  # fmt: skip
_WARP_SYNCS = frozenset("WARPSYNC NOP SHFL VOTE VOTEU MATCH REDUX BAR ELECT SYNCS UCGABAR_WAIT".split())
"""What lanes of a warp synchronise at; the compiler leaves NOP for __syncwarp() where lanes are together anyway."""
_SWAPS, _MOVES = frozenset(("CAS", "CAST")), frozenset(("MOV", "IMAD", "UMOV"))
_MOST_FOLLOWED = 2000
_POINTER_BYTES = 8
_BEYOND = "beyond the end"


@dataclass(frozen=True)
class Problem:
    """Something wrong that a check found, `count` times; `where` is the instruction, and the first place and thread.

    `kind` is race, uninitialized, other allocation, beyond the end or failed call; `other` is a race's second access.
    """

    kind: str
    kernel: str
    where: str
    text: str
    block: Dim3 | None = None
    thread: Dim3 | None = None
    count: int = 1
    other: str = ""

    @property
    def place(self) -> tuple[str, ...]:
        """What is the same for all times that it was found."""
        return self.kind, self.kernel, self.where, self.other


class Written:
    """Which bytes of a program's device memory anything was ever written to: a bit for each, from `start` on."""

    def __init__(self, start: int, size: int) -> None:
        self.start = start
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
        self.bits = np.frombuffer(mmap.mmap(-1, size // 8 + 8, flags=flags), np.uint8)

    def mark(self, address: int, size: int, written: bool = True) -> None:
        """Something was written there, or nothing was yet."""
        _mark(self.bits, address - self.start, size, int(written))

    def changed(self, offset: int, which: npt.NDArray[np.bool_]) -> None:
        """Bytes from `offset` on, a multiple of 8, that were written to: those that have changed."""
        bits = np.packbits(which, bitorder="little")
        self.bits[offset // 8 : offset // 8 + len(bits)] |= bits

    def first_unwritten(self, address: int, size: int) -> int:
        """How far the first byte is that nothing was written to; -1 if there is none."""
        return _first_unwritten(self.bits, address - self.start, size)

    def copy(self, to: int, source: int, size: int) -> None:
        """Bytes were copied: those that nothing was written to are still none."""
        _copy_marks(self.bits, to - self.start, source - self.start, size)


class Uses:
    """What each instruction of a kernel does to memory, and which arguments its addresses come from."""

    def __init__(self, kernel: Kernel, cfg: ControlFlowGraph) -> None:
        code = kernel.instructions
        self.table = np.zeros((len(code) + 1, _USES), np.int64)
        self.pointers: dict[int, frozenset[int]] = {}
        """Offsets of the pointers in the parameters, for instructions whose addresses come from nowhere else."""
        self._flow = Dataflow(code, cfg)
        self._producers: dict[int, tuple[int, ...]] = {}
        synchronised = np.cumsum([0, *(i.opcode in _WARP_SYNCS for i in code)])
        self.table[:, _SYNCHRONISED] = synchronised
        widths = []
        for k, instruction in enumerate(code):
            access = instruction.memory
            if access is None or access.kind not in _KINDS:
                continue
            row, kind = self.table[k], _KINDS[access.kind]
            row[_WIDTH] = access.width
            if access.space in ("global", "generic"):
                row[_GLOBAL] = kind
                if (offsets := self._offsets(k)) is not None:
                    self.pointers[k] = offsets
            if access.space in ("shared", "generic") or access.kind == "copy":
                row[_SHARED] = _WRITES if access.kind == "copy" else kind
                widths.append(access.width)
        for load in self._compared():
            self.table[load, _SHARED] |= _ATOMICALLY
        self.granule = max(1, min([_GRANULE, *widths]))
        # Before Hopper an mbarrier is an atomic and a load of its word, which say nothing of who waits for whom.
        arrives = any(i.opcode == "ATOMS" and "ARRIVE" in i.modifiers for i in code)
        self.shares = bool((self.table[:, _SHARED] & _WRITES).any())
        self.unclear = "its warps wait for each other at barriers in shared memory" if arrives else ""
        """Why races are not looked for, if they are not."""

    def _compared(self) -> set[int]:
        """Loads of shared memory for an atomic compare-and-swap: in its loop they are no race.

        The compiler makes such loops of atomics that the hardware lacks, such as the addition of floats.
        """
        code, found = self._flow.instructions, set[int]()
        for k, instruction in enumerate(code):
            if not _SWAPS & set(instruction.modifiers) or not self.table[k, _SHARED]:
                continue
            pending = list(self._flow.producers_of(k))
            while pending:
                index = pending.pop()
                if code[index].memory and self.table[index, _SHARED] == _READS:
                    found.add(index)
                elif code[index].opcode in _MOVES and index < k:
                    pending += [earlier for earlier in self._flow.producers_of(index) if earlier < index]
        return found

    def _offsets(self, k: int) -> frozenset[int] | None:
        """Where the parameters hold the pointers that the addresses of an instruction come from; None if unknown."""
        code = self._flow.instructions
        own = [o for o in code[k].operands if isinstance(o, Address)]
        registers = [r for o in own for r in (o.base, o.uniform) if isinstance(r, Register)]
        places = {("UR" if r.uniform else "R", r.index + n) for r in registers for n in (0, 1)}
        pending = list(self._flow.producers_of(k, places))
        seen, offsets = set(pending), set[int]()
        while pending:
            index = pending.pop()
            memory = code[index].memory
            if memory is not None and memory.space != "constant":
                if memory.width >= _POINTER_BYTES:
                    return None  # perhaps a pointer
                continue
            constants = [o for o in code[index].operands if isinstance(o, Constant)]
            if any(o.bank or o.register or o.bank_register for o in constants) or len(seen) > _MOST_FOLLOWED:
                return None
            wide = max(_POINTER_BYTES, memory.width if memory else 0)
            offsets |= {o.offset + at for o in constants for at in range(0, wide, _POINTER_BYTES) if o.offset % 8 == 0}
            if index not in self._producers:
                self._producers[index] = self._flow.producers_of(index)
            new = set(self._producers[index]) - seen
            seen |= new
            pending += new
        return frozenset(offsets)


class Watch:
    """Watches one launch. `areas` are start and end of the allocations that begin unwritten, in order."""

    def __init__(self, uses: Uses, written: Written, areas: Sequence[tuple[int, int]]) -> None:
        self._uses, self._written = uses, written
        self._areas: Places = np.array(areas, np.int64).reshape(-1, 2)

    def begin(self, kernel: Kernel, launch: Launch, memory: DeviceMemory, banks: ConstantBanks) -> None:
        """The launch starts, or starts over."""
        self._kernel, self._launch, self._memory = kernel, launch, memory
        self._found: Places = np.zeros((_MOST, _FOUND), np.int64)
        self._blocks: list[Dim3] = []
        self._table = self._uses.table.copy()
        self._origins: dict[int, Region] = {}
        for k, offsets in self._uses.pointers.items():
            bank = banks.bank(0)
            values = [int(bank[at : at + 8].view(np.uint64)[0]) for at in offsets if at + 8 <= len(bank)]
            meant = {r.start: r for r in memory.regions for value in values if 0 <= value - r.start < r.size}
            if len(meant) == 1:
                (region,) = meant.values()
                self._origins[k] = region
                self._table[k, [_LOW, _HIGH]] = region.start, region.start + region.size

    def look(self, recorder: Recorder, machine: Machine, first_row: int) -> None:
        """Look through what a wave has recorded from a row on."""
        if recorder.accesses == first_row:
            return
        warps, per_block = machine.warps, machine.warps_per_block
        granule = self._uses.granule
        block_places = -(-machine.shared_stride // granule)
        races = self._uses.shares and not self.unclear
        places = np.zeros(len(machine.blocks) * block_places * _PLACE_BYTES if races else 0, np.uint8)
        clocks = np.zeros((warps, per_block), np.uint32)
        clocks[np.arange(warps), np.arange(warps) % per_block] = 1
        values = {
            "uses": self._table,
            "areas": self._areas,
            "area_count": len(self._areas),
            "written": self._written.bits,
            "start": self._written.start,
            "found": self._found,
            "most": _MOST,
            "count": len(self._blocks),
            "places": places if races else 0,
            "granule": granule,
            "block_places": block_places,
            "clocks": clocks,
            "latest": np.full(warps, _NEVER, np.int64),
            "epochs": np.zeros(warps, np.int64),
            "awaited": np.zeros(warps, np.int64),
            "phases": np.zeros(_PHASES, np.int64),
            "phase_clocks": np.zeros((_PHASES, per_block), np.uint32),
            "phase_count": 0,
            "phase_room": _PHASES,
            "per_block": per_block,
            "first_row": first_row,
            "first_warp": recorder.first_warp,
        }
        given = record(_FIELDS, values)
        _watch(recorder.places, given)
        for row in self._found[len(self._blocks) : given[_COUNTED]]:
            self._blocks.append(self._launch.coordinates(machine.blocks[int(row[_BLOCK])]))

    @property
    def unclear(self) -> str:
        """Why races on shared memory are not looked for, if they are not."""
        if self._uses.shares and self._launch.cluster_blocks > 1:
            return "the blocks of its clusters reach each other's shared memory"
        return self._uses.unclear if self._uses.shares else ""

    def problems(self) -> list[Problem]:
        """What was found so far, in the order of the code."""
        found = [self._problem(row, block) for row, block in zip(self._found.tolist(), self._blocks, strict=False)]
        found += [
            Problem(_BEYOND, self._kernel.name, spot, f"{text}, which a GPU serves from the same 2 MiB page", *who)
            for where, text, who in self._memory.beyond()
            if (spot := where.removeprefix(f"{self._kernel.name} at ").rpartition(": ")[0])
        ]
        return sorted(found, key=lambda one: (one.where, one.kind))

    def _problem(self, row: list[int], block: Dim3) -> Problem:
        instruction = self._kernel.instructions[row[_K]]
        width, address, thread = int(self._table[row[_K], _WIDTH]), row[_ADDRESS], self._thread(row[_THREAD])
        does = _does(self._table[row[_K], _SHARED if row[_WHAT] == _RACE else _GLOBAL])
        second = ""
        if row[_WHAT] == _RACE:
            other = self._kernel.instructions[row[_OTHER]]
            second = _spot(other)
            text = (
                f"{does} {width} bytes at shared address {address:#x} that thread {self._thread(row[_OTHER_THREAD])}"
                f" {_did(self._table, row[_OTHER])} at {second}, with no synchronisation in between"
            )
            kind = "race"
        elif row[_WHAT] == _UNWRITTEN:
            kind = "uninitialized"
            text = f"{does} {width} bytes that nothing was written to, {self._memory.describe(address, width)}"
        else:
            origin = self._origins[row[_K]]
            kind = "other allocation"
            lies = self._memory.describe(address, width)
            text = f"{does} {width} bytes {self._memory.describe(address, width, origin)}, {lies}"
        return Problem(kind, self._kernel.name, _spot(instruction), text, block, thread, row[_COUNT], second)

    def _thread(self, linear: int) -> Dim3:
        x, y, _ = self._launch.block
        return linear % x, linear // x % y, linear // (x * y)


def _spot(instruction: Instruction) -> str:
    source = f" ({instruction.source})" if instruction.source else ""
    return f"{instruction.pc:#06x}{source}"


def _does(kind: int) -> str:
    if kind & _ATOMICALLY and kind & _WRITES:
        return "changes atomically"
    return "writes" if kind & _WRITES else "reads"


def _did(table: Places, k: int) -> str:
    return {"reads": "read", "writes": "wrote"}.get(_does(int(table[k, _SHARED])), "changed atomically")
